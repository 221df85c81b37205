"""Hands a page that one web process has made to the others: of those asked for it at once, one makes it.

Each web process has its own memory of pages. A page that is asked for just after a write would be made by
each of them at the same time, on processors that the database needs too. So who makes a page holds a lock in
a file that all processes share, and leaves the page in it for who waited. A file holds the page that was made
last at its place: this is no second memory, and stays as small as so many pages.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import struct
import time
import zlib
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dashboard.page_cache.memory import CachedPage
from dashboard.page_cache.revisions import SeenRevision

PLACES = 64
# A header is one line; longer ones aren't written here.
LONGEST_HEADER = 100_000
CHECKSUM = struct.Struct("!I")
# Another one each time that the machine starts.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class PageSlot:
    """The locked file of a page's place, while it is looked for or made; None where none can be written."""

    def __init__(self, file: int | None, key: bytes) -> None:
        self._file = file
        self._key = key.hex()

    def read_page(self, revision: SeenRevision, came_at: float, made_after: float) -> CachedPage | None:
        """What another process has made of this page, if it is right for a request that came then."""
        if self._file is None:
            return None
        size = os.fstat(self._file).st_size
        start = os.pread(self._file, min(size, LONGEST_HEADER), CHECKSUM.size)
        head, _, rest = start.partition(b"\n")
        try:
            fields = json.loads(head)
            # Without a boot ID: what seems to come from the future is of before the machine started anew.
            is_recent = made_after <= fields["made_at"] <= time.monotonic()
            if fields["key"] != self._key or not is_recent:
                return None
            bodies = rest + os.pread(self._file, size, CHECKSUM.size + len(start))
            body, packed = (
                bodies[: fields["body"]],
                bodies[fields["body"] : fields["body"] + fields["packed"]],
            )
            # What stands behind may be of a longer page, or of a process that was ended while it wrote.
            if CHECKSUM.pack(checksum_of(head, body, packed)) != os.pread(self._file, CHECKSUM.size, 0):
                return None
            page = CachedPage(
                revision=fields["revision"],
                made_at=fields["made_at"],
                newest_at=fields["newest_at"],
                body=body,
                packed=packed,
                headers=fields["headers"],
                digest=fields["digest"],
                token_place=bytes.fromhex(fields["token_place"]),
            )
        except (ValueError, KeyError, TypeError):
            # Empty, or a first line of which another one's rest is left.
            return None
        return page.seen_with(revision) if page.is_right(revision, came_at) else None

    def leave_page(self, page: CachedPage) -> None:
        """For the processes that wait for it."""
        if self._file is None:
            return
        fields = {
            "key": self._key,
            "revision": page.revision,
            "made_at": page.made_at,
            "newest_at": page.newest_at,
            "headers": dict(page.headers),
            "digest": page.digest,
            "token_place": page.token_place.hex(),
            "body": len(page.body),
            "packed": len(page.packed),
        }
        head = json.dumps(fields).encode()
        checksum = CHECKSUM.pack(checksum_of(head, page.body, page.packed))
        # Over what was there, which isn't cut to nothing first: ext4 would bring each page to the disk as the
        # file is closed, and the next would wait for that. A full disk: the page is answered all the same.
        with suppress(OSError):
            os.pwrite(self._file, b"".join([checksum, head, b"\n", page.body, page.packed]), 0)


def checksum_of(head: bytes, body: bytes, packed: bytes) -> int:
    return zlib.crc32(packed, zlib.crc32(body, zlib.crc32(head)))


def read_boot_id() -> str:
    """Empty where the system has none."""
    try:
        return BOOT_ID.read_text()
    except OSError:
        return ""


class PageHandover:
    """The files in `folder`, readable by this account alone: pages may be private.

    Without a folder nothing is handed over. `made_with` names the scripts and styles that pages load: to a
    process with others a page is none, since the ones that it names are gone. Nor is one of another machine,
    or of before this one was started anew: its monotonic seconds are others.
    """

    def __init__(self, folder: Path | None, made_with: str = "") -> None:
        self._folder = folder
        self._made_with = made_with, read_boot_id()

    @contextmanager
    def locked_place(self, key: Hashable) -> Iterator[PageSlot]:
        """Waits while another process, or thread, makes a page of this place.

        `key` is made of what `repr` tells the same in each process.
        """
        digest = hashlib.sha256(repr((self._made_with, key)).encode()).digest()
        file = self._open_file(f"{digest[0] % PLACES:02}")
        try:
            if file is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield PageSlot(file, digest)
        finally:
            if file is not None:
                os.close(file)

    def _open_file(self, name: str) -> int | None:
        if self._folder is None:
            return None
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            # Of a web server that may write nothing, each process makes its pages itself.
            return None
