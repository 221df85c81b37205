"""What a measured process is told to do, as the file that it reads first."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """The task of one measured process. `progress` is a file for the number of steps done, as 8 bytes."""

    kind: str  # timing, counting or whole
    script: str
    arguments: list[str]
    folder: str
    warmup_steps: int
    steps: int
    seed: int
    result: str
    progress: str
    package: str
    parent: int
    auto: bool = False
    turns: str = ""  # the pipe of a timing process that takes turns with another one
    one_core: bool = False  # where it does, its thread and the other one's stay on one processor

    def save(self, path: Path) -> None:
        """Write the plan for the process to read."""
        path.write_text(json.dumps(asdict(self)))
