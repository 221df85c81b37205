"""How many steps to measure: chosen from the times at which a script's first steps came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

WARMUP_SECONDS, WINDOW_SECONDS = 2.0, 3.0
LEAST_STEPS, MOST_STEPS, MOST_COUNTED = 10, 20_000, 200
# A rollout or an evaluation, in which no step comes: the window holds so many of them.
STALLS = 4
MOST_SECONDS = 30.0
LOOK_SECONDS = 10.0
# Fewer than these are too few samples to the harness; taken where they take no longer than a first look.
ENOUGH_STEPS = 30
REPETITIONS, FEW_REPETITIONS = 5, 3
COUNTING_SLOWDOWN = 3
LONG_RUN = 300.0
LEAST_TIME_LIMIT, TIME_LIMIT_FACTOR = 600, 4


@dataclass(frozen=True, slots=True)
class Window:
    """The steps of a repetition, and the seconds that a start and a step take."""

    warmup_steps: int
    steps: int
    start_seconds: float
    step_seconds: float

    @property
    def counting_steps(self) -> int:
        """Of each of two windows that follow the warm-up, within the steps that a repetition takes."""
        return max(1, min(MOST_COUNTED, self.steps // 2))

    @property
    def repetition_seconds(self) -> float:
        return self.start_seconds + (self.warmup_steps + self.steps) * self.step_seconds

    @property
    def repetitions(self) -> int:
        """Fewer where a run would take long."""
        return FEW_REPETITIONS if self._run_seconds(REPETITIONS) > LONG_RUN else REPETITIONS

    @property
    def run_seconds(self) -> float:
        """About what a whole run takes, with the counting."""
        return self._run_seconds(self.repetitions)

    @property
    def time_limit(self) -> int:
        return max(LEAST_TIME_LIMIT, round_number(TIME_LIMIT_FACTOR * self.run_seconds))

    def _run_seconds(self, repetitions: int) -> float:
        counted = (self.warmup_steps + 2 * self.counting_steps) * self.step_seconds
        return repetitions * self.repetition_seconds + self.start_seconds + COUNTING_SLOWDOWN * counted


def choose_window(
    start_seconds: float, progress: Sequence[tuple[float, int]], taken: int | None = None
) -> Window:
    """From the number of steps done at each time; `taken` are all that the script has, where it ended.

    The rate is that of the second half, since a first step compiles and allocates.
    """
    last_time, last_steps = progress[-1]
    halfway = next(
        ((time, steps) for time, steps in progress if 2 * time >= last_time and steps < last_steps),
        progress[0],
    )
    rate_steps, rate_time = last_steps - halfway[1], last_time - halfway[0]
    step = rate_time / rate_steps if rate_steps > 0 and rate_time > 0 else max(last_time, 0.001)
    if taken is not None:
        warmup = taken // 5
        # Some are left out: the number may differ from run to run.
        steps = max(1, taken - warmup - max(1, taken // 20))
        return Window(warmup, steps, start_seconds, step)
    seconds = min(MOST_SECONDS, max(WINDOW_SECONDS, STALLS * longest_stall(progress)))
    warmup = max((steps for time, steps in progress if time <= WARMUP_SECONDS), default=1)
    wanted = max(round_number(seconds / step), min(ENOUGH_STEPS, int(LOOK_SECONDS / step)))
    steps = min(MOST_STEPS, max(LEAST_STEPS, wanted))
    # Steps of seconds each: a few of them tell more than a bearable time allows.
    if steps * step > MOST_SECONDS:
        steps, warmup = LEAST_STEPS, 2
    return Window(round_number(max(2, min(warmup, MOST_STEPS))), steps, start_seconds, step)


def shorten_window(window: Window) -> Window:
    """As much of a window as a first look may take."""
    most = max(LEAST_STEPS, int(LOOK_SECONDS / window.step_seconds))
    return replace(window, steps=min(window.steps, most))


def longest_stall(progress: Sequence[tuple[float, int]]) -> float:
    """The longest time between two steps that were seen to come."""
    came = [later[0] for earlier, later in pairwise(progress) if later[1] > earlier[1]]
    return max((later - earlier for earlier, later in pairwise(came)), default=0.0)


def round_number(value: float) -> int:
    """Two digits of it, upwards."""
    number = max(1, int(value + 0.999))
    unit = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // unit) * unit
