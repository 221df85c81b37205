"""Small steps of a series that together are worth a person's time, where none of them is: it grows gradually.

2 % more calls at each of ten commits open no regression (`series_kinds.may_open_regression`), and are 22 %
together. So a step that is too small is weighed with those before it, from the best level that they began at:
once they would open a regression as one step, they are one change over all of their commits. It goes on with
the next ones once these are worth as much again, on top of the level up to which it was reported.

Series whose every relevant step opens a regression, as those of times and memory, have none: detection finds
several of their small steps as one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dashboard.judged_counters import LARGE_RATIO
from dashboard.measured_kinds import is_exact_counter
from dashboard.regressions.decision.facts import Change, Regression
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.decision.repair import is_level_back
from dashboard.regressions.decision.series_kinds import (
    WORSE,
    SeriesLike,
    is_offset_by_speedup,
    log_size,
    may_open_regression,
    speedups_among,
)

GRADUAL = "gradual"
# Steps are weighed together within so many commits; what has stood for longer is the level by now.
TOGETHER_WITHIN = 100
# One gradual change goes on for so many at most: a decision reads no further back.
MOST_COMMITS = 400


class Growth(NamedTuple):
    """A series' way from one level to another, as `may_open_regression` weighs one."""

    series: SeriesLike
    before: float
    after: float
    direction: str = WORSE

    @property
    def ratio(self) -> float | None:
        return self.after / self.before if self.before else None


class Step(NamedTuple):
    """One step for the worse of a series, by its row's key; `bad` is the position of its first bad commit."""

    key: int
    bad: int
    before: float
    after: float


@dataclass(slots=True)
class GradualChange:
    """The steps of one, in order. What lies behind the last one isn't worth telling yet."""

    steps: list[Change]
    before: float
    owner: int | None = None

    @property
    def last(self) -> Change:
        return self.steps[-1]

    @property
    def range(self) -> Range:
        return Range(self.steps[0].range.good, self.last.range.bad)

    def is_left_over(self, standing: Collection[int]) -> bool:
        """True for the steps of a regression that lost others of its commits, and doesn't stand any more."""
        return self.last.regression_id is not None and self.last.regression_id not in standing

    def as_change(self) -> Change:
        """The row of the last step stands for it."""
        first, last = self.steps[0], self.last
        growth = Growth(last.series, self.before, last.after)
        markers = dict.fromkeys(marker for step in self.steps for marker in step.markers)
        return replace(
            last,
            last_good=first.last_good,
            before=self.before,
            ratio=growth.ratio,
            low=growth.ratio,
            high=growth.ratio,
            reach=Range(first.widened.good, last.widened.bad),
            environment_only=all(step.environment_only for step in self.steps),
            markers=tuple(markers),
            regression_id=self.owner,
            gradual=True,
        )


def is_gradual_counter(regression: Regression) -> bool:
    """True for a regression by a gradual change, not for one that pairs have shown to come gradually."""
    evidence = regression.bisection
    return evidence is not None and evidence.code == GRADUAL and is_exact_counter(regression.series)


def is_sized_by_step(regression: Regression, step: Change) -> bool:
    """True for a regression by gradual changes or by the step's series, not where it is mere evidence."""
    return is_gradual_counter(regression) or regression.series.pk == step.series.pk


def has_grown_again(regression: Regression | None, change: Change) -> bool:
    """Whether what a gradual change adds to the regression that reported it is worth reporting by itself."""
    if regression is None or not change.gradual or not is_gradual_counter(regression):
        return False
    if regression.series.pk == change.series.pk:
        return is_relevant(change.series, regression.after, change)
    if not regression.ratio or not change.ratio:
        return False
    return log_size(change) - abs(math.log(regression.ratio)) >= math.log(LARGE_RATIO)


def gradual_changes(
    changes: Sequence[Change], regressions: Iterable[Regression], altered: Collection[int] | None = None
) -> list[Change]:
    """The gradual changes of a branch's series, whose steps are among its changes, in the series' order.

    A part of which a person has decided isn't counted again: what comes on top of it is another one. Of steps
    that no regression holds all are sure to be there only beside those that are `altered` (None: all are).
    """
    by_series: dict[int, list[Change]] = {}
    for change in sorted(changes, key=lambda change: change.first_bad.position):
        if is_exact_counter(change.series):
            by_series.setdefault(change.series.pk, []).append(change)
    standing = {row.pk: row for row in regressions if not row.withdrawn}
    speedups: dict[int, list[Change]] = {}
    for change in speedups_among(changes):
        speedups.setdefault(change.series.configuration_id, []).append(change)
    return [
        gradual.as_change()
        for steps in by_series.values()
        if len(steps) > 1
        for gradual in _SeriesSteps(standing, speedups.get(steps[0].series.configuration_id, ())).read(steps)
        if altered is None or gradual.owner or gradual.last.pk in altered or gradual.is_left_over(standing)
    ]


@dataclass(slots=True)
class _SeriesSteps:
    """One pass over the steps of a series. `waiting`: those for the worse that no gradual change has yet."""

    standing: dict[int, Regression]
    speedups: Sequence[Change]
    found: list[GradualChange] = field(default_factory=list)
    current: GradualChange | None = None
    waiting: list[Change] = field(default_factory=list)

    def read(self, steps: Sequence[Change]) -> list[GradualChange]:
        level = steps[0].before
        for step in steps:
            if step.before != level:
                self._restart()  # A step between isn't known here.
            level = step.after
            self._add(step)
        return self.found

    def _restart(self) -> None:
        self.current, self.waiting = None, []

    def _add(self, step: Change) -> None:
        if step.direction != WORSE:
            if self.current and is_level_back(self.current.as_change(), step):
                self._restart()
        elif may_open_regression(step) or is_offset_by_speedup(step, self.speedups):
            self._restart()  # It is reported by itself, or was the price of a faster step.
        else:
            self._weigh(step)

    def _weigh(self, step: Change) -> None:
        near = step.first_bad.position - TOGETHER_WITHIN
        if self.current and self.current.range.bad < near:
            self.current = None
        self.waiting = [other for other in self.waiting if other.last_good.position >= near] + [step]
        first, before = best_start(self.waiting)
        if self.current:
            first, before = 0, self.current.last.after
        if not is_relevant(step.series, before, step):
            return
        steps, self.waiting = self.waiting[first:], []
        owner = next((key for each in steps if (key := self._owner(each))), None)
        if self.current and self._goes_on(self.current, step, owner):
            self.current.steps += steps
            self.current.owner = self.current.owner or owner
        else:
            self.current = GradualChange(steps, before, owner)
            self.found.append(self.current)

    def _owner(self, step: Change) -> int | None:
        row = self.standing.get(step.regression_id or 0)
        return row.pk if row and is_sized_by_step(row, step) else None

    def _goes_on(self, current: GradualChange, step: Change, owner: int | None) -> bool:
        """Whether steps that `owner` holds are the same gradual change as those before them."""
        rows = [self.standing[key] for key in {current.owner, owner} if key]
        if owner != current.owner and any(row.triaged_away for row in rows):
            return False
        return step.first_bad.position - current.range.good <= MOST_COMMITS


def best_start(steps: Sequence[Change] | Sequence[Step]) -> tuple[int, float]:
    """The index of the step that begins at the best level, the last of several, and that level."""
    lower = steps[-1].after > steps[-1].before
    levels = [step.before for step in steps]
    best = min(levels) if lower else max(levels)
    return len(levels) - 1 - levels[::-1].index(best), best


def is_relevant(series: SeriesLike, before: float, step: Change | Step) -> bool:
    """Whether the way from a level to the one after a step for the worse would open a regression."""
    worse = (step.after - before) * (step.after - step.before) > 0
    return worse and may_open_regression(Growth(series, before, step.after))


def steps_weighed_together(series: SeriesLike, steps: Sequence[Step], altered: Collection[int]) -> set[int]:
    """The keys of those steps for the worse of a series, in order, that a decision has to know together.

    These are all that may be one gradual change with a step that is `altered`, and sometimes more. Those
    after it are among them: it may have been measured late, and be where they begin.
    """
    keys: set[int] = set()
    start, newest = 0, -math.inf
    for index, step in enumerate(steps):
        if step.key in altered:
            newest = step.bad
        earliest = step.bad - TOGETHER_WITHIN
        while steps[start].bad < earliest:
            start += 1
        near = steps[start : index + 1] if newest >= earliest else ()
        if len(near) > 1 and is_relevant(series, best_start(near)[1], step):
            keys.update(other.key for other in near)
    return keys
