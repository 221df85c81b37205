"""The log of a run: what it printed, at a bounded size, as chunks that stream to the site."""

from __future__ import annotations

import codecs
import threading

HEAD_CHARACTERS = 192 * 1024
TAIL_CHARACTERS = 64 * 1024
# Starts the lines of the worker and its reaper, so that they are distinguished from what was measured.
NOTICE_PREFIX = "[paceline] "


class Log:
    """The beginning is streamed as it comes; of what follows the end is kept, and the size of the gap."""

    def __init__(self, head: int = HEAD_CHARACTERS, tail: int = TAIL_CHARACTERS) -> None:
        self._head_left = head
        self._tail_size = tail
        self._pending = ""
        self._tail = ""
        self._left_out = 0
        self._last = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        """Take bytes as a process printed them."""
        with self._lock:
            # Postgres keeps no NUL in a text.
            self._take(self._decoder.decode(data).replace("\0", "\N{REPLACEMENT CHARACTER}"))

    def add_notice(self, sentence: str) -> None:
        """Add a line of the worker's own."""
        self.write(f"{NOTICE_PREFIX}{sentence}\n".encode())

    def drain(self) -> str:
        """What has come since the last call, for the site."""
        with self._lock:
            pending, self._pending = self._pending, ""
            return pending

    def finish(self) -> str:
        """The rest: what is pending, then how much was left out, then the end."""
        with self._lock:
            rest, self._pending = self._pending, ""
            if self._left_out:
                rest += f"\n[{self._left_out} characters left out]\n"
            rest += self._tail
            self._tail, self._left_out = "", 0
            return rest

    def last_lines(self) -> list[str]:
        """The last lines of theirs that aren't blank, each at most 300 characters long."""
        with self._lock:
            lines = [
                line.strip()[:300] for line in self._last.splitlines() if not line.startswith(NOTICE_PREFIX)
            ]
        return [line for line in lines if line]

    def last_line(self) -> str:
        """The last of these, or nothing."""
        return "".join(self.last_lines()[-1:])

    def _take(self, text: str) -> None:
        self._last = (self._last + text)[-4096:]
        head, rest = text[: self._head_left], text[self._head_left :]
        self._head_left -= len(head)
        self._pending += head
        tail = self._tail + rest
        self._left_out += max(0, len(tail) - self._tail_size)
        self._tail = tail[-self._tail_size :]
