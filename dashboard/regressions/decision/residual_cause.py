"""The residual cause of a step: what bisection and pairs see of a second one before any series does.

Two steps close to each other are one for detection, whose points between them are few. Pairs of the commits
around one of them show a part only, and the rest becomes a regression of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from dashboard.experiments.scale import StepScale
from dashboard.measured_kinds import is_exact_counter
from dashboard.models import Experiment, Regression
from dashboard.regressions.decision.facts import Commit, ExperimentVerdict, Series
from dashboard.regressions.decision.primary_change import level_measured
from dashboard.regressions.decision.proofs import Proof, bisection_steps, newest_first, verdicts_confirmed
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.decision.requested_facts import (
    CommitsBetween,
    PointsAroundRequest,
    ProofsOfSeries,
    StepInPairs,
)
from dashboard.regressions.decision.series_kinds import is_same_measurement
from dashboard.regressions.decision.wanted_measurements import ProofContext, ResidualCause, WantedExperiment

Purpose = Experiment.Purpose
Verdict = Experiment.Verdict

# The rest of a step is looked for up to so many measured commits beside what is proved: at the first one
# whose point has moved by so much of it.
REACH = 3
MOVED_ON = 1 / 3
# Points that show so much of a relevant step may have been lucky.
WORTH_A_PROOF = 0.5


def weigh_counters_commit(
    context: ProofContext, proof: Proof
) -> tuple[WantedExperiment | None, ResidualCause | None]:
    """Weigh whether the commit that a counter names has the whole step: the experiment, or what it has shown.

    Another commit may have a part of it where the proof reached further than the counter's range, or where
    nobody has measured the next commits. That part gets a regression of its own.
    """
    change, good, bad = context.primary.change, context.good, context.bad
    series, whole = change.series, proof.verdict
    if is_exact_counter(series) or proof.state != Regression.State.CONFIRMED:
        return None, None
    if whole.head.position > bad.position:
        end: Commit | None = whole.head
    else:
        end = context.facts.answer_to(PointsAroundRequest(series, good, bad)).later
    if end is None:
        return None, None
    if whole.head.pk != end.pk and not context.facts.answer_to(CommitsBetween(bad, end)):
        return None, None
    steps = [
        step
        for step in context.verdicts
        if step.purpose == Purpose.BISECTION
        and step.series.pk == series.pk
        and (step.base.pk, step.head.pk) == (good.pk, bad.pk)
    ]
    if steps:
        residual = residual_after_part(context, steps[0], end) if steps[0].verdict == Verdict.PART else None
        return None, residual
    if (whole.head.pk, whole.series.pk) == (bad.pk, series.pk):
        placed = place_of(context, whole, change.before, change.after)
        if placed == Verdict.WHOLE:
            return None, None
    weighed_against = whole if whole.head.pk != bad.pk else None
    return context.experiment(Purpose.BISECTION, good, bad, whole=weighed_against), None


def residual_beside_proof(context: ProofContext, whole: ExperimentVerdict) -> ResidualCause | None:
    """Where pairs surely show a part only of what the points show: the rest, beside the proved range.

    First on the side where the points show more of it. Once pairs have shown that, and the parts that they
    have confirmed aren't the whole yet, the next part, on either side. Where the points at both ends stand at
    the levels already, later points were slow for another reason than commits, and nothing is looked for.
    """
    change = context.primary.change
    series, before, after = change.series, change.before, change.after
    if whole.series.pk != series.pk or not whole.ratio:
        return None
    if place_of(context, whole, before, after) not in (Verdict.PART, Verdict.NONE):
        return None
    region = ProvedRegion.around(whole, context)
    points = context.facts.answer_to(PointsAroundRequest(series, region.base, region.head))
    if points.good_value is None or points.bad_value is None:
        return None
    scale = StepScale.of_values(series.metric, before, after, [points.good_value, points.bad_value])
    if not scale.logarithmic:
        return None
    least = WORTH_A_PROOF * scale.relevant_share(series.metric.kind)
    missing = 1.0 - region.share(scale)
    if missing < least:
        return None
    earlier = scale.share_of_step(points.good_value)
    later = 1.0 - scale.share_of_step(points.bad_value)
    if max(earlier, 0.0) + max(later, 0.0) <= missing / 2:
        return None
    # Each by its own point, and by what the other point and the pairs leave of the step.
    earlier, later = (earlier + missing - later) / 2, (later + missing - earlier) / 2
    sides = [(later, True), (earlier, False)] if later >= earlier else [(earlier, False), (later, True)]
    for part, is_later in sides:
        if part < least or (region.is_closed_later if is_later else region.is_closed_earlier):
            continue
        part = min(part, missing)
        ends = ends_of_residual(context, scale, region, part, is_later=is_later)
        if ends is None:
            continue
        shares = (1.0 - part, 1.0) if is_later else (0.0, part)
        low, high = (series.metric.level(before, scale.effect_of(share)) for share in shares)
        return residual_between(context, series, ends, (low, high))
    return None


@dataclass(frozen=True, slots=True)
class ProvedRegion:
    """Commits in a row of which pairs have confirmed a part each: a proved range, and rests beside it.

    `beside` are the proofs that make it wider, or have shown nothing beside it: that side is closed then.
    """

    base: Commit
    head: Commit
    confirmed: tuple[ExperimentVerdict, ...]
    beside: tuple[ExperimentVerdict, ...] = ()
    is_closed_earlier: bool = False
    is_closed_later: bool = False

    @classmethod
    def around(cls, whole: ExperimentVerdict, context: ProofContext) -> ProvedRegion:
        """The range of a confirmed proof, with what proofs of the same series have shown beside it."""
        proofs = [
            verdict
            for verdict in newest_first(context.nearby)
            if verdict.purpose == Purpose.PROOF and verdict.series.pk == whole.series.pk
        ]
        region = cls(whole.base, whole.head, (whole,))
        while beside := region._next_beside(proofs):
            region = region._with(beside, context.other_steps)
        return region

    def _next_beside(self, proofs: Iterable[ExperimentVerdict]) -> ExperimentVerdict | None:
        for verdict in proofs:
            if verdict.base.pk == self.head.pk and not self.is_closed_later:
                return verdict
            if verdict.head.pk == self.base.pk and not self.is_closed_earlier:
                return verdict
        return None

    def _with(self, proof: ExperimentVerdict, other_steps: Sequence[int]) -> ProvedRegion:
        """The region with one that begins at its head, or ends at its base."""
        is_later, beside = proof.base.pk == self.head.pk, (*self.beside, proof)
        if proof.verdict != Verdict.CONFIRMED or holds_step(proof.range, other_steps):
            if is_later:
                return replace(self, beside=beside, is_closed_later=True)
            return replace(self, beside=beside, is_closed_earlier=True)
        wide = replace(self, confirmed=(*self.confirmed, proof), beside=beside)
        return replace(wide, head=proof.head) if is_later else replace(wide, base=proof.base)

    def share(self, scale: StepScale) -> float:
        """How much of a step its parts have together."""
        return sum(math.log(verdict.ratio) for verdict in self.confirmed if verdict.ratio) / scale.step


def holds_step(commits: Range, steps: Iterable[int]) -> bool:
    return any(commits.good < position <= commits.bad for position in steps)


def ends_of_residual(
    context: ProofContext, scale: StepScale, region: ProvedRegion, part: float, *, is_later: bool
) -> tuple[Commit, Commit] | None:
    """From the region up to the first measured commit at which the points have moved on.

    A commit that changes nothing may lie between two causes. None where no point within reach has moved.
    """
    series = context.primary.change.series
    ends = region.base, region.head
    for reach in range(1, REACH + 1):
        around = context.facts.answer_to(PointsAroundRequest(series, *ends, reach))
        far = around.later if is_later else around.earlier
        if far is None:
            return None
        wide = (region.base, far) if is_later else (far, region.head)
        points = context.facts.answer_to(PointsAroundRequest(series, *wide))
        value = points.bad_value if is_later else points.good_value
        if value is None:
            return None
        share = scale.share_of_step(value)
        left = 1.0 - share if is_later else share
        if left <= part * (1.0 - MOVED_ON):
            good, bad = (region.head, far) if is_later else (far, region.base)
            is_stepping = holds_step(Range(good.position, bad.position), context.other_steps)
            return None if is_stepping else (good, bad)
    return None


def place_of(context: ProofContext, verdict: ExperimentVerdict, before: float, after: float) -> str:
    """`whole`, `none` or `part`: how much of this step an experiment's pairs show at its head."""
    if verdict.by_phases:
        # The whole's values don't tell, and what phases show is described by them as one step.
        return Verdict.WHOLE
    return context.facts.answer_to(StepInPairs(verdict.experiment, before, after))


def residual_after_parts(
    context: ProofContext, parts: Iterable[ExperimentVerdict], bad: Commit
) -> ResidualCause | None:
    """What comes after the last commit with no more of the step than the first one that has a part of it.

    One that surely has more has another cause's part too, which comes after the first. The newest verdict on
    each commit counts.
    """
    by_commit = {part.head.position: part for part in reversed(newest_first(parts))}
    first, *later = (by_commit[position] for position in sorted(by_commit))
    same = takewhile(lambda part: not has_surely_more(context, first, part), later)
    return residual_after_part(context, max([first, *same], key=lambda part: part.head.position), bad)


def has_surely_more(context: ProofContext, first: ExperimentVerdict, then: ExperimentVerdict) -> bool:
    """Whether a commit has so much of a step that an earlier one surely has a part of that only."""
    more = level_measured(then.before, then)
    return place_of(context, first, first.before, more) == Verdict.PART


def residual_after_part(context: ProofContext, part: ExperimentVerdict, bad: Commit) -> ResidualCause | None:
    """Part of the step is there before the range's end: what comes after it has a cause of its own."""
    level = level_measured(part.before, part)
    return residual_between(context, part.series, (part.head, bad), (level, part.after))


def residual_of_other_series(context: ProofContext) -> ResidualCause | None:
    """What another series that was proved at the same commit leaves after it."""
    for whole in verdicts_confirmed(context.verdicts):
        if is_same_measurement(whole.series, context.primary.change.series):
            continue
        parts = [
            step
            for step in bisection_steps(context.verdicts, whole)
            if step.verdict == Verdict.PART
            and step.series.pk == whole.series.pk
            and step.head.position < whole.head.position
        ]
        last = max(parts, key=lambda step: step.head.position, default=None)
        residual = residual_after_part(context, last, whole.head) if last else None
        if residual:
            return residual
    return None


def residual_between(
    context: ProofContext, series: Series, ends: tuple[Commit, Commit], levels: tuple[float, float]
) -> ResidualCause | None:
    """The rest of a step between two commits; proved once: refuted or narrowed, it isn't asked again."""
    residual = ResidualCause(*ends, series, *levels)
    return None if is_asked_already(context, residual) else residual


def is_asked_already(context: ProofContext, residual: ResidualCause) -> bool:
    """True where it was measured already whether the series steps between the two commits."""
    asked = context.facts.answer_to(ProofsOfSeries(residual.series.pk))
    # Those of a regression that has just turned out to be this one are its own.
    own = {context.key, *(verdict.regression_id for verdict in context.verdicts)}
    if any((proof.base.pk, proof.head.pk) == (residual.good.pk, residual.bad.pk) for proof in asked):
        return True
    return any(
        proof.regression_id not in own
        and proof.head.branch == residual.bad.branch
        and holds_alone(Range(proof.base.position, proof.head.position), residual.range, context.range)
        for proof in asked
    )


def holds_alone(measured: Range, residual: Range, found: Range) -> bool:
    """True for a proof of a range with the rest, and without the step that was found beside it.

    Pairs of both say nothing of the rest by itself.
    """
    return measured.holds(residual) and not measured.holds(found)
