"""Which files differ between two commits, and what stands in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dashboard.repositories.mirror import Mirror
from dashboard.repositories.objects import GitObject, read_objects

# What takes longer is left out: who asks gets what is known without it.
TIME_LIMIT = 10.0
MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that differs; a path is empty on the side where the file isn't."""

    old: str
    new: str


def changed_files(mirror: Mirror, old: str, new: str) -> list[ChangedFile]:
    """The files that differ between two commits, renames followed."""
    out = mirror.run(
        ["diff", "--name-status", "--find-renames", "--no-ext-diff", "-z", old, new, "--"],
        time_limit=TIME_LIMIT,
    )
    return list(_read_statuses(iter(out.decode("utf-8", "replace").split("\0"))))


def changed_paths(mirror: Mirror, bases: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """By commit the paths at which it differs from its base, all by one git process; old and new names."""
    if not bases:
        return {}
    question = "".join(f"{commit} {base}\n" for commit, base in bases.items()).encode()
    arguments = ["diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff"]
    fields = iter(mirror.run(arguments, stdin=question).decode("utf-8", "replace").split("\0"))
    found: dict[str, set[str]] = {commit: set() for commit in bases}
    paths: set[str] = set()
    for text in fields:
        if text.startswith(":"):
            paths.add(next(fields))
        elif text:
            paths = found[text]
    return {commit: frozenset(changed) for commit, changed in found.items()}


def _read_statuses(fields: Iterator[str]) -> Iterator[ChangedFile]:
    for status in fields:
        if status.startswith(("R", "C")):
            yield ChangedFile(next(fields), next(fields))
        elif status:
            path = next(fields)
            yield ChangedFile("" if status == "A" else path, "" if status == "D" else path)


def file_texts(mirror: Mirror, names: Iterable[str]) -> dict[str, str]:
    """The texts of `COMMIT:PATH` names, those that are too large left out."""
    texts: dict[str, str] = {}

    def keep_text(found: GitObject) -> None:
        if found.kind == "blob" and found.size <= MOST_BYTES:
            texts[found.name] = found.data.decode("utf-8", "replace")

    read_objects(mirror, list(dict.fromkeys(names)), keep_text, most_bytes=MOST_BYTES)
    return texts
