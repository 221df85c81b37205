"""What experiments have proved: the verdict on each series, and where the cause lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from dashboard.models import Experiment, Regression
from dashboard.regressions.decision.bisection import HAS_STEP, INCONCLUSIVE
from dashboard.regressions.decision.facts import Change, Commit, ExperimentVerdict
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.decision.series_kinds import SeriesLike, is_same_measurement

State = Regression.State
Verdict = Experiment.Verdict
Purpose = Experiment.Purpose

# Of so few commits one has a quarter of the step, which is a part.
FEW_COMMITS = 4


@dataclass(frozen=True, slots=True)
class Proof:
    """What a verdict makes of a series in a range; `good` and `bad` as the bisection has narrowed it.

    `between_levels`: pairs of neither range at the step's place have shown it, those of its levels do.
    `gradual`: the commit to which bisection led has little of it by itself, as `last` has shown: it came
    little by little.
    """

    state: str
    verdict: ExperimentVerdict
    good: Commit
    bad: Commit
    between_levels: bool = False
    gradual: bool = False
    last: ExperimentVerdict | None = None

    @property
    def range(self) -> Range:
        return Range(self.good.position, self.bad.position)


def newest_first(verdicts: Iterable[ExperimentVerdict]) -> list[ExperimentVerdict]:
    return sorted(verdicts, key=lambda verdict: (verdict.order, verdict.experiment), reverse=True)


def find_proof(verdicts: Sequence[ExperimentVerdict], series: SeriesLike, seen: Range) -> Proof | None:
    """The newest proof of a series about the range in which detection sees the step; None without.

    What was confirmed in a range is confirmed for every range that overlaps it. What was refuted in one is
    refuted only for ranges inside it: the step may lie beside it, and where it was proved there it stays so.
    Of a part both are true. `verdicts`: newest first.
    """
    denied: Proof | None = None
    on_series = verdicts_on_step(verdicts, series)
    for verdict in on_series:
        proof = make_proof(verdict, verdicts)
        if proof.state == State.UNDECIDED and is_between_levels(on_series, verdict):
            at_place = [row for row in on_series if row.verdict == Verdict.REFUTED and row.range.holds(seen)]
            if at_place:
                continue  # What was refuted at its place stays so.
        if proof.state != State.CONFIRMED:
            denied = denied or (proof if verdict.range.holds(seen) else None)
        elif not verdict.range.overlap(seen) or (
            not (proof.between_levels or has_part(verdicts, verdict, proof.bad))
            and is_narrowed_by_another_cause(proof, on_series)
        ):
            continue
        elif not (denied and denied.range.holds(proof.range)):
            return proof
    return denied


def is_narrowed_by_another_cause(proof: Proof, on_series: Iterable[ExperimentVerdict]) -> bool:
    """True where the bisection of other series led to commits at which pairs refuted this one."""
    return any(
        verdict.verdict == Verdict.REFUTED
        and verdict.range.holds(proof.range)
        and not verdict.range.holds(proof.verdict.range)
        for verdict in on_series
    )


def find_proof_beside(
    verdicts: Sequence[ExperimentVerdict], series: SeriesLike, proved: Range
) -> Proof | None:
    """The newest verdict on a series where the cause was proved by another one; None without."""
    on_series = verdicts_on_step(verdicts, series)
    verdict = next((verdict for verdict in on_series if verdict.range.overlap(proved)), None)
    return make_proof(verdict, verdicts) if verdict else None


def verdicts_on_step(verdicts: Iterable[ExperimentVerdict], series: SeriesLike) -> list[ExperimentVerdict]:
    """The verdicts on whole steps that weighed a series, or what is the same measurement."""
    return [
        verdict
        for verdict in verdicts
        if verdict.purpose == Purpose.PROOF and is_same_measurement(verdict.series, series)
    ]


def verdicts_confirmed(verdicts: Iterable[ExperimentVerdict]) -> list[ExperimentVerdict]:
    """Those that have confirmed a whole step, of whatever series."""
    return [
        verdict
        for verdict in verdicts
        if verdict.purpose == Purpose.PROOF and verdict.verdict == Verdict.CONFIRMED
    ]


def make_proof(verdict: ExperimentVerdict, verdicts: Sequence[ExperimentVerdict]) -> Proof:
    match verdict.verdict:
        case Verdict.CONFIRMED:
            between = is_between_levels(verdicts, verdict)
            good, bad = narrowed_ends(verdict, verdicts)
            alone = verdict_on_last(verdicts, verdict, good, bad)
            # Where that can't tell the commit stays named, unless its place had shown nothing before.
            little = (Verdict.NONE, *INCONCLUSIVE) if between else (Verdict.NONE,)
            gradual = alone is not None and alone.verdict in little
            ends = (verdict.base, verdict.head) if gradual else (good, bad)
            return Proof(State.CONFIRMED, verdict, *ends, between, gradual, alone if gradual else None)
        case Verdict.REFUTED:
            return Proof(State.REFUTED, verdict, verdict.base, verdict.head)
    return Proof(State.UNDECIDED, verdict, verdict.base, verdict.head)


def narrowed_ends(
    confirmed: ExperimentVerdict, verdicts: Iterable[ExperimentVerdict]
) -> tuple[Commit, Commit]:
    """The confirmed range, narrowed by the bisection's verdicts on commits inside it."""
    good, bad = confirmed.base, confirmed.head
    for step in sorted(bisection_steps(verdicts, confirmed), key=lambda step: step.head.position):
        middle = step.head
        if not good.position < middle.position < bad.position:
            continue
        if step.verdict == Verdict.NONE:
            good = middle
        elif step.verdict in HAS_STEP:
            bad = middle
    return good, bad


def bisection_steps(
    verdicts: Iterable[ExperimentVerdict], confirmed: ExperimentVerdict
) -> list[ExperimentVerdict]:
    """The steps of the bisection of a confirmed range, oldest first.

    They are those of other series too, which saw the same cause. What doesn't run does so for all, unless it
    ran here.
    """
    steps = [verdict for verdict in verdicts if verdict.purpose == Purpose.BISECTION]
    own = [step for step in steps if step.base.pk == confirmed.base.pk]
    ran = {step.head.pk for step in own if step.verdict not in INCONCLUSIVE}
    others = [step for step in steps if step.base.pk != confirmed.base.pk and step.head.pk not in ran]
    same = own + [step for step in others if step.verdict == Verdict.UNTESTABLE]
    return [step for step in reversed(newest_first(same)) if applies_to_series(step, confirmed.series)]


def applies_to_series(verdict: ExperimentVerdict, series: SeriesLike) -> bool:
    """False where a commit stayed undecided for another series: of this one it may be reported."""
    return verdict.verdict != Verdict.UNDECIDED or is_same_measurement(verdict.series, series)


def is_between_levels(verdicts: Iterable[ExperimentVerdict], proof: ExperimentVerdict) -> bool:
    """True for a proof whose range holds two in which pairs showed less than half of the step: that where it
    seemed to be, and one with a commit more on both sides."""
    refuted = [
        verdict.range
        for verdict in verdicts_on_step(verdicts, proof.series)
        if verdict.verdict == Verdict.REFUTED
        and verdict.range != proof.range
        and proof.range.holds(verdict.range)
    ]
    return any(first != second and first.holds(second) for first, second in product(refuted, repeat=2))


def has_part(
    verdicts: Iterable[ExperimentVerdict], confirmed: ExperimentVerdict, bad: Commit | None = None
) -> bool:
    """Whether its bisection has met a commit, or has met `bad`, with a part of the step."""
    return any(
        step.verdict == Verdict.PART
        and is_same_measurement(step.series, confirmed.series)
        and (bad is None or step.head.pk == bad.pk)
        for step in bisection_steps(verdicts, confirmed)
    )


def may_be_gradual(
    verdicts: Iterable[ExperimentVerdict], confirmed: ExperimentVerdict, good: Commit, bad: Commit
) -> bool:
    """Whether the commits to which a bisection has led may have little of the step by themselves.

    The last one has a part of it, together with those before it. Of a few commits one has a large part.
    """
    if good.pk == confirmed.base.pk or confirmed.range.width <= FEW_COMMITS:
        return False
    return has_part(verdicts, confirmed, bad)


def verdict_on_last(
    verdicts: Sequence[ExperimentVerdict], confirmed: ExperimentVerdict, good: Commit, bad: Commit
) -> ExperimentVerdict | None:
    """The newest verdict on what the commits to which a bisection has led have of the step by themselves."""
    if not may_be_gradual(verdicts, confirmed, good, bad):
        return None
    found = [
        row
        for row in verdicts
        if row.purpose == Purpose.BISECTION
        and (row.base.pk, row.head.pk) == (good.pk, bad.pk)
        and is_same_measurement(row.series, confirmed.series)
    ]
    return next(iter(newest_first(found)), None)


def unmeasured_proofs(verdicts: Iterable[ExperimentVerdict], series: SeriesLike) -> list[ExperimentVerdict]:
    """The proofs of a series that say nothing of it, as a host was lost or a commit didn't run."""
    return [
        verdict
        for verdict in verdicts_on_step(verdicts, series)
        if verdict.lost or verdict.verdict == Verdict.UNTESTABLE
    ]


def verdict_on_size(
    verdicts: Iterable[ExperimentVerdict], change: Change, bad: Commit
) -> ExperimentVerdict | None:
    """The newest experiment that says how much of a change's step a commit has: all of it or a part.

    One that spans another step of the series beside it says how large both are.
    """
    of_commit = [
        verdict for verdict in verdicts if (verdict.series.pk, verdict.head.pk) == (change.series.pk, bad.pk)
    ]
    sized = [
        verdict
        for verdict in of_commit
        if verdict.verdict in (Verdict.CONFIRMED, *HAS_STEP)
        and (verdict.ratio is not None or verdict.difference is not None)
        and not any(position <= change.last_good.position for position in verdict.steps_between)
    ]
    return next(iter(newest_first(sized)), None)


def with_steps_between(
    verdicts: Iterable[ExperimentVerdict], changes: Iterable[Change]
) -> tuple[ExperimentVerdict, ...]:
    """The verdicts, each with the positions at which its series steps between its two commits."""
    steps: dict[int, list[int]] = {}
    for change in changes:
        steps.setdefault(change.series.pk, []).append(change.first_bad.position)
    return tuple(
        replace(
            verdict,
            steps_between=tuple(
                position
                for position in steps.get(verdict.series.pk, ())
                if verdict.base.position < position < verdict.head.position
            ),
        )
        for verdict in verdicts
    )
