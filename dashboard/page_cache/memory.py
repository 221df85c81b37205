"""The pages that this process has made, the most recently used ones, up to a number of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from dashboard.page_cache.revisions import SeenRevision

# Beside the body: the key, the headers, what Python adds.
OVERHEAD = 2_000
LOCKS = 64


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A page as it was made at a revision, which was still the newest one at `newest_at`.

    `packed`: compressed as who asked takes it, where it is the same for each request. `token_place`: else
    what stands for a token.
    """

    revision: int
    made_at: float
    newest_at: float
    body: bytes
    packed: bytes
    headers: Mapping[str, str]
    digest: str
    token_place: bytes

    @property
    def size(self) -> int:
        return len(self.body) + len(self.packed) + OVERHEAD

    def is_right(self, revision: SeenRevision, came_at: float) -> bool:
        """For a request that came then and sees this revision: the same one, or it was right since."""
        return self.revision == revision.number or came_at <= self.newest_at

    def seen_with(self, revision: SeenRevision) -> CachedPage:
        """Itself, right for as long as its revision was seen."""
        if self.revision != revision.number or revision.seen_at <= self.newest_at:
            return self
        return replace(self, newest_at=revision.seen_at)


class PageMemory:
    """Threads share it; other processes have their own, and the same revisions."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._pages: OrderedDict[Hashable, CachedPage] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._making = [threading.Lock() for _ in range(LOCKS)]

    def find_page(
        self, key: Hashable, revision: SeenRevision, came_at: float, made_after: float
    ) -> CachedPage | None:
        with self._lock:
            page = self._pages.get(key)
            if page is None or page.made_at < made_after or not page.is_right(revision, came_at):
                return None
            self._pages[key] = page = page.seen_with(revision)
            self._pages.move_to_end(key)
            return page

    def store_page(self, key: Hashable, page: CachedPage) -> None:
        """In place of an earlier one of the same key; what was used longest ago makes room."""
        if page.size > self.most_bytes:
            return
        with self._lock:
            self._drop_page(key)
            self._pages[key] = page
            self._bytes += page.size
            while self._bytes > self.most_bytes:
                self._drop_page(next(iter(self._pages)))

    def _drop_page(self, key: Hashable) -> None:
        page = self._pages.pop(key, None)
        if page is not None:
            self._bytes -= page.size

    def making_lock(self, key: Hashable) -> threading.Lock:
        """Held while a page is made: who asks for the same one at the same time waits for it."""
        return self._making[hash(key) % LOCKS]
