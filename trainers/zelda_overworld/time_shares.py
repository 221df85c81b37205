"""Where the time of one rollout and its update goes, by the document's categories, under cProfile as there.

Reported as gauges, so that every measured commit keeps them: `profiled_seconds.NAME` per 10,000 decisions,
`profiled_percent.NAME` of all time in the profiler, `profiled_calls.NAME` per 10,000 decisions. table.py
prints them. Like the document's, the categories are sums over functions; cached_property's own time is spent
inside some of the others too, so that `other` is that much too small.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterable
from cProfile import Profile
from dataclasses import dataclass
from types import CodeType
from typing import Any

import paceline
from arguments import Args

DECISIONS = 10_000
"""What all numbers are for."""


@dataclass(frozen=True)
class Part:
    """Functions whose time is summed: all of it, or only their own, without what they call.

    What `without` names is a part of these and a category of its own.
    """

    name: str
    functions: tuple[str, ...]
    own: bool = False
    without: tuple[str, ...] = ()


GETATTR, ISINSTANCE = "<built-in method builtins.getattr>", "<built-in method builtins.isinstance>"
ACTION_TO_ARRAY = ("RetroEnv.action_to_array",)
CHECKS = ("Critics._difference", "Critics.check_in_a_loop")

CATEGORIES = (
    Part("emulator", ("Emulator.finish", "Remote.finish"), without=ACTION_TO_ARRAY),
    Part(
        "network",
        tuple(f"<built-in method torch.{name}>" for name in ("conv2d", "_C._nn.linear", "relu")),
        own=True,
    ),
    Part("observation", ("Environment._observe",)),
    Part("backpropagation", ("<method 'run_backward' of 'torch._C._EngineBase' objects>",)),
    Part(
        "sampling",
        tuple(
            f"{kind}.{name}"
            for kind in ("Categorical", "MinimalCategorical")
            for name in ("__init__", "sample")
        ),
    ),
    Part("action_to_array", ACTION_TO_ARRAY),
    Part("equipment", ("Critics.check_one_by_one", "Critics.check_in_a_loop")),
    Part("is_loaded", ("Room.is_loaded", "LoadedRoom.is_loaded")),
    Part("full_location", ("Game.full_location",)),
    Part("cached_property", ("cached_property.__get__", "LazyAttribute.__get__"), own=True),
)
"""The rows of the document's table but the last one, which is the rest."""

DETAILS = (
    Part("stack", ("stack_tensors", "stack_arrays", "Rolling.push")),
    Part("image", ("image_in_three", "image_in_two", "Rolling.image")),
    Part("information", ("Information.vector", "SingleTensorInformation.vector")),
    Part("as_tensor", ("<built-in method torch.as_tensor>",)),
    Part("tensor_stack", ("<built-in method torch.stack>",)),
    Part("location_init", ("CheckedLocation.__init__", "MapLocation.__init__")),
    Part("constraints", ("Distribution.__init__",)),
    Part("logsumexp", ("<method 'logsumexp' of 'torch._C.TensorBase' objects>",)),
    Part("advantages", ("advantages_in_a_loop", "advantages_batched")),
)
"""What the document says of single functions; parts of the categories above."""

EXTERNAL = ("emulator", "network", "backpropagation", "action_to_array")
"""The categories that the document calls not optimizable."""


class TimeShares:
    """Runs the profiler over one rollout and its update, and reports what it found."""

    def __init__(self, args: Args) -> None:
        self.rollout = args.profiled_rollout
        self.decisions = args.rollout
        # A profiler sees one thread, so half of a training that overlaps; and only one at a time may run.
        self.is_on = not args.overlap
        self.profile: Profile | None = None

    def after_update(self, updates: int) -> None:
        """Begin before the chosen rollout, end after its update; leave a profiler alone that runs already."""
        if self.profile is not None:
            self.profile.disable()
            report(measure(self.profile.getstats(), self.decisions))
            self.profile = None
        elif self.is_on and updates == self.rollout - 1 and not another_profiler():
            self.profile = Profile()
            self.profile.enable()


def another_profiler() -> bool:
    """Whether one runs, or will: a counting repetition hooks into new threads long before its window."""
    return sys.getprofile() is not None or threading.getprofile() is not None


def measure(entries: Iterable[Any], decisions: int) -> dict[str, float]:
    """The gauges by their names, from a profiler's entries over so many decisions."""
    rows = [(function_name(entry.code), entry) for entry in entries]
    scale = DECISIONS / decisions
    seconds = {part.name: scale * _seconds(part, rows) for part in (*CATEGORIES, *DETAILS)}
    whole = scale * sum(entry.inlinetime for _, entry in rows)
    seconds["other"] = whole - sum(seconds[part.name] for part in CATEGORIES)
    seconds["external"] = sum(seconds[name] for name in EXTERNAL)
    calls = {part.name: scale * _calls(part.functions, rows) for part in (*CATEGORIES, *DETAILS)}
    calls["all"] = scale * sum(entry.callcount for _, entry in rows)
    calls["equipment_getattr"] = scale * _calls_from(CHECKS, GETATTR, rows)
    calls["equipment_isinstance"] = scale * _calls_from(CHECKS, ISINSTANCE, rows)
    return {
        "profiled_seconds.all": whole,
        **{f"profiled_seconds.{name}": value for name, value in seconds.items()},
        **{f"profiled_percent.{name}": 100 * value / whole for name, value in seconds.items()},
        **{f"profiled_calls.{name}": value for name, value in calls.items()},
    }


def report(gauges: dict[str, float]) -> None:
    """Give them to the measurement."""
    for name, value in gauges.items():
        paceline.gauge(name, value)


def function_name(code: CodeType | str) -> str:
    """A function's name with its class; a built-in one's is its description."""
    return code if isinstance(code, str) else code.co_qualname


Rows = list[tuple[str, Any]]


def _seconds(part: Part, rows: Rows) -> float:
    spent = sum(
        entry.inlinetime if part.own else entry.totaltime for name, entry in rows if name in part.functions
    )
    return float(spent - sum(entry.totaltime for name, entry in rows if name in part.without))


def _calls(functions: tuple[str, ...], rows: Rows) -> int:
    return sum(entry.callcount for name, entry in rows if name in functions)


def _calls_from(callers: tuple[str, ...], function: str, rows: Rows) -> int:
    found: Counter[str] = Counter()
    for name, entry in rows:
        if name in callers:
            for called in entry.calls or ():
                found[function_name(called.code)] += called.callcount
    return found[function]
