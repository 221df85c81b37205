"""How many threads of this process wait for repositories: of a web server's few some must answer pages."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dashboard.repositories.errors import RepositoryBusy

# Of the four that each of its processes has: a repository that never answers holds two, several hold three.
MOST_OF_ONE, MOST_TOGETHER = 2, 3

_counting = threading.Lock()
_waiting: Counter[Path] = Counter()


@contextmanager
def waiting_thread(folder: Path) -> Iterator[None]:
    """One more waits for the repository of this mirror; RepositoryBusy at once where enough do already."""
    with _counting:
        if _waiting[folder] >= MOST_OF_ONE or _waiting.total() >= MOST_TOGETHER:
            raise RepositoryBusy("Several wait for repositories just now: try again in a moment.")
        _waiting[folder] += 1
    try:
        yield
    finally:
        with _counting:
            _waiting[folder] -= 1
            # Counters keep what is zero.
            if not _waiting[folder]:
                del _waiting[folder]
