"""Resident memory of this process, from /proc; None where the system has none."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..system.processes import PAGE_BYTES

STATM_NUMBERS = 7


class ResidentMemory:
    """Reads this process's resident bytes through one open file, in about two microseconds."""

    def __init__(self) -> None:
        self._file = _open_statm()

    @property
    def available(self) -> bool:
        """Whether the system tells."""
        return self._file >= 0

    def read(self) -> int:
        """Return resident bytes; 0 where they aren't available."""
        if not self.available:
            return 0
        try:
            return self._read_file()
        except (OSError, ValueError):
            # The script has closed all files, and may have opened one of its own by this number.
            self._file = _open_statm()
            return self._read_file() if self.available else 0

    def _read_file(self) -> int:
        numbers = os.pread(self._file, 256, 0).split()
        if len(numbers) != STATM_NUMBERS:
            raise ValueError("another file")
        return int(numbers[1]) * PAGE_BYTES


def _open_statm() -> int:
    try:
        return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def peak_resident_bytes() -> int | None:
    """Return this process's largest resident bytes so far, or None."""
    # Not getrusage: its maximum is inherited from the process that started this one.
    try:
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        return None
    return int(peak.group(1)) * 1024 if peak else None
