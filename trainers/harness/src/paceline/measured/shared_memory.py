"""Memory that this process shares with the harness, as a file that is up to date at every moment."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path

# For ever: with a map Python closes its own copy of the descriptor, whose number may be that of a file of the
# script's by then, which had closed all files before.
_maps: list[mmap.mmap] = []


def map_file(descriptor: int, size: int) -> mmap.mmap:
    """Map so many bytes of an open file, until the process ends; raises OSError."""
    _maps.append(mmap.mmap(descriptor, size))
    return _maps[-1]


def share_memory(path: Path, size: int) -> mmap.mmap | None:
    """Return a new file of so many bytes, all of them 0, as memory; None where there is no room for it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        # Written: to store a number in a hole of a file, on a file system that is full, is a fatal signal.
        if os.pwrite(descriptor, bytes(size), 0) == size:
            return map_file(descriptor, size)
    except OSError:
        pass
    finally:
        os.close(descriptor)
    # Half a file would be read as one that says nothing happened.
    with suppress(OSError):
        path.unlink()
    return None
