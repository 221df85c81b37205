"""What one mark costs, beside its alternatives, all in one run and interleaved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from types import FunctionType
from typing import Any

import paceline
import torch
from paceline.measured.timing import TimingRecorder
from paceline.statistics import median

from .lines import Line, format_part

LOOP = 50
PIECES = 10
PHASE_NANOSECONDS = 300
LAP_NANOSECONDS = 110
DISABLED_NANOSECONDS = 150
CHEAPER_THAN_TORCH = 5

Body = Callable[[int, Any], float]


def _empty_loop(times: int, _mark: Any) -> float:
    started = perf_counter()
    for _ in range(times):
        pass
    return perf_counter() - started


def _clock_pair(times: int, _mark: Any) -> float:
    total = 0.0
    started = perf_counter()
    for _ in range(times):
        before = perf_counter()
        total += perf_counter() - before
    return perf_counter() - started


def _context_managers(times: int, mark: Callable[[str], AbstractContextManager[Any]]) -> float:
    started = perf_counter()
    for _ in range(times):
        with mark("learn"):
            pass
    return perf_counter() - started


def _plain_calls(times: int, mark: Callable[[str], None]) -> float:
    started = perf_counter()
    for _ in range(times):
        mark("learn")
    return perf_counter() - started


@contextmanager
def _generator_context(_name: str) -> Iterator[None]:
    before = perf_counter()
    yield
    _spent.append(perf_counter() - before)
    _spent.clear()


_spent: list[float] = []


def _copy_function(body: Body) -> Body:
    """Return a copy of the function: the interpreter adapts each call site to what it calls."""
    return FunctionType(body.__code__.replace(), globals())


class Subject:
    """One thing to measure; `after_piece` runs after each piece of a round, outside its time."""

    def __init__(
        self,
        name: str,
        body: Body,
        mark: Any,
        after_piece: Callable[[], object] | None = None,
        pieces: int = PIECES,
    ) -> None:
        self.name = name
        self._pieces = pieces
        self._run = _copy_function(body)
        self._mark = mark
        self._after_piece = after_piece
        self.rounds: list[float] = []

    def measure(self) -> None:
        """Add one round, in nanoseconds each."""
        # What ran before has left the caches to itself: the first pieces count for nothing.
        pieces = [self._piece() for _ in range(2 * self._pieces)][self._pieces :]
        self.rounds.append(sum(pieces) * 1e9 / (LOOP * self._pieces))

    def _piece(self) -> float:
        took = self._run(LOOP, self._mark)
        if self._after_piece is not None:
            self._after_piece()
        return took


def measure_marks(rounds: int) -> str:
    """Return the table of the marks."""
    # Two recorders: where laps are made, a phase costs more, since it takes account of them.
    timing, lapping = (TimingRecorder(0, 10**6, lambda _: None) for _ in range(2))
    steps = iter(lapping.steps(range(10**6)))
    next(steps)
    subjects = [
        Subject("an empty loop", _empty_loop, None),
        Subject("two readings of the clock", _clock_pair, None),
        Subject("contextlib.nullcontext", _context_managers, lambda _: nullcontext()),
        Subject("a disabled phase", _context_managers, paceline.phase),
        Subject("a disabled lap", _plain_calls, paceline.lap),
        Subject("a lap", _plain_calls, lapping.lap, lambda: next(steps)),
        Subject("a phase", _context_managers, timing.phase),
        Subject("a phase beside laps", _context_managers, lapping.phase),
        Subject("a contextlib.contextmanager with a clock", _context_managers, _generator_context),
        Subject(
            "torch.profiler.record_function, no profiler on",
            _context_managers,
            torch.profiler.record_function,
            pieces=1,
        ),
    ]
    for _ in range(rounds):
        for subject in subjects:
            subject.measure()
    return _marks_table(subjects)


def _marks_table(subjects: list[Subject]) -> str:
    empty, *others = [(subject.name, median(subject.rounds)) for subject in subjects]
    cost = {name: found - empty[1] for name, found in others}
    phase = cost["a phase"]
    recorded = cost["torch.profiler.record_function, no profiler on"] / phase
    targets = {
        "a phase": (f"at most {PHASE_NANOSECONDS} ns", phase <= PHASE_NANOSECONDS),
        "a lap": (f"at most {LAP_NANOSECONDS} ns", cost["a lap"] <= LAP_NANOSECONDS),
        "a disabled phase": (
            f"under {DISABLED_NANOSECONDS} ns",
            cost["a disabled phase"] < DISABLED_NANOSECONDS,
        ),
        "torch.profiler.record_function, no profiler on": (
            f"at least {CHEAPER_THAN_TORCH} phases",
            recorded >= CHEAPER_THAN_TORCH,
        ),
    }
    lines = [
        Line(name, f"{each:.0f} ns", f"{each / phase:.2f}", *targets.get(name, ("", None)))
        for name, each in cost.items()
    ]
    return format_part("One mark, without the loop around it", ["", "each", "of a phase"], lines)
