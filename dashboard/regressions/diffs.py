"""The difference that a commit range makes, read from the project's mirror."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dashboard.models import Commit, Project
from dashboard.regressions.touched import Touched, compare
from dashboard.repositories import Mirror, RepositoryError, git, mirror_of

logger = logging.getLogger(__name__)

# Judgement holds the project's lock meanwhile: what takes longer is left out, and only the ranking is poorer.
SECONDS = 10
MOST_FILES = 200
MOST_BYTES = 1024 * 1024

# A commit that touches one of these may change the environment that it is measured in.
ENVIRONMENT_FILES = (
    "requirements",
    "constraints",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "environment.y",
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "Pipfile",
    "paceline.toml",
    ".python-version",
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A file that differs; a path is empty on the side where the file isn't."""

    old: str
    new: str


def touched(project: Project, last_good: Commit, first_bad: Commit) -> Touched:
    """What the commits after `last_good` up to `first_bad` changed; empty where the mirror can't say."""
    if not project.repository:
        return Touched()
    mirror = mirror_of(project)
    try:
        pairs = changed(mirror, last_good.hash, first_bad.hash)
        python = [one for one in pairs if one.new.endswith(".py")][:MOST_FILES]
        old = texts(mirror, (f"{last_good.hash}:{one.old}" for one in python if one.old))
        new = texts(mirror, (f"{first_bad.hash}:{one.new}" for one in python))
    except RepositoryError as error:
        logger.warning("Suspects of %s in %s are ranked without the diff: %s", first_bad, project, error)
        return Touched()
    functions = [
        function
        for one in python
        if (after := new.get(f"{first_bad.hash}:{one.new}")) is not None
        for function in compare(one.new, old.get(f"{last_good.hash}:{one.old}", ""), after)
    ]
    return Touched(
        paths=frozenset(path for one in pairs for path in (one.old, one.new) if path),
        functions=tuple(functions),
        moved={one.new: one.old for one in pairs if one.old and one.new and one.old != one.new},
    )


def changes_environment(paths: Iterable[str]) -> bool:
    """May a commit that touches these paths be measured in another environment because of it?"""
    return any(part.startswith(ENVIRONMENT_FILES) for path in paths for part in path.split("/"))


def changed(mirror: Mirror, old: str, new: str) -> list[Pair]:
    """The files that differ between two commits, renames followed."""
    out = git.run(
        mirror.folder,
        ["diff", "--name-status", "--find-renames", "--no-ext-diff", "-z", old, new, "--"],
        seconds=SECONDS,
    )
    return list(pairs_of(iter(out.decode("utf-8", "replace").split("\0"))))


def pairs_of(fields: Iterator[str]) -> Iterator[Pair]:
    for status in fields:
        if status.startswith(("R", "C")):
            yield Pair(next(fields), next(fields))
        elif status:
            path = next(fields)
            yield Pair("" if status == "A" else path, "" if status == "D" else path)


def texts(mirror: Mirror, names: Iterable[str]) -> dict[str, str]:
    """The texts of `COMMIT:PATH` names, those that are too large left out."""
    # A name with a line break would be two questions.
    asked = [name for name in names if "\n" not in name]
    sizes = ask(mirror, ["cat-file", "--batch-check"], asked).split(b"\n")
    small = [name for name, line in zip(asked, sizes, strict=False) if is_small_file(line)]
    out, found = ask(mirror, ["cat-file", "--batch"], small), {}
    for name in small:
        header, _, rest = out.partition(b"\n")
        size = int(header.rpartition(b" ")[2])
        found[name] = rest[:size].decode("utf-8", "replace")
        out = rest[size + 1 :]
    return found


def is_small_file(line: bytes) -> bool:
    _, kind, size = (b"  " + line).rsplit(b" ", 2)
    return kind == b"blob" and size.isdigit() and int(size) <= MOST_BYTES


def ask(mirror: Mirror, arguments: list[str], names: list[str]) -> bytes:
    if not names:
        return b""
    return git.run(
        mirror.folder, arguments, stdin="".join(f"{name}\n" for name in names).encode(), seconds=SECONDS
    )
