"""Objects of a mirror by name: any number of them by one git process, each up to a bound of its size."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from dashboard.repositories.mirror import Mirror

KINDS = (b"blob", b"commit", b"tree", b"tag")
# What git says of a path whose links it can't follow to an object of the same commit.
LINK_PROBLEMS = (b"symlink", b"dangling", b"loop", b"notdir")


@dataclass(frozen=True, slots=True)
class GitObject:
    """`kind` is blob, commit, tree or tag, `link` where symbolic links lead to none of these, empty where
    there is nothing; `data` may be its beginning."""

    name: str
    hash: str = ""
    kind: str = ""
    size: int = 0
    data: bytes = b""


def read_objects(
    mirror: Mirror, names: Sequence[str], take: Callable[[GitObject], object], *, most_bytes: int
) -> None:
    """Call `take` with the object of each name, in their order; of each `most_bytes` are kept at most.

    A name is a hash, a revision or `COMMIT:PATH`, whose symbolic links are followed within the commit; one
    with a line break would be two questions, and is passed over. One object at a time is held in memory.
    """
    asked = [name for name in names if name and "\n" not in name]
    if not asked:
        return
    reader = _read_answers(asked, take, most_bytes)
    next(reader)
    question = "".join(f"{name}\n" for name in asked).encode("utf-8", "surrogateescape")
    mirror.stream(["cat-file", "--batch", "--follow-symlinks"], stdin=question, output=reader.send)


def _read_answers(
    names: Sequence[str], take: Callable[[GitObject], object], most_bytes: int
) -> Generator[None, bytes, None]:
    """Is sent what `cat-file --batch` prints: for each name a line, and the object if there is one."""
    buffer = yield
    for name in names:
        while b"\n" not in buffer:
            buffer += yield
        header, _, buffer = buffer.partition(b"\n")
        fields = _read_header(header)
        if fields is None:
            take(GitObject(name))
            continue
        sha, kind, size = fields
        kept = bytearray()
        left = size + 1  # A line's end follows the object.
        while left:
            if not buffer:
                buffer = yield
            part, buffer = buffer[:left], buffer[left:]
            kept += part[: most_bytes - len(kept)]
            left -= len(part)
        take(GitObject(name, sha, kind, size, bytes(kept[:size])))
    while True:
        yield


def _read_header(header: bytes) -> tuple[str, str, int] | None:
    """Hash, kind and size of what follows; None where nothing does."""
    fields = header.rsplit(b" ", 2)
    if len(fields) == 3 and fields[1] in KINDS:
        return fields[0].decode(), fields[1].decode(), int(fields[2])
    if len(fields) == 2 and fields[0] in LINK_PROBLEMS:
        return "", "link", int(fields[1])
    return None
