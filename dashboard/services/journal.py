"""The output of the programs: one file per program, and lines with the program's name for people."""

from __future__ import annotations

import logging
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path

LARGEST_FILE = 10 * 1024 * 1024  # bytes of one log file, of which the one before is kept


class Journal:
    """Writes lines to `folder`/NAME.log and, unless quiet, to `print_line(name, line)` if given."""

    def __init__(self, folder: Path, print_line: Callable[[str, str], None] | None) -> None:
        self._folder = folder
        self._print_line = print_line
        self._files: dict[str, RotatingFileHandler] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, line: str, *, quiet: bool = False) -> None:
        record = logging.LogRecord(name, logging.INFO, "", 0, line, None, None)
        self._file(name).handle(record)
        if self._print_line and not quiet:
            try:
                self._print_line(name, line)
            except OSError:
                # The terminal is gone. Whoever stopped reading here would stop the program at its next line.
                self._print_line = None

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

    def _file(self, name: str) -> RotatingFileHandler:
        if name not in self._files:
            file = RotatingFileHandler(
                self.path(name), maxBytes=LARGEST_FILE, backupCount=1, encoding="utf-8", delay=True
            )
            self._files[name] = file
        return self._files[name]
