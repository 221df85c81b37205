"""The output of the programs: one file per program, and lines with the program's name for people."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path

LARGEST_FILE = 10 * 1024 * 1024  # bytes of one log file, of which the one before is kept


class Journal:
    """Writes lines to `folder`/NAME.log and, unless quiet, to `print_line(name, line)` if given."""

    def __init__(self, folder: Path, print_line: Callable[[str, str], None] | None) -> None:
        self._folder = folder
        self._print_line = print_line
        self._files: dict[str, LogFile] = {}
        self._unwritable: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, line: str, *, quiet: bool = False) -> None:
        problem = self._file(name).write_line(line)
        if problem and name not in self._unwritable:
            self._show(
                "paceline", f"{self.path(name)} can't be written: {problem}. Lines are lost until it can."
            )
        (self._unwritable.add if problem else self._unwritable.discard)(name)
        if not quiet:
            self._show(name, line)

    def write_own(self, line: str) -> None:
        """A line of the supervisor itself."""
        self.write("paceline", line)

    def stop_printing(self) -> None:
        """From now on to the files only."""
        self._print_line = None

    def path(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _file(self, name: str) -> LogFile:
        if name not in self._files:
            self._files[name] = LogFile(
                self.path(name), maxBytes=LARGEST_FILE, backupCount=1, encoding="utf-8", delay=True
            )
        return self._files[name]

    def _show(self, name: str, line: str) -> None:
        if self._print_line:
            try:
                self._print_line(name, line)
            except OSError:
                # The terminal is gone. Whoever stopped reading here would stop the program at its next line.
                self._print_line = None


class LogFile(RotatingFileHandler):
    """A file of lines that says what is wrong instead of printing a traceback for each."""

    problem = ""

    def write_line(self, line: str) -> str:
        """Append a line; why it couldn't be, or nothing."""
        self.problem = ""
        self.handle(logging.LogRecord("", logging.INFO, "", 0, line, None, None))
        return self.problem

    def handleError(self, _: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        error = sys.exception()
        self.problem = (error.strerror if isinstance(error, OSError) else None) or repr(error)
        # What the stream still holds would fail again at each line that follows.
        stream, self.stream = self.stream, None
        with suppress(OSError):
            if stream:
                stream.close()
