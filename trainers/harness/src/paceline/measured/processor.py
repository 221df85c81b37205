"""How long the calling thread had to wait for a processor, from /proc."""

from __future__ import annotations

from pathlib import Path

# A repetition whose thread waited longer than this share of its window was disturbed by other work.
CONTENTION = 0.1


def waited() -> float:
    """Return the seconds that this thread was ready to run and didn't; 0 where the kernel can't say."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
