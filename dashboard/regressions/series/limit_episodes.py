"""How a series stands to its limit along a line of history: from where on it was crossed, and until when.

Worked out of the values alone, commit by commit: in whatever order they were measured, the same values have
the same episodes. What comes later on the line doesn't change how an earlier commit is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dashboard.detection.noise import neighbour_noise
from dashboard.regressions.decision.facts import Commit, EpisodeCommits, LimitLink

# A limit is kept again where a value lies so many noises within it; a value that hovers at it does so rarely.
CLEAR_OF_NOISE = 3.0
# Or where so many commits in a row keep it, however little.
KEPT_IN_A_ROW = 10
# Crossed again within so many commits it hovers: then only a row of commits shows that it is kept.
SOON_AGAIN = 20
# The noise is that of so many values before; fewer than so many don't tell it.
NOISE_WINDOW = 30
FEWEST_FOR_NOISE = 5
# A series without a value at so many measured commits, and for so many times as long as it ever paused,
# isn't measured any more.
GONE_AFTER = 30
GONE_TIMES = 3


@dataclass(frozen=True, slots=True)
class LimitPoint:
    """How a commit stood to a limit: the median of its undisturbed runs, `margin` within it or, negative,
    beyond it.

    `row` is the stored one that names a crossing; `links` are the regressions that tell those of the
    commit.
    """

    commit: Commit
    value: float
    margin: float
    bound: float
    row: int = 0
    links: tuple[LimitLink, ...] = ()

    @property
    def crossed(self) -> bool:
        return self.margin < 0


class StoredPoint(NamedTuple):
    """At which position something was measured; rows that were stored later have larger keys."""

    position: int
    row: int


@dataclass(frozen=True, slots=True)
class Episode:
    """A limit that was crossed at `first`, where `before` had kept it, and that `kept` is the first to keep.

    `kept` None: it still is crossed. That it is kept was only clear at position `clear`. `gone`: the first
    commit without the series, which isn't measured any more.
    """

    first: LimitPoint
    before: LimitPoint | None = None
    kept: LimitPoint | None = None
    clear: int | None = None
    links: tuple[LimitLink, ...] = ()
    gone: Commit | None = None

    @property
    def commits(self) -> EpisodeCommits:
        before, kept = (point.commit if point else None for point in (self.before, self.kept))
        return EpisodeCommits(self.first.commit, before, kept, self.gone)


def find_episodes(points: Sequence[LimitPoint]) -> list[Episode]:
    """The episodes of a series' points, one for each commit, in the order of the line."""
    episodes: list[Episode] = []
    begun: int | None = None  # the point at which the open episode began
    streak: int | None = None  # the first of those in a row that keep the limit since
    ended: int | None = None  # the point at which the last episode was over
    values = np.array([point.value for point in points], dtype=np.float64)
    for at, point in enumerate(points):
        if point.crossed:
            if begun is None:
                begun = at
                before = points[at - 1] if at else None
                episodes.append(Episode(point, before))
            episodes[-1] = replace(episodes[-1], links=episodes[-1].links + point.links)
            streak = None
        elif begun is not None:
            streak = at if streak is None else streak
            hovers = ended is not None and begun - ended <= SOON_AGAIN
            clear = not hovers and point.margin > CLEAR_OF_NOISE * noise_before(values, at)
            if clear or at - streak + 1 >= KEPT_IN_A_ROW:
                episodes[-1] = replace(episodes[-1], kept=points[streak], clear=point.commit.position)
                begun, streak, ended = None, None, streak
    return episodes


def noise_before(values: NDArray[np.float64], at: int) -> float:
    """By how much the values (n,) before one differ from commit to commit; 0 where they are too few to tell.

    A few steps among them leave it as it is.
    """
    near = values[max(at - NOISE_WINDOW, 0) : at]
    return neighbour_noise(near) if len(near) >= FEWEST_FOR_NOISE else 0.0


def is_gone(own: Sequence[StoredPoint], others: Sequence[StoredPoint]) -> bool:
    """True for a series that isn't measured any more: the `others` have gone on long since, in history and in
    time, also for a series that is measured rarely. Both in the order of positions.

    A history that is filled up later has no end there.
    """
    last, newest = own[-1].position, max(point.row for point in own)
    since = {point.position for point in others if point.position > last and point.row > newest}
    places = np.searchsorted(sorted({point.position for point in others}), [point.position for point in own])
    left_out = int(np.diff(places).max(initial=0))
    return len(since) >= max(GONE_AFTER, GONE_TIMES * left_out)
