"""What is to be measured next to prove a regression: first the whole step, then the commits inside its range.

A suspicion on a noisy metric is proved by an experiment on its last good and first bad commit. If that
refutes it, noise may have placed the step beside where it is: once more, with one measured commit more on
both sides. If that doesn't show it either, the commit that seemed bad is measured anew, alone; and if the
step still stands many points later, commits well inside both levels are compared, for what comes little by
little is at no commit. What is confirmed is bisected until one commit is left. Exact counters need no
experiment: for them the middle is simply measured, and the counter tells. At the end the commits on both
sides are measured in full, so that the regression is explained by its own commit's profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dashboard.models import Experiment
from dashboard.regressions.decision import bisection, merge_bisection, residual_cause
from dashboard.regressions.decision.facts import Change, Commit, Evidence, ExperimentVerdict
from dashboard.regressions.decision.proofs import (
    Proof,
    State,
    Verdict,
    bisection_steps,
    has_part,
    may_be_gradual,
    unmeasured_proofs,
    verdict_on_last,
    verdicts_on_step,
)
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.decision.repeated_pairs import without_repeated
from dashboard.regressions.decision.requested_facts import (
    CommitRow,
    CommitsBetween,
    PointsAroundRequest,
    RegressionsBetween,
    RunsAtCommits,
)
from dashboard.regressions.decision.series_kinds import is_same_measurement
from dashboard.regressions.decision.wanted_measurements import (
    NextStep,
    Placement,
    ProofContext,
    ResidualCause,
    WantedRun,
    measure_in_full,
)

Purpose = Experiment.Purpose

# So many measured commits into both levels pairs look for a step that they didn't see at its place.
INTO_LEVEL = 6

NOT_PROVED = (State.REFUTED, State.UNDECIDED)


def plan_next_step(context: ProofContext) -> NextStep:
    """What is to be measured now, of a regression that is being proved and of which nothing is under way."""
    state, change = context.primary.state, context.primary.change
    if state == State.REFUTED:
        wide = widened_ends(context) or (ends_of_levels(context) if context.proved_again else None)
        if wide:
            return NextStep((context.experiment(Purpose.PROOF, *wide),))
    elif state == State.SUSPECTED or context.proved_again:
        return NextStep((context.experiment(Purpose.PROOF, context.good, context.bad),))
    if state == State.CONFIRMED:
        step = narrow_confirmed(context)
        return other_series_step(context, step) if step.ended else step
    if state in NOT_PROVED:
        return measured_again(context, change)
    return NextStep()


def end_repeated_bisection(context: ProofContext, step: NextStep) -> NextStep:
    """The step; where its pairs would narrow a range once more and have answered often, what is asked beside
    them.
    """
    if all(wanted.purpose == Purpose.PROOF for wanted in step.experiments):
        return step
    left = without_repeated(step, context.primary.state, context.range.width, context.facts)
    if left.ended_answered_often:
        left = measure_ends(context, left)
    return other_series_step(context, left) if left.ended else left


def other_series_step(context: ProofContext, step: NextStep) -> NextStep:
    """Another series of a proved cause: a larger one by pairs, or the commit of a refuted one once more."""
    primary = context.primary
    if primary.larger_unproved:
        asked = context.experiment(Purpose.PROOF, context.good, context.bad, primary.larger_unproved)
        return combine_steps(step, NextStep((asked,)))
    for change in primary.refuted:
        again = measured_again(context, change)
        if not again.ended:
            return combine_steps(step, again)
    return step


def combine_steps(first: NextStep, then: NextStep) -> NextStep:
    """What the first has found out, and what the second one asks for."""
    return NextStep(then.experiments, then.runs, then.waiting, first.residual, first.placement)


def widened_ends(context: ProofContext) -> tuple[Commit, Commit] | None:
    """The range with one more measured commit on both sides; None where that was refuted too."""
    series = context.primary.change.series
    refuted = verdicts_on_step(context.verdicts, series)
    around = [verdict for verdict in refuted if verdict.range.holds(context.range)]
    if any((verdict.base, verdict.head) != (context.good, context.bad) for verdict in around):
        return None
    points = context.facts.answer_to(PointsAroundRequest(series, context.good, context.bad))
    wide = without_other_steps(context, points.earlier or context.good, points.later or context.bad)
    known = {(context.good, context.bad), *((verdict.base, verdict.head) for verdict in refuted)}
    return None if wide in known else wide


def ends_of_levels(context: ProofContext) -> tuple[Commit, Commit] | None:
    """Commits well inside both levels, where pairs of neither range at the step's place have shown it.

    What comes little by little is less than half of itself in a few commits, and still there is all of it
    between the levels. None where they lie no further apart, or were tried.
    """
    series = context.primary.change.series
    unmeasured = unmeasured_proofs(context.verdicts, series)
    tried = [row for row in verdicts_on_step(context.verdicts, series) if row not in unmeasured]
    points = context.facts.answer_to(PointsAroundRequest(series, context.good, context.bad, INTO_LEVEL))
    if points.earlier is None or points.later is None:
        return None
    ends = without_other_steps(context, points.earlier, points.later)
    wide = Range(*(end.position for end in ends))
    return None if any(verdict.range.holds(wide) for verdict in tried) else ends


def without_other_steps(context: ProofContext, earlier: Commit, later: Commit) -> tuple[Commit, Commit]:
    """The widened ends; on a side where the series steps too, or another regression was proved, the old one.

    Pairs of such a range would see that step: they would confirm it a second time, or miss this one after an
    improvement.
    """
    series = context.primary.change.series
    proved = [
        regression.first_bad.position
        for regression in context.facts.answer_to(RegressionsBetween(earlier, later))
        if regression.state == State.CONFIRMED
        and regression.pk != context.key
        and not regression.withdrawn
        and is_same_measurement(regression.series, series)
    ]
    steps = [*proved, *context.other_steps]
    if any(earlier.position < position <= context.good.position for position in steps):
        earlier = context.good
    if any(context.bad.position < position <= later.position for position in steps):
        later = context.bad
    return earlier, later


def measured_again(context: ProofContext, change: Change) -> NextStep:
    """Measure the first bad commit once more where pairs don't show its step.

    Its run was disturbed then, and nobody saw it. Left alone it hides the place of a step that comes soon
    after it. Where many runs in a row were disturbed, the step moves on to the next: it isn't followed.
    """
    rows = verdicts_on_step(context.verdicts, change.series)
    refuted = any(row.verdict == Verdict.REFUTED and row.head.pk == context.bad.pk for row in rows)
    if not refuted:
        return NextStep()
    hashes = (context.good.hash, context.bad.hash)
    runs = context.facts.answer_to(RunsAtCommits(change.series, hashes, context.key))
    good, bad = runs.get(context.good.hash), runs.get(context.bad.hash)
    if bad is None or (good and good.count > 1):
        return NextStep()
    if bad.under_way:
        return NextStep(waiting=True)
    if bad.count != 1 or not bad.last_done:
        return NextStep()
    return NextStep(runs=(WantedRun(change.series, context.bad),))


def narrow_confirmed(context: ProofContext) -> NextStep:
    """Bisect a confirmed range one step further, then measure its ends in full."""
    proof = context.primary.proof
    if proof and proof.gradual:
        commits = Evidence.of("gradual", commits=proof.range.width)
        return NextStep(placement=Placement(bisection=commits))
    if proof is None or context.counters():
        return narrow_by_counter(context, proof)
    confirmed = proof.verdict
    good, bad = confirmed.base, confirmed.head
    line = [good.hash, *context.facts.answer_to(CommitsBetween(good, bad)), bad.hash]
    steps = bisection_steps(context.verdicts, confirmed)
    verdicts = {step.head.hash: step.verdict for step in steps}
    change = context.primary.change
    seen = (change.last_good.hash, change.first_bad.hash)
    left = bisection.narrow_range(line, verdicts, cleared_commits(context, line), seen)
    if left.middle is not None:
        middle = context.facts.answer_to(CommitRow(left.middle))
        return NextStep((context.experiment(Purpose.BISECTION, good, middle, whole=confirmed),))
    ends = (proof.good, proof.bad)
    last = (context.verdicts, confirmed, *ends)
    if may_be_gradual(*last) and verdict_on_last(*last) is None:
        return NextStep((context.experiment(Purpose.BISECTION, *ends, whole=confirmed),))
    residual = residual_of_step(context, proof, steps, left.with_part)
    skipped = {sha: verdict for sha, verdict in verdicts.items() if verdict in bisection.INCONCLUSIVE}
    step = merge_bisection.look_into_merge(context, skipped, None)
    step = measure_ends(context, step) if step.ended else step
    return replace(step, residual=residual)


def residual_beside(context: ProofContext, settled: Iterable[ExperimentVerdict]) -> ResidualCause | None:
    """What a step whose proof has ended leaves beside it still, where `settled` ones have shown a rest."""
    proof = context.primary.proof
    if proof is None or proof.state != State.CONFIRMED or proof.gradual or context.counters():
        return None
    settled_experiments = {verdict.experiment for verdict in settled}
    region = residual_cause.ProvedRegion.around(proof.verdict, context)
    is_news = any(verdict.experiment in settled_experiments for verdict in region.beside)
    if not is_news or has_part(context.verdicts, proof.verdict):
        return None
    return residual_cause.residual_beside_proof(context, proof.verdict)


def cleared_commits(context: ProofContext, line: Sequence[str]) -> set[str]:
    """Of a line, the commits at which pairs have refuted the step: noise had placed it there."""
    cleared: set[str] = set()
    for verdict in verdicts_on_step(context.verdicts, context.primary.change.series):
        ends = (verdict.base.hash, verdict.head.hash)
        if verdict.verdict == Verdict.REFUTED and all(end in line for end in ends):
            cleared.update(line[line.index(ends[0]) + 1 : line.index(ends[1]) + 1])
    return cleared


def residual_of_step(
    context: ProofContext, proof: Proof, steps: Iterable[ExperimentVerdict], with_part: str | None
) -> ResidualCause | None:
    """What a bisected step leaves of itself: another cause after the one that was found, or beside it."""
    series = context.primary.change.series
    parts = [step for step in steps if step.verdict == Verdict.PART and step.series.pk == series.pk]
    residual = None
    if any(step.head.hash == with_part for step in parts):
        residual = residual_cause.residual_after_parts(context, parts, proof.verdict.head)
    elif not with_part:
        residual = residual_cause.residual_beside_proof(context, proof.verdict)
    return residual or residual_cause.residual_of_other_series(context)


def narrow_by_counter(context: ProofContext, proof: Proof | None) -> NextStep:
    """Measure the middle of the range in full: an exact counter tells at once on which side it lies.

    The counter's commit need not be all that slowed the range down: what a noisy metric lost is weighed.
    """
    facts, good, bad = context.facts, context.good, context.bad
    series = context.primary.change.series
    between = facts.answer_to(CommitsBetween(good, bad))
    tried = facts.answer_to(RunsAtCommits(series, between, context.key)) if between else {}
    if any(run.under_way for run in tried.values()):
        return NextStep(waiting=True)
    # Those that a counter was read at are the range's ends by now.
    verdicts = dict.fromkeys(tried, str(Verdict.UNTESTABLE))
    left = bisection.narrow_range([good.hash, *between, bad.hash], verdicts)
    if left.middle is not None:
        middle = facts.answer_to(CommitRow(left.middle))
        step = measure_in_full(context, [middle])
        if not step.ended:
            return step
    weighed, residual = residual_cause.weigh_counters_commit(context, proof) if proof else (None, None)
    if weighed is not None:
        return NextStep((weighed,))
    counters = context.counters()
    step = merge_bisection.look_into_merge(context, verdicts, counters[0] if counters else None)
    step = measure_ends(context, step) if step.ended else step
    return replace(step, residual=residual)


def measure_ends(context: ProofContext, step: NextStep) -> NextStep:
    """Have the commits on both sides measured in full."""
    return combine_steps(step, measure_in_full(context, [context.good, context.bad]))
