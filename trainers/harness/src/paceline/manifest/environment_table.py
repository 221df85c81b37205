"""The manifest's table `environment`: what a commit's environment is made of."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath

from .toml_table import TomlTable

LIST_LIMIT = 50
COMMAND_LIMIT = 2_000
# What pip may be given of a package beside where it lies.
INSTALL_OPTIONS = ("-e", "--editable", "--no-build-isolation")
# By the end of its name: what reads a lock file.
LOCK_NAMES = ("uv.lock", "conda-lock.yml", "conda-lock.yaml", ".lock", ".txt")
_TARGET = re.compile(r"(?P<folder>[^\[\]]+)(?:\[(?P<extras>[A-Za-z0-9._, -]*)\])?")


@dataclass(frozen=True, slots=True)
class Environment:
    """How a commit's environment is built. Paths are relative to the checkout.

    What the commit doesn't change, `requirements` or `lock`, is kept and shared by content; `install` (the
    commit's own packages, as pip takes them) and `build` (commands run in the checkout) belong to one commit.
    """

    requirements: tuple[str, ...] = ()
    lock: str = ""
    install: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    python_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """One package of the commit: the folder in which it lies, its extras, and options of pip's."""

    folder: str
    extras: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def is_editable(self) -> bool:
        return "-e" in self.options or "--editable" in self.options

    @property
    def is_isolated(self) -> bool:
        """Whether pip builds it in an environment of its own, from what its pyproject.toml requires."""
        return "--no-build-isolation" not in self.options

    @property
    def place(self) -> str:
        """The folder with its extras, as pip takes it."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"./{self.folder}{extras}"

    def pip_words(self) -> list[str]:
        """What pip is given to install it."""
        isolation = [] if self.is_isolated else ["--no-build-isolation"]
        return [*isolation, *(["-e"] if self.is_editable else []), self.place]


def parse_environment(table: TomlTable) -> Environment:
    """Read the table; raises ManifestError."""
    environment = Environment(
        requirements=_parse_paths(table, "requirements"),
        lock=table.required_string("lock") if table.has_key("lock") else "",
        install=_parse_list(table, "install"),
        build=_parse_list(table, "build"),
        python_path=_parse_paths(table, "python_path"),
    )
    table.refuse_unread_keys()
    if environment == Environment():
        raise table.error("", "says nothing, name requirements, lock, install, build or python_path")
    if environment.lock:
        refuse_outside(table, "lock", environment.lock)
        if environment.requirements:
            raise table.error("lock", "stands beside requirements, name one of them")
        if not environment.lock.endswith(LOCK_NAMES):
            raise table.error("lock", f"is {environment.lock!r}, must be a uv.lock or a conda-lock file")
    for word in environment.install:
        problem = install_problem(word)
        if problem:
            raise table.error("install", f"{word!r} {problem}")
    return environment


def parse_install(word: str) -> InstallTarget:
    """Part a checked word of `install` into what it names."""
    words = shlex.split(word)
    matched = _TARGET.fullmatch(words[-1])
    assert matched is not None  # noqa: S101 - install_problem has found nothing
    extras = tuple(extra.strip() for extra in (matched["extras"] or "").split(",") if extra.strip())
    return InstallTarget(matched["folder"], extras, tuple(words[:-1]))


def install_problem(word: str) -> str:
    """What is wrong with a word of `install`; empty where nothing is."""
    try:
        words = shlex.split(word)
    except ValueError:
        return "has a quote that doesn't end"
    for option in words[:-1]:
        if option not in INSTALL_OPTIONS:
            return f"has {option}, of pip's options there are {', '.join(INSTALL_OPTIONS)}"
    matched = _TARGET.fullmatch(words[-1]) if words else None
    folder = PurePosixPath(matched["folder"]) if matched else PurePosixPath("/")
    if folder.is_absolute() or ".." in folder.parts or words[-1].startswith("-"):
        return "must be a folder of the repository, such as . or -e . or .[extra]"
    return ""


def refuse_outside(table: TomlTable, key: str, path: str) -> None:
    """Refuse a path that leads out of the repository; raises ManifestError."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise table.error(key, f"is {path!r}, must be a path inside the repository")


def check_command(table: TomlTable, key: str, command: str) -> str:
    """Return a shell's command that can be run and shown; raises ManifestError."""
    if not command.strip() or len(command) > COMMAND_LIMIT or "\0" in command:
        raise table.error(key, f"must be a command of at most {COMMAND_LIMIT} characters")
    return command


def _parse_paths(table: TomlTable, key: str) -> tuple[str, ...]:
    paths = _parse_list(table, key)
    for path in paths:
        refuse_outside(table, key, path)
    return paths


def _parse_list(table: TomlTable, key: str) -> tuple[str, ...]:
    """Return a list of strings that isn't empty where it is there."""
    words = table.strings(key)
    if words is None:
        return ()
    if not words:
        raise table.error(key, "is empty, leave it out or name at least one")
    if len(words) > LIST_LIMIT:
        raise table.error(key, f"has {len(words)} members, at most {LIST_LIMIT} are allowed")
    return tuple(check_command(table, key, word) for word in words)
