"""Ends a measured process as Python would, but for tearing down its modules.

With torch that teardown takes most of a second of a processor, in every measured process, and nothing is
measured in it.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
import threading
from contextlib import suppress

# Beside the result of a training that prints by itself: what it failed with.
ERROR = "error"
# Buffers that Python would write out while it tears down the modules that hold them.
WRITERS = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel to send this process a signal when its parent dies, also when that is killed itself."""
    if sys.platform == "linux":
        import ctypes

        signal_on_parent_death = 1
        ctypes.CDLL(None).prctl(signal_on_parent_death, int(number))


def end_process() -> None:
    """Wait for threads, call exit handlers, write out every open file, and end; never returns."""
    threading._shutdown()  # type: ignore[attr-defined]  # what Python itself calls here, executors' threads included
    atexit._run_exitfuncs()
    flush_files()
    os._exit(0)


def flush_files() -> None:
    """Write out what files hold that the script has left open, the standard ones last."""
    # By its type alone: asking an object for its class may wake a proxy.
    left = [found for found in gc.get_objects() if issubclass(type(found), WRITERS)]
    for opened in (*left, sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            opened.flush()
