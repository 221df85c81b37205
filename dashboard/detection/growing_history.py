"""`detect` on a history that has grown: the last look is kept, and a point more is one step more of its fit.

Until the noise is learnt anew nothing changes of what was fitted: the new points alone give the answer that a
whole look would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from dashboard.detection.history_fit import (
    Candidates,
    History,
    finite_values,
    fit_levels,
    learning_length,
    learning_phase,
    proven_starts,
    relocate_candidates,
    scale_history,
)
from dashboard.detection.levels import WINDOW_POINTS
from dashboard.detection.rules import ALARM
from dashboard.detection.segmentation import Floats, Segmentation
from dashboard.detection.short_histories import (
    SHORT_HISTORY,
    clear_starts,
    first_starts,
    with_first_starts,
)

MOST_LOOKS = 64  # that are kept: of a few hundred points each takes some 20 kB


@dataclass(slots=True)
class Look:
    """A history as `detect` has seen it: its values (n,) as they came, and the starts `found` in it.

    `due`: from how many points the noise is learnt by now. `learnt_starts` and `starts` are those of the
    cheapest levels, of the points that the noise was learnt from and of all. `first`: those that
    the history showed while it was short.
    """

    values: Floats
    due: int
    history: History
    fit: Segmentation
    learnt_starts: list[int]
    starts: list[int]
    found: list[int]
    first: list[int]

    def is_continued_by(self, values: Floats, due: int) -> bool:
        """Whether a whole look at these values would learn and fit what this one did, and then go on."""
        seen = len(self.values)
        return (
            due == self.due
            and len(values) > seen
            and np.array_equal(values[:seen], self.values)
            and self.history.scale.holds(values[seen:])
        )

    def extend(self, values: Floats) -> None:
        """Add what follows of values (n,), which continue these; see `is_continued_by`."""
        seen, before = len(self.values), self.starts
        self.values = values
        self.history = replace(self.history, values=self.history.scale.apply(values))
        for value in self.history.values[seen:].tolist():
            self.fit.add(value, self.history.noise)
        self.starts = self.fit.starts()
        # Of what comes after a start WINDOW_POINTS prove it: once they are there, more change nothing.
        if self.starts != before or (before and seen - before[-1] < WINDOW_POINTS):
            self.found = self.prove()

    def prove(self) -> list[int]:
        """Those starts of the cheapest levels that are proven."""
        if not self.starts:
            return []
        candidates = relocate_candidates(Candidates(self.learnt_starts, self.starts), self.history, ALARM)
        return proven_starts(self.history, ALARM, candidates)


def look_at(values: Floats, due: int, first: list[int]) -> Look:
    """A whole look at values (n,), more than those of a short history, which showed the `first` starts."""
    history = scale_history(values, ALARM.reach)
    fit, learnt_starts = fit_levels(history, ALARM)
    look = Look(values, due, history, fit, learnt_starts, fit.starts(), [], first)
    look.found = look.prove()
    return look


class RecentLooks:
    """The newest looks, by the first points of their histories: one of each. For several threads."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.looks: dict[bytes, Look] = {}

    def take(self, key: bytes) -> Look | None:
        """The look of a key, which is nobody else's until it is kept again."""
        with self.lock:
            return self.looks.pop(key, None)

    def keep(self, key: bytes, look: Look) -> None:
        with self.lock:
            self.looks[key] = look
            while len(self.looks) > MOST_LOOKS:
                del self.looks[next(iter(self.looks))]


RECENT_LOOKS = RecentLooks()


def find_alarms(values: Sequence[float]) -> list[int]:
    """What `find_starts` finds by the rule of alarms, and what the first points show; see `detect`."""
    array = finite_values(values)
    if len(array) <= SHORT_HISTORY:
        return clear_starts(array)
    due = learning_length(len(array), learning_phase(array))
    key = array[:SHORT_HISTORY].tobytes()
    look = RECENT_LOOKS.take(key)
    first = look.first if look else first_starts(array)
    if look and look.is_continued_by(array, due):
        look.extend(array)
    else:
        look = look_at(array, due, first)
    RECENT_LOOKS.keep(key, look)
    return with_first_starts(look.first, look.found)
