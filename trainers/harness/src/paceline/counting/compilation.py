"""Compilations by torch's compiler, billed to phases. The compiler is looked at, never imported."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from types import CodeType

from ..document import UNATTRIBUTED


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


def exclude_from_compilation(codes: Iterable[CodeType]) -> None:
    """Tell the compiler, where the program uses it, to compile none of these: they are ours."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    skip = getattr(dynamo, "skip_code", None)
    if skip is not None:
        for code in codes:
            skip(code)
