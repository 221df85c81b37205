"""The steps that detection finds in a series, kept as rows that stay the same rows while points arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from django.db.models import QuerySet

from dashboard import detection
from dashboard.environments import (
    Difference,
    RunEnvironments,
    machine_differences,
    settings_differences,
    software_differences,
    system_differences,
)
from dashboard.models import Change, Regression
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.regressions.reused_counters import leave_out_reused_counters
from dashboard.regressions.series.branch_line import given_line
from dashboard.regressions.series.history import ABSENT, History, MeasuredCommit, load_phases

# A step may be found up to this many measured commits from where it was found before, and is still the same:
# with few points after it, one noisy point moves the place where it fits best.
STABLE_WITHIN = 2
# What the phases of a step add up to, and what they add up.
WHOLE, PARTS = "step_time", "phase_self_time"
# So many runs of each side are compared in search of two that were measured alike; so many points before a
# step are looked through for them.
LEVEL_RUNS, SEARCHED_POINTS = 10, 50


@dataclass(frozen=True, slots=True)
class FoundChange:
    """One change of detection's, with the commits on both its sides and what changed around the code.

    `reach` are the positions of the measured commits before and after these two.
    """

    change: detection.Change
    last_good: MeasuredCommit
    first_bad: MeasuredCommit
    reach: tuple[int, int]
    system: tuple[Difference, ...] = ()
    software: tuple[Difference, ...] = ()
    settings: tuple[Difference, ...] = ()
    machine: tuple[Difference, ...] = ()

    @property
    def position(self) -> int:
        return self.first_bad.position

    @property
    def markers(self) -> list[list[str]]:
        return [list(marker) for marker in (*self.system, *self.software, *self.settings, *self.machine)]


@dataclass(slots=True)
class SyncedChanges:
    """What a judgement did to the rows of series. `altered`: those that are new, moved or of a new size."""

    counts: Counter[str] = field(default_factory=Counter)
    altered: list[Change] = field(default_factory=list)
    # All of them, those that stayed as well.
    rows: list[Change] = field(default_factory=list)
    # Whether changes for the worse are new or altered, or belong to no regression.
    unopened: bool = False
    # Regressions that lost a change, or the improvement that had repaired them.
    left: set[int] = field(default_factory=set)
    # Those at which the system or the software changed with the code, by the change's key.
    at_new_environment: dict[int, FoundChange] = field(default_factory=dict)


def find_changes(
    histories: Sequence[History],
    environments: RunEnvironments,
    risk: Callable[[], float] = lambda: 0.0,
    known: Mapping[int, Mapping[int, str]] | None = None,
) -> dict[int, list[FoundChange]]:
    """By series the changes of histories of one line, with what changed around the code at each.

    Those that were found before (`known`, or read here) are judged as known: a little noise neither moves nor
    removes them. `risk` tells the chance of a false step that phases may take, where there are any; see
    `detection.steps_of_parts`.
    """
    before = known_directions(histories) if known is None else known
    changes = {past.series.pk: judge_history(past, before[past.series.pk], risk) for past in histories}
    changes = leave_out_reused_counters(histories, changes)
    compared = runs_to_compare(histories, changes, environments)
    return {
        past.series.pk: [
            with_environment(past, change, compared[past.series.pk, change.index], environments)
            for change in changes[past.series.pk]
        ]
        for past in histories
    }


def runs_to_compare(
    histories: Sequence[History],
    changes: Mapping[int, Sequence[detection.Change]],
    environments: RunEnvironments,
) -> dict[tuple[int, int], tuple[int, int]]:
    """By series and index of each change a run before it and one after it, which tell what else moved.

    The two that are nearest; where these had other drivers or packages, as machines of a pool may have, two
    like them that had the same: what hasn't differed between their values hasn't made the step.
    """
    steps = [(past, change) for past in histories for change in changes[past.series.pk]]
    compared = {(past.series.pk, change.index): runs_beside(past, change.index) for past, change in steps}
    environments.read_runs(run for runs in compared.values() for run in runs)
    levels = {
        (past.series.pk, change.index): runs_of_levels(past, changes[past.series.pk], change)
        for past, change in steps
        if differ_in_environment(compared[past.series.pk, change.index], environments)
    }
    environments.read_runs(run for sides in levels.values() for side in sides for run in side)
    for step, (before, after) in levels.items():
        pairs = product(reversed(before), after)
        alike = (pair for pair in pairs if not differ_in_environment(pair, environments))
        compared[step] = next(alike, compared[step])
    return compared


def _build_known_directions(has_fork: bool) -> QuerySet[Any, Any]:
    rows = Change.objects.filter(given_line("first_bad", has_fork), series__in_array=Parameter("series"))
    return rows.order_by().values_list("series", "position", "direction")


_KNOWN_DIRECTIONS: CompiledQuery[Any] = CompiledQuery(_build_known_directions)


def known_directions(histories: Sequence[History]) -> dict[int, dict[int, str]]:
    """By series and position the directions of changes that were found before, along the histories' line."""
    directions: dict[int, dict[int, str]] = {past.series.pk: {} for past in histories}
    if directions:
        line = histories[0].line
        for key, position, direction in _KNOWN_DIRECTIONS.read_values(
            tuple, line.has_fork, **line.given_values, series=list(directions)
        ):
            directions[key][position] = direction
    return directions


def judge_history(
    history: History, directions: Mapping[int, str], risk: Callable[[], float]
) -> list[detection.Change]:
    """The changes of a history that have a level before them."""
    known = {
        index: directions[commit.position]
        for index, commit in enumerate(history.measured)
        if commit.position in directions
    }
    changes = judge_with_guard(history, known, risk)
    return [change for change in changes if history.untainted_before(change.index) >= 0]


def judge_with_guard(
    history: History, known: Mapping[int, str], risk: Callable[[], float]
) -> list[detection.Change]:
    """The changes of a series; of a guarded quality with the points at which it leaves the guard's bounds.

    `known`: the directions of those that were found before, by their indices.
    """
    series = history.detection_series()
    if not history.series.guarded:
        phases = phases_for_detection(history)
        return judge_with_phases(series, phases, known, risk() if phases else 0.0)
    points = [commit.guarded_point for commit in history.measured]
    several = any(commit.guard and commit.guard.seeds > 1 for commit in history.measured)
    return detection.judge_guarded(series, points, list(known), one_seed=not several)


def judge_with_phases(
    whole: detection.Series, phases: Mapping[str, detection.Series], known: Mapping[int, str], risk: float
) -> list[detection.Change]:
    """The changes of a series, those that only its phases show, and what moved between these."""
    # Where work only moved, nobody has seen the whole step.
    changes = detection.judge_series(whole, [at for at in known if known[at] != Change.Direction.MOVED])
    if not phases:
        return changes
    of_phases = detection.steps_of_parts(whole, phases, list(known), changes, risk)
    return sorted([*changes, *of_phases], key=lambda change: change.index)


def phases_for_detection(history: History) -> dict[str, detection.Series]:
    """What the phases of a step took, point by point.

    A commit whose other phases were measured spent nothing in one that it lacks: a phase that is new or has
    another name steps from 0. Where a commit has none, a tainted point.
    """
    if history.series.metric.name != WHOLE or history.series.phase:
        return {}
    phases = load_phases(history, PARTS)
    nothing = [
        detection.Point(0.0, tainted=commit.tainted or all(point is ABSENT for point in of_commit))
        for commit, of_commit in zip(history.measured, zip(*phases.values(), strict=True), strict=False)
    ]
    return {
        phase: detection.Series(
            points=[
                empty if point is ABSENT else point for point, empty in zip(points, nothing, strict=True)
            ],
            better="lower",
            kind="time",
        )
        for phase, points in phases.items()
    }


def runs_beside(history: History, index: int) -> tuple[int, int]:
    """A run before a step and one after it."""
    return history.measured[history.untainted_before(index)].runs[-1], history.measured[index].runs[-1]


def runs_of_levels(
    history: History, changes: Sequence[detection.Change], change: detection.Change
) -> tuple[list[int], list[int]]:
    """Runs whose value is nearer to the level before a step than to the one after it, and the reverse.

    Of the points before it, whatever steps lie between, and of the level after it; the nearest LEVEL_RUNS of
    each, oldest first.
    """
    later = (other.index for other in changes if other.index > change.index)
    sides = (
        history.untainted(change.index - SEARCHED_POINTS, change.index),
        history.untainted(change.index, min(later, default=len(history.measured))),
    )
    before, after = (
        [
            commit.runs[-1]
            for commit in commits
            if (abs(commit.value - change.before) < abs(commit.value - change.after)) is is_before
        ]
        for commits, is_before in zip(sides, (True, False), strict=True)
    )
    return before[-LEVEL_RUNS:], after[:LEVEL_RUNS]


def differ_in_environment(runs: tuple[int, int], environments: RunEnvironments) -> bool:
    """Whether two runs had another system or other software."""
    before, after = (environments.of_run(run) for run in runs)
    return bool(system_differences(before, after) or software_differences(before, after))


def with_environment(
    history: History, change: detection.Change, runs: tuple[int, int], environments: RunEnvironments
) -> FoundChange:
    """A change with the commits on both its sides, and what of the environment differs between two `runs`."""
    before, after = (environments.of_run(run) for run in runs)
    good = history.untainted_before(change.index)
    earlier, later = history.untainted_before(good), history.untainted_after(change.index)
    positions = history.positions
    return FoundChange(
        change=change,
        last_good=history.measured[good],
        first_bad=history.measured[change.index],
        reach=(
            positions[earlier] if earlier >= 0 else positions[good],
            positions[later] if later < len(positions) else positions[change.index],
        ),
        system=tuple(system_differences(before, after)),
        software=tuple(software_differences(before, after)),
        settings=tuple(settings_differences(before, after)),
        machine=tuple(machine_differences(before, after)),
    )


def sync_changes(
    histories: Sequence[History], branch: str, found: Mapping[int, Sequence[FoundChange]]
) -> SyncedChanges:
    """Make the rows of these series what was found of them, by their key: kept, moved, made and removed.

    Safe to repeat. The caller holds the project's lock.
    """
    synced, writes = SyncedChanges(), ChangeWrites()
    rows = stored_rows(histories, branch)
    gone: list[Change] = []
    for past in histories:
        of_series = rows[past.series.pk]
        fresh = [change for change in found[past.series.pk] if change.position > past.frozen_until]
        pairs = match_rows(past, of_series, fresh)
        kept = {row.pk for _, row in pairs if row}
        gone += [row for row in of_series if row.pk not in kept]
        # A commit holds one change of a series: what moves right goes from the right, so that each place is
        # free.
        right = [(change, row) for change, row in pairs if row and row.position < change.position]
        rest = [(change, row) for change, row in pairs if not (row and row.position < change.position)]
        for change, row in [*reversed(right), *rest]:
            writes.note(past, change, row)
    remove_rows(gone, synced)
    writes.write(synced)
    return synced


_STORED_ROWS = CompiledQuery(
    lambda: (
        Change.objects.filter(
            series__in_array=Parameter("series"),
            first_bad__branch=Parameter("branch"),
            position__gt=Parameter("position"),
        )
        .select_related("last_good")
        .order_by("position")
    )
)


def stored_rows(histories: Sequence[History], branch: str) -> dict[int, list[Change]]:
    """By series its changes on a branch that aren't settled; in order."""
    frozen = {past.series.pk: past.frozen_until for past in histories}
    rows: dict[int, list[Change]] = {key: [] for key in frozen}
    stored = _STORED_ROWS.read_rows(
        series=list(frozen), branch=branch, position=min(frozen.values(), default=-1)
    )
    for row in stored:
        if row.position > frozen[row.series_id]:
            rows[row.series_id].append(row)
    return rows


def match_rows(
    history: History, rows: Sequence[Change], found: Sequence[FoundChange]
) -> list[tuple[FoundChange, Change | None]]:
    """Each change found, with the row that is the same change; in order, so that no two cross.

    A row whose very place a later one has is left for that one: a step that is new beside it takes nothing.
    """
    pairs: list[tuple[FoundChange, Change | None]] = []
    remaining = list(rows)
    for index, change in enumerate(found):
        later = found[index + 1 :]
        near = [
            row
            for row in remaining
            if is_same_step(history, row, change) and not any(is_unmoved(row, other) for other in later)
        ]
        row = nearest_row(near, change.position)
        if row is not None:
            remaining = remaining[remaining.index(row) + 1 :]
        pairs.append((change, row))
    return pairs


def nearest_row(rows: Sequence[Change], position: int) -> Change | None:
    return min(rows, key=lambda row: abs(row.position - position), default=None)


def is_same_step(history: History, row: Change, found: FoundChange) -> bool:
    """True where the row's step is the one that was found: by where it is and leads, not by its size."""
    if row.direction != found.change.direction:
        return False
    overlap = row.position > found.last_good.position and row.last_good.position < found.position
    return overlap or abs(history.index_of(row.position) - found.change.index) <= STABLE_WITHIN


def is_unmoved(row: Change, found: FoundChange) -> bool:
    """True for the step of the row, between the same two commits."""
    places = row.position, row.last_good_id, row.direction
    return places == (found.position, found.last_good.commit_id, found.change.direction)


def remove_rows(rows: Sequence[Change], synced: SyncedChanges) -> None:
    if not rows:
        return
    synced.left |= {row.regression_id for row in rows if row.regression_id}
    better = [row.first_bad_id for row in rows if row.direction == Change.Direction.IMPROVEMENT]
    if better:
        repaired = Regression.objects.filter(recovered_by__in=better, withdrawn_at=None)
        synced.left |= set(repaired.values_list("pk", flat=True))
    Change.objects.filter(pk__in=[row.pk for row in rows]).delete()
    synced.counts["withdrawn"] += len(rows)


@dataclass(slots=True)
class ChangeWrites:
    """What is to be written of the changes of many series, by what is new of each; in their order."""

    noted: list[tuple[str, Change, FoundChange]] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)

    def note(self, history: History, found: FoundChange, row: Change | None) -> None:
        """Bring a change's row up to date, not yet the stored one."""
        values = change_values(history, found)
        self.columns = {name.removesuffix("_id") for name in values}
        kind = what_is_new(row, values)
        if row is None:
            row = Change(series=history.series, **values)
        elif kind != "kept":
            for name, value in values.items():
                setattr(row, name, value)
        self.noted.append((kind, row, found))

    def write(self, synced: SyncedChanges) -> None:
        """What moved first, one by one, so that the places of what is new are free."""
        for row in self.of_kind("moved"):
            row.save()
        if measured := self.of_kind("measured"):
            Change.objects.bulk_create(
                measured, update_conflicts=True, unique_fields=["id"], update_fields=self.columns
            )
        Change.objects.bulk_create(self.of_kind("found"))
        for kind, row, found in self.noted:
            synced.counts[kind] += 1
            synced.rows.append(row)
            if row.direction == Change.Direction.REGRESSION and (kind != "kept" or not row.regression_id):
                synced.unopened = True
            if kind != "kept":
                synced.altered.append(row)
            if found.system or found.software:
                synced.at_new_environment[row.pk] = found

    def of_kind(self, kind: str) -> list[Change]:
        return [row for noted, row, _ in self.noted if noted == kind]


def change_values(history: History, found: FoundChange) -> dict[str, Any]:
    """The columns of a change's row, as it is found now."""
    change, metric = found.change, history.series.metric
    # A quality may be 0 or negative: it is weighed and shown by its levels.
    has_ratio = bool(change.before) and not metric.is_quality
    guard = found.first_bad.guard
    return {
        "first_bad_id": found.first_bad.commit_id,
        "last_good_id": found.last_good.commit_id,
        "position": found.position,
        "direction": change.direction,
        "before": metric.off_ratio_scale(change.before),
        "after": metric.off_ratio_scale(change.after),
        "ratio": change.ratio if has_ratio else None,
        "low": change.low if has_ratio else None,
        "high": change.high if has_ratio else None,
        "confidence": change.confidence,
        "doubts": [doubt.as_json() for doubt in change.doubts],
        "markers": found.markers,
        "reach_good": found.reach[0],
        "reach_bad": found.reach[1],
        "guard_state": guard.state if guard else "",
        "guard_bound": guard.bound if guard else None,
    }


def what_is_new(row: Change | None, values: Mapping[str, object]) -> str:
    """found: new; moved: to another commit; measured: its size is known better; kept: nothing is new."""
    if row is None:
        return "found"
    if row.position != values["position"] or row.first_bad_id != values["first_bad_id"]:
        return "moved"
    return "kept" if all(getattr(row, name) == value for name, value in values.items()) else "measured"
