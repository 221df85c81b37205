"""Which files differ between two commits, and what stands in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dashboard.repositories import git
from dashboard.repositories.mirror import Mirror

# What takes longer is left out: who asks is told what is known without it.
SECONDS = 10
MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that differs; a path is empty on the side where the file isn't."""

    old: str
    new: str


def changed_files(mirror: Mirror, old: str, new: str) -> list[ChangedFile]:
    """The files that differ between two commits, renames followed."""
    out = git.run(
        mirror.folder,
        ["diff", "--name-status", "--find-renames", "--no-ext-diff", "-z", old, new, "--"],
        seconds=SECONDS,
    )
    return list(_read_statuses(iter(out.decode("utf-8", "replace").split("\0"))))


def _read_statuses(fields: Iterator[str]) -> Iterator[ChangedFile]:
    for status in fields:
        if status.startswith(("R", "C")):
            yield ChangedFile(next(fields), next(fields))
        elif status:
            path = next(fields)
            yield ChangedFile("" if status == "A" else path, "" if status == "D" else path)


def file_texts(mirror: Mirror, names: Iterable[str]) -> dict[str, str]:
    """The texts of `COMMIT:PATH` names, those that are too large left out."""
    # A name with a line break would be two questions.
    asked = [name for name in names if "\n" not in name]
    sizes = _ask_objects(mirror, ["cat-file", "--batch-check"], asked).split(b"\n")
    small = [name for name, line in zip(asked, sizes, strict=False) if _is_small_file(line)]
    out, texts = _ask_objects(mirror, ["cat-file", "--batch"], small), {}
    for name in small:
        header, _, rest = out.partition(b"\n")
        size = int(header.rpartition(b" ")[2])
        texts[name] = rest[:size].decode("utf-8", "replace")
        out = rest[size + 1 :]
    return texts


def _is_small_file(line: bytes) -> bool:
    _, kind, size = (b"  " + line).rsplit(b" ", 2)
    return kind == b"blob" and size.isdigit() and int(size) <= MOST_BYTES


def _ask_objects(mirror: Mirror, arguments: list[str], names: list[str]) -> bytes:
    if not names:
        return b""
    return git.run(
        mirror.folder, arguments, stdin="".join(f"{name}\n" for name in names).encode(), seconds=SECONDS
    )
