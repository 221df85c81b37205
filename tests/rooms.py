"""Who imports whom: the imports of every file, read from its syntax, against the arrows of the house."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OURS = ("paceline", "dashboard", "workers", "trainers", "bench", "tests")
STANDARD = frozenset(sys.stdlib_module_names) | {"__future__"}
MEASURED = frozenset({"torch", "psutil", "pynvml"})


@dataclass(frozen=True)
class Room:
    """A folder, and the prefixes of dotted names that its files may import beside its own."""

    folder: str
    package: str
    may: frozenset[str]
    never: frozenset[str] = frozenset()

    def allows(self, name: str) -> bool:
        if has_prefix(name, self.never):
            return False
        return has_prefix(name, {self.package}) or has_prefix(name, self.may)


def has_prefix(name: str, prefixes: frozenset[str] | set[str]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


SITE = frozenset({"django", "celery", "kombu", "psycopg", "numpy", "plotly", "orjson", "cryptography"})

# The first room whose folder holds a file is the file's room: narrow ones stand first.
ROOMS = (
    Room("trainers/harness/src/paceline", "paceline", STANDARD | MEASURED),
    Room(
        "trainers", "trainers", STANDARD | {"paceline", "torch", "numpy", "ale_py", "stable_retro", "uvicorn"}
    ),
    Room("dashboard/detection", "dashboard.detection", STANDARD | {"numpy", "scipy"}),
    Room("dashboard/repositories", "dashboard.repositories", STANDARD | {"paceline.manifest"}),
    Room("dashboard/services", "dashboard.services", STANDARD | {"psycopg", "redis"}),
    Room(
        "dashboard",
        "dashboard",
        STANDARD | SITE | {"django_htmx", "paceline.document", "paceline.metrics", "paceline.manifest"},
    ),
    Room(
        "workers",
        "workers",
        STANDARD
        | {"celery", "kombu", "psutil", "pynvml", "django.conf", "django.db"}
        | {
            f"dashboard.{part}"
            for part in (
                *("repositories", "leases", "runs", "experiments", "sentinels", "ingest", "dispatch"),
                *("regressions", "alerts"),
            )
        }
        | {"paceline.manifest", "paceline.document"},
    ),
)


def room_of(path: str) -> Room | None:
    return next((room for room in ROOMS if path.startswith(room.folder + "/")), None)


def imported_names(source: str, package: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import; `from a import b` yields `a.b`, so that a submodule is seen."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module or ""]).strip(".")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def forbidden_imports(root: Path) -> list[str]:
    """One sentence for each import below `root` that no arrow allows."""
    sentences = []
    # An installed package leaves its copy in build/.
    files = [file for file in root.rglob("*.py") if "build" not in file.relative_to(root).parts]
    for file in sorted(files):
        path = file.relative_to(root).as_posix()
        room = room_of(path)
        if room is None or any(part.startswith(".") for part in file.relative_to(root).parts):
            continue
        package = room.package + path.removeprefix(room.folder).rpartition("/")[0].replace("/", ".")
        for line, name in imported_names(file.read_text(), package):
            if not room.allows(name) and not is_sibling(root, file, name):
                sentences.append(f"{path}:{line} imports {name}, which {room.folder}/ may not")
    return sentences


def is_sibling(root: Path, file: Path, name: str) -> bool:
    """Whether `name` is a file beside a benchmark's: a script's own folder comes first on its path.

    The planted history's folder is completed by files of the benchmark that it derives from.
    """
    first = name.split(".")[0]
    return first not in OURS and "trainers" in file.parts and any(root.glob(f"trainers/**/{first}.py"))
