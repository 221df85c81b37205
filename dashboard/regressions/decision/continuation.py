"""Which stored regression a group of changes continues, so that one cause keeps its row and its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dashboard.measured_kinds import CLOCKED_KINDS
from dashboard.regressions.decision.facts import Change, Commit, Regression, Snapshot
from dashboard.regressions.decision.gradual_changes import is_gradual_counter, is_sized_by_step
from dashboard.regressions.decision.grouping import Group
from dashboard.regressions.decision.primary_change import foremost_change
from dashboard.regressions.decision.series_kinds import log_size

# A step that is larger than this times the one that people decided on has another cause too.
LARGER_THAN_DECIDED = 1.5


@dataclass(frozen=True, slots=True)
class ContinuedGroup:
    """A group with the regression that it continues (None: a new one), and those that turned out to be it."""

    group: Group
    regression: Regression | None
    absorbed: tuple[Regression, ...] = ()


def continue_regressions(groups: Sequence[Group], snapshot: Snapshot) -> list[ContinuedGroup]:
    """Which regression each group continues. No two continue the same one.

    First those that were proved there; then what stands at the group's commit without changes of its own,
    also if it was withdrawn or crossed a limit; then those that hold its changes.
    """
    regressions = {
        regression.pk: regression
        for regression in snapshot.regressions
        if regression.branch == snapshot.branch
    }
    claims = sorted(
        (claim, key, index)
        for index, group in enumerate(groups)
        for key, claim in claims_on(group, regressions, groups).items()
    )
    taken: dict[int, int] = {}
    continued: dict[int, int] = {}
    for _, key, index in claims:
        if key not in taken and index not in continued:
            taken[key], continued[index] = index, key
    keep_order_in_series(continued, groups, regressions)
    taken = {key: index for index, key in continued.items()}
    absorbed: dict[int, list[Regression]] = {}
    for _, key, index in claims:
        # Its changes are the cause of another one now; what only stood there is left alone.
        if key not in taken and not regressions[key].withdrawn and owns_part(groups[index], key, regressions):
            taken[key] = index
            absorbed.setdefault(index, []).append(regressions[key])
    return [
        ContinuedGroup(
            group,
            regressions[continued[index]] if index in continued else decided_before(group, snapshot),
            tuple(absorbed.get(index, ())),
        )
        for index, group in enumerate(groups)
    ]


def merge_groups(first: ContinuedGroup, second: ContinuedGroup, bad: Commit) -> ContinuedGroup:
    """Two groups whose first bad commit turned out to be the same one."""
    rows = [regression for regression in (first.regression, second.regression) if regression]
    rows.sort(key=lambda regression: (regression.first_bad.pk != bad.pk, regression.pk))
    group = Group(
        members=[*first.group.members, *second.group.members],
        evidence=[*first.group.evidence, *second.group.evidence],
        anchors=[*first.group.anchors, *second.group.anchors],
        owners=[*first.group.owners, *second.group.owners],
        verdicts=[*first.group.verdicts, *second.group.verdicts],
    )
    absorbed = (*first.absorbed, *second.absorbed, *rows[1:])
    return ContinuedGroup(group, rows[0] if rows else None, absorbed)


class Claim(NamedTuple):
    """How well a group continues a regression: the smaller the better, by the first field that differs."""

    rank: int
    withdrawn: bool = False
    is_elsewhere: bool = False
    is_beside_foremost: bool = False
    # As a negative number: the more of its changes it holds, the better.
    held: int = 0


# The ranks of claims: it was proved there; it stands at the group's commit; it holds changes of the group's.
PROVED_THERE, STANDS_THERE, HOLDS_CHANGES = range(3)


def claims_on(group: Group, regressions: dict[int, Regression], groups: Sequence[Group]) -> dict[int, Claim]:
    """By the keys of the regressions that a group may continue."""
    claims: dict[int, Claim] = {}
    if not group.members:
        return dict.fromkeys(group.owners, Claim(PROVED_THERE))
    bad = foremost_bad(group)
    owned = Counter(key for key in held_by(group, regressions) if key in regressions)
    foremost = foremost_change(group.members).regression_id
    holding = {change.regression_id for other in groups for change in other.members}
    for key, regression in regressions.items():
        here = regression.first_bad.position == bad and is_gradual_counter(regression) == group.is_gradual
        if key in group.owners:
            claims[key] = Claim(PROVED_THERE)
        elif here and key not in holding and not any(key in other.owners for other in groups):
            claims[key] = Claim(STANDS_THERE, withdrawn=regression.withdrawn)
        elif key in owned and not regression.withdrawn:
            claims[key] = Claim(
                HOLDS_CHANGES,
                is_elsewhere=not here,
                is_beside_foremost=key != foremost,
                held=-owned[key],
            )
    return claims


def foremost_bad(group: Group) -> int:
    """The position of the commit that the group will be named by."""
    places = group.ranges
    return places[0].bad if places else -1


def owns_part(group: Group, key: int, regressions: dict[int, Regression]) -> bool:
    return key in group.owners or key in held_by(group, regressions)


def held_by(group: Group, regressions: dict[int, Regression]) -> list[int]:
    """The regressions that hold its members; of a gradual change those of its single steps as well."""
    steps = [
        change
        for change in group.evidence
        if group.is_gradual
        and (holder := regressions.get(change.regression_id or 0))
        and is_sized_by_step(holder, change)
    ]
    return [change.regression_id for change in (*group.members, *steps) if change.regression_id]


def keep_order_in_series(
    continued: dict[int, int], groups: Sequence[Group], regressions: dict[int, Regression]
) -> None:
    """Where two regressions of a series would pass each other, each keeps its side."""
    by_series: dict[int, list[int]] = {}
    for index in continued:
        if groups[index].members and not groups[index].anchors:
            by_series.setdefault(foremost_change(groups[index].members).series.pk, []).append(index)
    for indices in by_series.values():
        keys = sorted(
            (continued[index] for index in indices),
            key=lambda key: (regressions[key].first_bad.position, key),
        )
        places = sorted(indices, key=lambda index: (foremost_bad(groups[index]), index))
        continued.update(zip(places, keys, strict=True))


def decided_before(group: Group, snapshot: Snapshot) -> Regression | None:
    """The withdrawn regression in which people have decided on this very step already, newest first.

    Noise takes a step away and brings it back a commit beside: that is no news.
    """
    if not group.members or any(change.regression_id for change in group.members):
        return None
    change = foremost_change(group.members)
    decided = [
        regression
        for regression in snapshot.regressions
        if regression.withdrawn
        and regression.triaged_away
        and regression.branch == snapshot.branch
        # In the many commits of what came gradually there may be any step.
        and is_gradual_counter(regression) == change.gradual
        and regression.range.overlap(change.widened)
        and is_alike_measured(regression, change)
        and is_no_larger(change, regression)
    ]
    return max(decided, key=lambda regression: regression.triaged_at, default=None)


def is_alike_measured(regression: Regression, change: Change) -> bool:
    """The kinds that see the same step, of one configuration: times and rates are one measurement."""
    kinds = regression.series.metric.kind, change.series.metric.kind
    alike = kinds[0] == kinds[1] or all(kind in CLOCKED_KINDS for kind in kinds)
    return alike and regression.series.configuration_id == change.series.configuration_id


def is_no_larger(change: Change, decided: Regression) -> bool:
    """True for the step that was decided on, and not a second one on top of it."""
    if not change.ratio or not decided.ratio:
        return change.ratio == decided.ratio
    return log_size(change) <= LARGER_THAN_DECIDED * log_size(
        Change(None, decided.series, decided.last_good, decided.first_bad, 0, 0, ratio=decided.ratio)
    )
