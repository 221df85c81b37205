"""The steps that detection finds in a series, kept as rows that stay the same rows while points arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dashboard import detection
from dashboard.models import Change
from dashboard.regressions import markers
from dashboard.regressions.history import History, Measured, parts

# A step may be found up to this many measured commits from where it was found before, and is still the same:
# with few points behind it, one noisy point moves the place where it fits best.
STABLE_WITHIN = 2
# What the phases of a step add up to, and what they add up.
WHOLE, PARTS = "step_time", "phase_self_time"


@dataclass(frozen=True, slots=True)
class Found:
    """One change of detection's, with the commits on both its sides and what changed around the code."""

    change: detection.Change
    last_good: Measured
    first_bad: Measured
    system: tuple[str, ...] = ()
    software: tuple[str, ...] = ()
    machine: tuple[str, ...] = ()

    @property
    def position(self) -> int:
        return self.first_bad.position


@dataclass(slots=True)
class Synced:
    """What a judgement did to a series' rows. `altered`: those that are new, moved or of a new size."""

    counts: Counter[str] = field(default_factory=Counter)
    altered: list[Change] = field(default_factory=list)
    # Regressions that lost a change.
    left: set[int] = field(default_factory=set)
    # Where the surroundings changed with the code: by the change's primary key.
    surroundings: dict[int, Found] = field(default_factory=dict)


def find(history: History, environments: markers.Environments) -> list[Found]:
    """The changes of a series, with doubts about those at which the environment changed too.

    Those that were found before are judged as known: a little noise neither moves nor removes them.
    """
    rows = Change.objects.filter(history.line.holds("first_bad"), series=history.series)
    places = set(rows.values_list("position", flat=True))
    known = [index for index, one in enumerate(history.measured) if one.position in places]
    phases = phases_of(history)
    plain = judged(history.for_detection(), phases, known)
    # Only the environments at a step are read: an environment lies in a large document.
    environments.read(run for one in plain for run in sides(history, one.index))
    marked = {one.index: text for one in plain if (text := marker_at(history, one.index, environments))}
    told = judged(history.for_detection(marked), phases, known) if marked else plain
    return [surrounded(history, one, environments) for one in told if history.before(one.index) >= 0]


def judged(
    whole: detection.Series, phases: Mapping[str, detection.Series], known: Sequence[int]
) -> list[detection.Change]:
    """The changes of a series, and those that only its phases show."""
    found = detection.judge_series(whole, known)
    return sorted([*found, *detection.steps_of_parts(whole, phases, known, found)], key=lambda one: one.index)


def phases_of(history: History) -> dict[str, detection.Series]:
    """What the phases of a step took, point by point; where a commit lacks a phase, a tainted point."""
    if history.series.metric.name != WHOLE or history.series.phase:
        return {}
    absent = detection.Point(0.0, tainted=True)
    return {
        phase: detection.Series(
            points=[
                detection.Point(one.value, one.samples, one.tainted)
                if (one := by_position.get(place.position))
                else absent
                for place in history.measured
            ],
            better="lower",
            kind="time",
        )
        for phase, by_position in parts(history, PARTS).items()
    }


def sides(history: History, index: int) -> list[int]:
    """A run before a step and one after it."""
    good = history.before(index)
    return [history.measured[i].runs[-1] for i in (good, index) if i >= 0]


def environments_at(
    history: History, index: int, environments: markers.Environments
) -> tuple[markers.Environment, markers.Environment]:
    runs = sides(history, index)
    return environments.of(runs[0]), environments.of(runs[-1])


def marker_at(history: History, index: int, environments: markers.Environments) -> str:
    pair = environments_at(history, index, environments)
    return ", ".join([*markers.system(*pair), *markers.software(*pair), *markers.machine(*pair)])


def surrounded(history: History, change: detection.Change, environments: markers.Environments) -> Found:
    pair = environments_at(history, change.index, environments)
    return Found(
        change=change,
        last_good=history.measured[history.before(change.index)],
        first_bad=history.measured[change.index],
        system=tuple(markers.system(*pair)),
        software=tuple(markers.software(*pair)),
        machine=tuple(markers.machine(*pair)),
    )


def sync(history: History, branch: str, found: Sequence[Found]) -> Synced:
    """Make the rows of a series what was found: rows are kept, moved, made and removed; safe to repeat.

    The caller holds the project's lock.
    """
    rows = list(
        Change.objects.filter(
            series=history.series, first_bad__branch=branch, position__gt=history.frozen_until
        )
        .select_related("last_good")
        .order_by("position")
    )
    fresh = [one for one in found if one.position > history.frozen_until]
    pairs = matched(history, rows, fresh)
    done = Synced()
    remove(rows, {row.pk for _, row in pairs if row}, done)
    # A commit holds one change of a series: what moves right goes from the right, so that each place is free.
    right = [(one, row) for one, row in pairs if row and row.position < one.position]
    rest = [(one, row) for one, row in pairs if not (row and row.position < one.position)]
    for one, row in [*reversed(right), *rest]:
        write(history, one, row, done)
    return done


def matched(
    history: History, rows: Sequence[Change], found: Sequence[Found]
) -> list[tuple[Found, Change | None]]:
    """Each change found, with the row that is the same change; in order, so that no two cross.

    A row whose very place a later one has is left for that one: a step that is new beside it takes nothing.
    """
    pairs: list[tuple[Found, Change | None]] = []
    remaining = list(rows)
    for place, one in enumerate(found):
        later = found[place + 1 :]
        near = [
            row
            for row in remaining
            if same(history, row, one) and not any(is_unmoved(row, other) for other in later)
        ]
        row = min(near, key=lambda row: abs(row.position - one.position), default=None)
        if row is not None:
            remaining = remaining[remaining.index(row) + 1 :]
        pairs.append((one, row))
    return pairs


def same(history: History, row: Change, found: Found) -> bool:
    """Is the step of the row the step that was found? By where it is and where it leads, not by its size."""
    if row.direction != found.change.direction:
        return False
    overlap = row.position > found.last_good.position and row.last_good.position < found.position
    return overlap or abs(history.index_of(row.position) - found.change.index) <= STABLE_WITHIN


def is_unmoved(row: Change, found: Found) -> bool:
    """Is it the step of the row, between the same two commits?"""
    places = row.position, row.last_good_id, row.direction
    return places == (found.position, found.last_good.commit_id, found.change.direction)


def remove(rows: Sequence[Change], kept: set[int], done: Synced) -> None:
    for row in rows:
        if row.pk not in kept:
            if row.regression_id:
                done.left.add(row.regression_id)
            row.delete()
            done.counts["withdrawn"] += 1


def write(history: History, found: Found, row: Change | None, done: Synced) -> None:
    change, metric = found.change, history.series.metric
    values = {
        "first_bad_id": found.first_bad.commit_id,
        "last_good_id": found.last_good.commit_id,
        "position": found.position,
        "direction": change.direction,
        "before": metric.off_ratio_scale(change.before),
        "after": metric.off_ratio_scale(change.after),
        "ratio": change.ratio if change.before else None,
        "low": change.low if change.before else None,
        "high": change.high if change.before else None,
        "confidence": change.confidence,
        "doubts": [doubt[:200] for doubt in change.doubts],
        "markers": [text[:200] for text in (*found.system, *found.software, *found.machine)],
    }
    kind = verdict(row, values)
    done.counts[kind] += 1
    if row is None:
        row = Change(series=history.series, **values)
    elif kind != "kept":
        for name, value in values.items():
            setattr(row, name, value)
    if kind != "kept":
        row.save()
        done.altered.append(row)
    if found.system or found.software:
        done.surroundings[row.pk] = found


def verdict(row: Change | None, values: Mapping[str, object]) -> str:
    """found: new; moved: to another commit; measured: its size is known better; kept: nothing is new."""
    if row is None:
        return "found"
    if row.position != values["position"] or row.first_bad_id != values["first_bad_id"]:
        return "moved"
    return "kept" if all(getattr(row, name) == value for name, value in values.items()) else "measured"
