"""Which change a regression is described by: of those that experiments have confirmed the first, if any are.

A verdict is on one series. A step time that joins a cause which peak memory has proved is a suspicion like
any other: it becomes the primary change once pairs of its own confirm it, and if they refute it, the cause
stays proved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dashboard.measured_kinds import TIME, is_exact_counter, is_time
from dashboard.regressions.decision.facts import Change, Commit, ExperimentVerdict, Regression, Series
from dashboard.regressions.decision.proofs import (
    Proof,
    Purpose,
    State,
    Verdict,
    find_proof,
    find_proof_beside,
    newest_first,
    verdict_on_size,
)
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.decision.series_kinds import (
    MEMORY,
    SeriesLike,
    is_quality,
    is_same_measurement,
    log_size,
    metric_family,
)

# Of two series that measure alike, the one that isn't proved is measured only if its step is so much larger.
MUCH_LARGER = 1.5
# Of a step.
HALF = 0.5


@dataclass(frozen=True, slots=True)
class PrimaryChange:
    """The change that describes a regression, its state, and what proved it (None: nothing, or a counter).

    `change` has no key where detection sees no change of the series that pairs confirmed. `members` tell the
    place: all changes but those that were refuted. `larger_unproved` would be primary, had it been measured.
    `refuted` ones stand beside a primary change that wasn't.
    """

    change: Change
    state: str
    proof: Proof | None
    members: tuple[Change, ...]
    larger_unproved: Change | None = None
    refuted: tuple[Change, ...] = ()


def choose_primary(
    members: Sequence[Change], verdicts: Sequence[ExperimentVerdict], regression: Regression | None
) -> PrimaryChange | None:
    """The primary change of these; None where there is no change, and no pairs confirmed one.

    `verdicts` are those of experiments that were asked for the regression; None where it is about to open.
    """
    newest = newest_first(verdicts)
    return _primary_of_proved(members, newest, regression) or _primary_of_suspected(members, newest)


def _primary_of_proved(
    members: Sequence[Change], verdicts: Sequence[ExperimentVerdict], regression: Regression | None
) -> PrimaryChange | None:
    """One that pairs confirmed: a change, or a series whose change is gone; None where there is none."""
    confirmed = [verdict for verdict in verdicts if verdict.verdict == Verdict.CONFIRMED]
    if not confirmed:
        return None
    decided = regression.range if regression else confirmed[0].range
    whole = spanned_range(members) if members else decided

    def proof_of(series: SeriesLike) -> Proof | None:
        """Where detection sees the series' own step; else where it sees all of them."""
        own = [change for change in members if is_same_measurement(change.series, series)]
        found = find_proof(verdicts, series, spanned_range(own)) if own else None
        found = found or find_proof(verdicts, series, whole)
        return told_apart(found, own) if found else None

    proofs = [proof_of(verdict.series) for verdict in verdicts if verdict.purpose == Purpose.PROOF]
    cause = next((proof for proof in proofs if proof and proof.state == State.CONFIRMED), None)
    if cause is None:
        return None
    noisy = [change for change in members if not is_exact_counter(change.series)]
    judged = [
        (change, proof_of(change.series) or find_proof_beside(verdicts, change.series, cause.range))
        for change in noisy
    ]
    proved = [(change, proof) for change, proof in judged if proof and proof.state == State.CONFIRMED]
    if not any(is_same_measurement(change.series, cause.verdict.series) for change, _ in proved):
        proved.append((change_seen_by_pairs(regression, cause), cause))
    sized = [sized_by_pairs(change, proof, verdicts) for change, proof in proved]
    first = foremost_change(sized)
    primary, proof = proved[next(index for index, change in enumerate(sized) if change is first)]
    # What was measured at the primary's commits, whatever it showed, isn't measured there once more.
    waiting = [
        change
        for change in noisy
        if change.series.measured_here
        and not change.environment_only
        and not find_proof_beside(verdicts, change.series, proof.range)
    ]
    refuted = [change for change, proof in judged if proof and proof.state == State.REFUTED]
    kept = [change for change in members if change not in refuted]
    return PrimaryChange(
        primary, State.CONFIRMED, proof, tuple(kept), _larger_unproved(first, waiting), tuple(refuted)
    )


def _primary_of_suspected(
    members: Sequence[Change], verdicts: Sequence[ExperimentVerdict]
) -> PrimaryChange | None:
    """The foremost that wasn't refuted, where no pairs confirmed any; exact counters are their own proof.

    Of those that can be measured here, where there are any: what was imported tells neither the place nor
    what is to be proved.
    """
    left = measured = [change for change in members if change.series.measured_here] or list(members)
    fallen: dict[Change, Proof] = {}
    while left:
        primary = foremost_change(left)
        if is_exact_counter(primary.series):
            return PrimaryChange(primary, State.CONFIRMED, None, tuple(left), refuted=tuple(fallen))
        proof = find_proof(verdicts, primary.series, spanned_range(left))
        if proof is None or proof.state == State.CONFIRMED:
            state = proof.state if proof else State.SUSPECTED
            return PrimaryChange(primary, state, proof, tuple(left))
        same = [change for change in left if is_same_measurement(change.series, primary.series)]
        fallen |= dict.fromkeys(same, proof)
        left = [change for change in left if change not in same]
    if not members:
        return None
    undecided = [change for change, proof in fallen.items() if proof.state == State.UNDECIDED]
    primary = foremost_change(undecided or measured)
    return PrimaryChange(primary, fallen[primary].state, fallen[primary], tuple(measured))


def told_apart(proof: Proof, own: Iterable[Change]) -> Proof:
    """Not gradual any more where points have told several steps in its range apart since.

    The last commits have little of the step that was bisected, and most of the one that is now seen there.
    """
    last = proof.last
    if last is None or not any(is_shown_by(last, change) for change in own):
        return proof
    return replace(proof, good=last.base, bad=last.head, gradual=False, last=None)


def is_shown_by(verdict: ExperimentVerdict, change: Change) -> bool:
    """Whether pairs of a change's two commits have measured half of it or more."""
    if verdict.range != change.range or not verdict.ratio or not change.ratio or change.ratio == 1:
        return False
    return math.log(verdict.ratio) / math.log(change.ratio) >= HALF


def _larger_unproved(primary: Change, others: Sequence[Change]) -> Change | None:
    """The one that would stand in the place of the primary, if its step is worth pairs of its own.

    Of the primary's pool: another one's machines may be gone, and an alert would wait for them.
    """
    near = [change for change in others if change.series.pool_id == primary.series.pool_id]
    first = foremost_change([primary, *near])
    if first is primary:
        return None
    alike = metric_family(first.series) == metric_family(primary.series)
    return first if not alike or log_size(first) >= MUCH_LARGER * log_size(primary) else None


def sized_by_pairs(change: Change, proof: Proof, verdicts: Sequence[ExperimentVerdict]) -> Change:
    """The change with the size that pairs have measured; its points were measured at other hours."""
    verdict = verdict_on_size(verdicts, change, proof.bad)
    return replace(change, ratio=verdict.ratio) if verdict and verdict.ratio is not None else change


def change_seen_by_pairs(regression: Regression | None, proof: Proof) -> Change:
    """The change that pairs confirmed and no row of detection's shows, as they measured it."""
    verdict = proof.verdict
    same = regression is not None and regression.series.pk == verdict.series.pk
    before = regression.before if regression and same else verdict.before
    ratio = verdict.ratio
    return Change(
        pk=None,
        series=verdict.series,
        last_good=proof.good,
        first_bad=proof.bad,
        before=before,
        after=level_measured(before, verdict),
        ratio=ratio,
        low=verdict.low,
        high=verdict.high,
    )


def level_measured(before: float, verdict: ExperimentVerdict) -> float:
    """The level after a step as pairs measured it, from the one before; as suspected where they can't."""
    if verdict.difference is not None:
        return before + verdict.difference
    return verdict.series.metric.level(before, verdict.ratio) if verdict.ratio else verdict.after


def foremost_change(changes: Sequence[Change]) -> Change:
    """The change that stands for all (at least one): time, unless memory moved more."""
    first, *others = sorted(changes, key=lambda change: (primary_rank(change), change.series.pk))
    heavier = next((change for change in others if change.series.metric.name in MEMORY), None)
    if is_time(first.series) and heavier and log_size(heavier) > log_size(first):
        return heavier
    return first


def primary_rank(change: Change) -> tuple[int, int, float]:
    """Smaller is reported first: what is learned, time (step_time, which phases add up to), memory, other
    headlines, counters.

    A training that no longer learns has no speed worth telling first.
    """
    series = change.series
    if is_quality(series):
        return (-1, 0, -abs(change.after - change.before))
    name = series.metric.name
    for family, names in enumerate((TIME, MEMORY)):
        if name in names:
            return (family, names.index(name), -log_size(change))
    return (3 if is_exact_counter(series) else 2, 0, -log_size(change))


def bounding_changes(changes: Sequence[Change]) -> tuple[Change, Change]:
    """The changes whose last good and first bad commits bound the cause (at least one change).

    An exact counter knows its place, noise may put the others beside theirs. Where there is none, the one
    that is reported first has the range. The others narrow it, as far as they overlap.
    """
    first, *others = sorted(
        changes,
        key=lambda change: (not is_exact_counter(change.series), primary_rank(change), change.series.pk),
    )
    good = bad = first
    if first.gradual:
        return first, first  # All of its commits have a part of it.
    span = first.range
    for change in others:
        common = span.overlap(change.range)
        if common is None:
            continue
        good = change if common.good > span.good else good
        bad = change if common.bad < span.bad else bad
        span = common
    return good, bad


def spanned_range(changes: Sequence[Change]) -> Range:
    good, bad = bounding_changes(changes)
    return Range(good.last_good.position, bad.first_bad.position)


def bounding_commits(primary: PrimaryChange) -> tuple[Commit, Commit]:
    """The last good and the first bad commit: as a proof bounds them, and within that as the changes do.

    Where the two don't overlap, pairs have refuted the place of the changes, or no commit of a range has the
    step, the proof is right: it measured the commits against each other. Where less is learned, costs that
    moved in its range may be other commits'.
    """
    primary_is_quality = is_quality(primary.change.series)
    bounding = [change for change in primary.members if is_quality(change.series) or not primary_is_quality]
    good, bad = bounding_changes(bounding or [primary.change])
    ends, proof = (good.last_good, bad.first_bad), primary.proof
    if proof is None or proof.state != State.CONFIRMED:
        return ends
    wide = proof.between_levels or proof.gradual
    if wide or Range(ends[0].position, ends[1].position).overlap(proof.range) is None:
        return proof.good, proof.bad
    return (
        max(ends[0], proof.good, key=lambda commit: commit.position),
        min(ends[1], proof.bad, key=lambda commit: commit.position),
    )


@dataclass(frozen=True, slots=True)
class Size:
    """The levels on both sides and their ratio, with its interval; all in the primary series' unit.

    `paired_before`: the level before by the pairs that measured the ratio, where there are any.
    """

    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None
    paired_before: float | None = None


def measured_size(primary: Change, verdicts: Sequence[ExperimentVerdict], bad: Commit) -> Size:
    """The size of the step at a commit: that which pairs measured, where there are any.

    The points' interval may be narrower, but knows nothing of what the machine did between the hours at which
    they were taken. Of two causes that detection sees as one step the level after is the first one's too;
    else it stays that of the points, which a second cause may have a part of.
    """
    verdict = verdict_on_size(verdicts, primary, bad)
    if verdict is not None and verdict.difference is not None:
        # Of what is learned the levels are those of whole trainings, which the points have measured.
        base = None if is_quality(primary.series) else verdict.base_level
        return Size(primary.before, level_measured(primary.before, verdict), None, None, None, base)
    if verdict is None or verdict.ratio is None or not primary.ratio:
        return Size(primary.before, primary.after, primary.ratio, primary.low, primary.high)
    after = primary.after
    if verdict.verdict == Verdict.PART:
        after = primary.series.metric.level(primary.before, verdict.ratio)
    return Size(primary.before, after, verdict.ratio, verdict.low, verdict.high, verdict.base_level)


def least_worse(series: Series, size: Size) -> float:
    """By how much it is surely worse, as the logarithm of a ratio; infinite where that is none."""
    ratios = [ratio for ratio in (size.ratio, size.low, size.high) if ratio is not None]
    if not ratios or min(ratios) <= 0:
        return math.inf
    towards = 1 if series.metric.lower_is_better else -1
    return min(towards * math.log(ratio) for ratio in ratios)


def times_worse(series: Series, size: Size) -> float | None:
    """How many times worse the level after is than that before; None where that is no ratio.

    Of the suspected step, not of what an experiment made of it: that is what needs an explanation.
    """
    metric = series.metric
    ratio = metric.ratio(size.before, size.after)
    if ratio is None or ratio <= 0 or metric.on_ratio_scale(size.before) <= 0:
        return None
    return ratio if metric.lower_is_better else 1 / ratio
