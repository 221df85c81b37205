"""Measures processes that the measured one spawns: the ranks of `torch.multiprocessing.spawn` among them."""

from __future__ import annotations

from multiprocessing import spawn
from typing import Any

_STARTS = "from multiprocessing.spawn import spawn_main; "


def hook_spawning(plan: str) -> None:
    """Let spawned processes, also those that they spawn, measure their own steps by the plan in that file.

    A process that takes no steps, such as a worker of a DataLoader, leaves nothing.
    """
    original = spawn.get_command_line

    def get_command_line(**descriptors: Any) -> list[Any]:
        measure = f"from paceline.measured.child import measure_spawned; measure_spawned({plan!r}); "
        words = original(**descriptors)  # the interpreter's path may be bytes
        return [word.replace(_STARTS, measure + _STARTS) if isinstance(word, str) else word for word in words]

    spawn.get_command_line = get_command_line
