"""What a measured process is asked to do, as the file that it reads first."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

# Of the measured process, and of those that it forks or spawns, of which one alone takes steps.
PROGRESS_PLACES = 2
EMPTY_PROGRESS = bytes(8 * PROGRESS_PLACES)


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """The task of one measured process. `progress` is a file for the number of steps done, 8 bytes each."""

    kind: str  # timing, counting, profiling or whole
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
    module: bool = False  # the script is the name of a module, as of `python -m`
    step: str = ""  # what ends a step, where it was chosen
    notes_files: bool = False  # a counting process tells which files it read
    processes: int = 1  # ranks that the harness starts
    launcher: list[str] = field(default_factory=list)  # the command that starts them instead
    python_path: list[str] = field(default_factory=list)  # folders that stand first on the path of imports
    working_directory: str = ""  # where the script is started, within `folder`
    keep_running: bool = False  # once all is measured, and when the harness is gone
    is_program: bool = False  # of a rank that the measured script itself starts as a program
    one_core: bool = False  # where it does, its thread and the other one's stay on one processor

    @property
    def has_ranks(self) -> bool:
        """Whether the measured process starts ranks, which are measured in its stead."""
        return self.processes > 1 or bool(self.launcher)

    def launcher_command(self, plan_file: str) -> list[str]:
        """Return the command by which the launcher starts each rank with the plan in that file."""
        return [*self.launcher, "paceline.measured.child", plan_file]

    def save(self, path: Path) -> None:
        """Write the plan for the process to read."""
        path.write_text(json.dumps(asdict(self)))
