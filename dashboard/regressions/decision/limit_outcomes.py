"""What the manifest's limits add to a decision: those that a run crossed, and those that it keeps again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dashboard.regressions.decision.facts import LimitViolation, Regression, Snapshot
from dashboard.regressions.decision.outcomes import Outcome, Standing, standing_as_stored
from dashboard.regressions.decision.primary_change import Size
from dashboard.regressions.decision.proofs import State


def with_limits(
    outcomes: Sequence[Outcome], snapshot: Snapshot, regressions: Sequence[Regression]
) -> list[Outcome]:
    """The outcomes, with what the limits add. `regressions` are those of the snapshot's branch."""
    told = list(outcomes)
    for violation in snapshot.violations:
        tell_violation(violation, told, regressions, live=snapshot.live)
    held = {change.regression_id for change in snapshot.changes}
    alone = [row for row in regressions if row.has_limit and row.pk not in held and not row.withdrawn]
    for series, commit in snapshot.kept_limits:
        for row in alone:
            open_before = row.recovered_by is None and row.first_bad.position < commit.position
            if open_before and row.series.pk == series:
                standing = standing_as_stored(row, row.state, proving=row.proving)
                told.append(Outcome(row.pk, replace(standing, recovered_by=commit.pk)))
    return told


def tell_violation(
    violation: LimitViolation, outcomes: list[Outcome], regressions: Sequence[Regression], *, live: bool
) -> None:
    """It is told by the regression of its commit; by one of its own, at once, where there is none."""
    limits = (violation.limit,)
    for index, outcome in enumerate(outcomes):
        if outcome.standing and outcome.standing.first_bad.pk == violation.commit.pk:
            outcomes[index] = replace(outcome, limits=outcome.limits + limits)
            return
    for row in regressions:
        if row.first_bad.pk == violation.commit.pk and not row.withdrawn:
            standing = standing_as_stored(row, row.state, proving=row.proving)
            outcomes.append(Outcome(row.pk, standing, limits=limits))
            return
    outcomes.append(Outcome(None, standing_of(violation), limits=limits, opened=True, tell=live))


def standing_of(violation: LimitViolation) -> Standing:
    """Of a regression that opens by a crossed limit alone."""
    before = violation.bound if violation.value_before is None else violation.value_before
    ratio = violation.value / violation.value_before if violation.value_before else None
    return Standing(
        last_good=violation.before or violation.commit,
        first_bad=violation.commit,
        series=violation.series,
        size=Size(before, violation.value, ratio, None, None),
        state=State.CONFIRMED,
        proving=False,
    )
