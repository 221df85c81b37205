"""Compilations by torch's compiler, billed to phases. The compiler is looked at, never imported."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType

from ..phase_names import UNATTRIBUTED


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """Why the compiler broke a graph, and where: file, line and function of each frame, innermost last."""

    reason: str
    frames: list[tuple[str, int, str]]


class CompilationCounter:
    """Frames that were compiled, by the path of the phase that the main thread stood in."""

    def __init__(self) -> None:
        self._by_phase: defaultdict[str, int] = defaultdict(int)
        self._before: int | None = None

    def begin(self) -> None:
        """Start to count."""
        self._before = _compiled_frames()

    def bill(self, path: str) -> None:
        """Bill what was compiled since the last border to the phase that is being left or interrupted."""
        if self._before is not None:
            now = _compiled_frames()
            self._by_phase[path] += now - self._before
            self._before = now

    def end(self) -> None:
        """Count no more; the last border was billed."""
        self._before = None

    def per_step(self, steps: int) -> dict[str, float]:
        """Return the compilations per step by phase, of those phases that had any."""
        return {path or UNATTRIBUTED: number / steps for path, number in self._by_phase.items() if number}


def _compiled_frames() -> int:
    utils = sys.modules.get("torch._dynamo.utils")
    # Built-in methods alone: what the harness calls of other modules would count as the program's.
    return int(utils.counters.get("frames", {}).get("ok", 0)) if utils is not None else 0


def graph_break_reasons() -> list[GraphBreak]:
    """Return why the compiler broke graphs in this process, each with the frames around the place."""
    utils = sys.modules.get("torch._dynamo.utils")
    reasons = getattr(utils, "graph_break_reasons", ())
    return [
        GraphBreak(
            _first_line(str(found.reason)),
            [(frame.filename, frame.lineno or 0, frame.name) for frame in found.user_stack],
        )
        for found in reasons
    ]


def _first_line(reason: str) -> str:
    first = reason.strip().split("\n", 1)[0]
    # The compiler names its own function here, and says what that means only in its log.
    return f"Data-dependent branching ({first})" if first.startswith("generic_jump") else first


def exclude_from_compilation(codes: Iterable[CodeType]) -> None:
    """Tell the compiler, where the program uses it, to compile none of these: they are ours."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    skip = getattr(dynamo, "skip_code", None)
    if skip is not None:
        for code in codes:
            skip(code)
