"""Python's garbage collector in the measured window, as the manifest's `gc` wants it."""

from __future__ import annotations

import gc
import os


def prepare_garbage_collector() -> None:
    """Start a window with nothing to collect: the same state in every repetition.

    By default the collector then works as it always does. Disabled, it doesn't run until the process ends;
    frozen, it never again looks at what is there now.
    """
    gc.collect()
    mode = os.environ.get("PACELINE_GC")
    if mode == "disabled":
        gc.disable()
    elif mode == "frozen":
        gc.freeze()
