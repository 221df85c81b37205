"""Two device profiles subtracted: which kernels are new, gone, more or slower, and which idle time grew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ..document_rows import DeviceProfile, TimelineRow

# What differs by less than this part of the step is noise of a few profiled steps, unless its number differs.
LEAST_SHARE = 0.01
# Numbers per step that differ by less are the same: a window may hold one more of what comes now and then.
SAME_COUNT = 0.05

Key = tuple[str, str, str]  # name, operation, phase
Tally = tuple[float, float]  # number and seconds per step


@dataclass(frozen=True, slots=True)
class TimelineDifference:
    """A kernel or operation in a phase, or an idle cause, on both sides; per step."""

    name: str
    operation: str
    phase: str
    before: Tally
    after: Tally

    @property
    def is_new(self) -> bool:
        """Whether there is none of it before."""
        return self.before[0] == 0 < self.after[0]

    @property
    def growth(self) -> float:
        """Return the seconds that it takes more."""
        return self.after[1] - self.before[1]

    @property
    def more(self) -> float:
        """Return how many more there are."""
        return self.after[0] - self.before[0]

    def is_relevant(self, step: float) -> bool:
        """Whether its number or its time differs by more than noise."""
        most = max(self.before[0], self.after[0])
        return abs(self.more) > SAME_COUNT * most or abs(self.growth) >= LEAST_SHARE * step


def subtract_timelines(before: DeviceProfile, after: DeviceProfile) -> list[TimelineDifference]:
    """Return the kernels or operations that differ, the largest difference of time first.

    Empty where one ran on a device and the other didn't: then nothing is comparable.
    """
    if before.device != after.device:
        return []
    return _find_differences(_tally_rows(before.rows), _tally_rows(after.rows), after.step_seconds)


def subtract_idle_time(before: DeviceProfile, after: DeviceProfile) -> list[TimelineDifference]:
    """Return the idle times that differ, by cause and phase, the largest difference first."""
    if before.device != after.device:
        return []
    old, new = (
        {(row.cause, "", row.phase): (row.count, row.seconds) for row in profile.idle}
        for profile in (before, after)
    )
    every = _find_differences(old, new, after.step_seconds)
    return [row for row in every if abs(row.growth) >= LEAST_SHARE * after.step_seconds]


def _tally_rows(rows: Iterable[TimelineRow]) -> dict[Key, Tally]:
    sums: defaultdict[Key, Tally] = defaultdict(lambda: (0.0, 0.0))
    for row in rows:
        key = row.name, row.operation, row.phase
        sums[key] = sums[key][0] + row.count, sums[key][1] + row.seconds
    return dict(sums)


def _find_differences(old: dict[Key, Tally], new: dict[Key, Tally], step: float) -> list[TimelineDifference]:
    nothing = (0.0, 0.0)
    every = (
        TimelineDifference(*key, old.get(key, nothing), new.get(key, nothing))
        for key in dict.fromkeys((*old, *new))
    )
    found = [row for row in every if row.is_relevant(step)]
    return sorted(found, key=lambda row: (-abs(row.growth), row.name, row.phase))
