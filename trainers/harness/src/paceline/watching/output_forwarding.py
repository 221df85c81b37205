"""The measured process's output, passed on line by line while it comes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TextIO

from .measurement_errors import MeasurementError

# Of one process; what floods its output is worth neither a terminal nor a log.
OUTPUT_SHOWN_LIMIT = 256 * 2**10
READ_SIZE = 64 * 2**10


class OutputForwarder:
    """Passes on a growing file. Leaving it passes on the rest, and marks an error whose output was shown."""

    def __init__(self, path: Path, to: TextIO) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._to = to
        self._passed = 0
        self._line = b""

    def __enter__(self) -> OutputForwarder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self.forward():
            pass
        self._write(self._line)
        os.close(self._file)
        if isinstance(error, MeasurementError):
            error.shown = not self._is_limit_reached

    @property
    def _is_limit_reached(self) -> bool:
        return self._passed >= OUTPUT_SHOWN_LIMIT

    def forward(self) -> bool:
        """Pass on the whole lines that have come; return whether there may be more."""
        if self._is_limit_reached:
            return False
        read = os.read(self._file, READ_SIZE)
        whole, newline, rest = (self._line + read).rpartition(b"\n")
        self._line = rest
        self._passed += len(read)
        self._write(whole + newline)
        if self._is_limit_reached:
            self._write(self._line + b"\n(it wrote more, which is not shown)\n")
            self._line = b""
        return bool(read)

    def _write(self, data: bytes) -> None:
        if data:
            ended = data if data.endswith(b"\n") else data + b"\n"
            # Who read along may be gone; the output is kept in its file all the same.
            with suppress(OSError):
                self._to.write(ended.decode(errors="replace"))
                self._to.flush()
