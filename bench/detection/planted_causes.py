"""What simulated histories are made of: causes close to each other, and the noise of runs and pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# So many commits are measured before the first cause, and from it on.
QUIET, BEHIND = 20, 14


@dataclass(frozen=True, slots=True)
class Causes:
    """By how much each of some commits in a row is slower, in percent; 0 is a quiet one.

    `machine`: by how much the machine is slower from the commit `machine_at` on, counted from the first.
    """

    steps: Sequence[float]
    machine: float = 0.0
    machine_at: int = 0

    def __str__(self) -> str:
        steps_text = ", ".join(f"{step:g}" if step else "-" for step in self.steps)
        if not self.machine:
            return steps_text
        return f"{steps_text}; machine {self.machine:g} from {self.machine_at:+d} on"

    @property
    def places(self) -> list[int]:
        return [QUIET + index for index, step in enumerate(self.steps) if step]


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviations of a run and of a pair; `late`: so many commits later an experiment is answered."""

    run: float
    pair: float
    late: int = 0

    def __str__(self) -> str:
        return f"{self.run:.1%}{', late' if self.late else ''}"
