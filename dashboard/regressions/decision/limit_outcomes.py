"""What the manifest's limits add to a decision: those that a run crossed, and those that it keeps again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dashboard.regressions.decision.facts import Commit, LimitViolation, Regression, Snapshot
from dashboard.regressions.decision.outcomes import Outcome, Standing, standing_as_stored
from dashboard.regressions.decision.primary_change import Size
from dashboard.regressions.decision.proofs import State


def with_limits(
    outcomes: Sequence[Outcome], snapshot: Snapshot, regressions: Sequence[Regression]
) -> list[Outcome]:
    """The outcomes, with what the limits add. `regressions` are those of the snapshot's branch."""
    told = list(outcomes)
    held = {change.regression_id for change in snapshot.changes}
    alone = [row for row in regressions if row.has_limit and row.pk not in held and not row.withdrawn]
    for violation in snapshot.violations:
        tell_violation(violation, told, regressions, alone, live=snapshot.live)
    for series, commit in snapshot.kept_limits:
        for row in alone:
            standing = standing_where_kept(row, commit) if row.series.pk == series else None
            if standing:
                told.append(Outcome(row.pk, standing))
    return told


def standing_where_kept(row: Regression, commit: Commit) -> Standing | None:
    """Of a regression by a limit alone, where a commit keeps it; None where that says nothing new.

    Commits may be stored in any order: the last that keeps it before and the first after count.
    """
    standing = standing_as_stored(row, row.state, proving=row.proving)
    if commit.position < row.first_bad.position:
        newer = row.last_good.pk == row.first_bad.pk or row.last_good.position < commit.position
        return replace(standing, last_good=commit) if newer else None
    earlier = row.recovered_by is None or (
        row.recovered_at is not None and commit.position < row.recovered_at
    )
    if commit.position > row.first_bad.position and earlier:
        return replace(standing, recovered_by=commit.pk)
    return None


def tell_violation(
    violation: LimitViolation,
    outcomes: list[Outcome],
    regressions: Sequence[Regression],
    alone: Sequence[Regression],
    *,
    live: bool,
) -> None:
    """It is told by the regression of its commit; by one of its own, at once, where there is none.

    Where the next commit was stored earlier and opened one by this limit alone, that one began here.
    """
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
    for row in alone:
        following = violation.crossed_next
        if following and row.first_bad.pk == following.pk and row.series.pk == violation.series.pk:
            outcomes.append(Outcome(row.pk, moved_here(row, violation), limits=limits))
            return
    outcomes.append(Outcome(None, standing_of(violation), limits=limits, opened=True, tell=live))


def moved_here(row: Regression, violation: LimitViolation) -> Standing:
    here, stored = standing_of(violation), standing_as_stored(row, row.state, proving=row.proving)
    return replace(stored, last_good=here.last_good, first_bad=here.first_bad, size=here.size)


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
        recovered_by=violation.kept_after.pk if violation.kept_after else None,
    )
