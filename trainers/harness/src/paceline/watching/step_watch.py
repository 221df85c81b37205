"""When a process's steps were seen to come, to tell a hang from a training that is merely slow."""

from __future__ import annotations

# A silence so many times as long as the longest one before is none of a training that goes on as it did.
LONG_SILENCE = 5.0
# Shorter ones, in seconds, and those after so few steps that the first ones' compiling counts, tell nothing.
LEAST_SILENCE, LEAST_STEPS = 1.0, 3


class StepWatch:
    """Keeps how many steps were reported, when the last ones were, and how far apart they came.

    `quiet_since` is when the number changed last; while it is 0, when it was looked at last.
    """

    def __init__(self, started: float) -> None:
        self.done = 0
        self.quiet_since = started
        self._longest = 0.0

    def note(self, done: int, now: float) -> None:
        """Take the number of steps that the process tells of at this time."""
        if done > self.done:
            self._longest = max(self._longest, now - self.quiet_since)
            self.done = done
        elif done:
            return
        self.quiet_since = now

    def has_stalled(self, now: float) -> bool:
        """Whether the last step is long ago, compared with the times between those before."""
        silence = now - self.quiet_since
        return self.done >= LEAST_STEPS and silence > max(LEAST_SILENCE, LONG_SILENCE * self._longest)

    def still_steps(self, now: float) -> bool:
        """Whether the last step is no longer ago than others were apart."""
        silence = now - self.quiet_since
        return self.done >= LEAST_STEPS and silence <= max(LEAST_SILENCE, self._longest)
