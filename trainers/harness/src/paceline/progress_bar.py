"""A progress bar on a terminal; otherwise a line now and then, so that a log stays readable."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import IO, Self

WIDTH = 24
QUIET_SECONDS = 10.0


class ProgressBar:
    """`with ProgressBar() as bar: bar.show(0.4, "2 of 5 runs")`. It writes to stderr."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self._shown = ""
        self._shown_at = -QUIET_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.terminal and self._shown:
            self.stream.write("\n")

    def show(self, fraction: float, text: str) -> None:
        """`fraction` from 0 to 1."""
        if self.terminal:
            self._draw(fraction, text)
        elif text != self._shown and time.monotonic() - self._shown_at >= QUIET_SECONDS:
            self._write(f"{fraction:4.0%} {text}\n", text)

    def _draw(self, fraction: float, text: str) -> None:
        filled = round(WIDTH * min(max(fraction, 0.0), 1.0))
        line = f"{'━' * filled}{'─' * (WIDTH - filled)} {fraction:4.0%} {text}"
        line = line[: shutil.get_terminal_size().columns - 1]
        if line != self._shown:
            self._write(f"\r\x1b[K{line}", line)

    def _write(self, printed: str, shown: str) -> None:
        self.stream.write(printed)
        self.stream.flush()
        self._shown, self._shown_at = shown, time.monotonic()
