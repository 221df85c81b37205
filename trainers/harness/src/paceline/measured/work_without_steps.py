"""What a script did that took no step: for the sentence that says what to do about it."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from typing import Any

from .mark_recorder import MarkRecorder
from .rank_programs import started_commands

# Libraries that train without a torch optimizer in the process that was started.
LIBRARIES = ("torch", "jax", "tensorflow", "mlx", "paddle", "mxnet", "ray")


def describe_work_without_steps(recorder: MarkRecorder[Any]) -> dict[str, Any]:
    """Return how often each phase was entered, what was imported, how long child processes worked, and the
    commands of programs of Python among them."""
    entered: Counter[str] = Counter()
    for state in list(recorder.states):
        for node in list(state.nodes):
            entered[node.name] += node.count
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "phases": dict(entered),
        "libraries": [name for name in LIBRARIES if name in sys.modules],
        "child_seconds": children.ru_utime + children.ru_stime,
        "programs": started_commands,
    }
