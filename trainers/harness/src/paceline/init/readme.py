"""Command lines that READMEs and docstrings tell: which script, started how, with which arguments."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from .repository import Repository

LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun"})
# Words in front of a command that change nothing in what is run.
PREFIXES = (
    ("uv", "run"),
    ("poetry", "run"),
    ("pdm", "run"),
    ("pipenv", "run"),
    ("time",),
    ("xvfb-run", "-a"),
)
# What a reader has to fill in.
_PLACEHOLDER = re.compile(r"[<>${}\[\]|]|\.\.\.|…|/path/|path/to|\byour[-_ ]", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]*=\S*")
_PYTHON = re.compile(r"python(3(\.\d+)?)?")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A line that starts a Python file of the repository; paths are from its root."""

    source: str  # the README or script that tells it
    number: int  # its place among the source's lines
    script: str
    arguments: tuple[str, ...]
    module: str = ""  # where it is started by -m
    launcher: str = ""
    folder: str = ""  # where it is typed, by a `cd` or beside its README; empty for the root

    @property
    def has_placeholder(self) -> bool:
        """Whether a reader has to fill something in."""
        return any(_PLACEHOLDER.search(word) for word in self.arguments)


def find_command_lines(repository: Repository) -> list[CommandLine]:
    """All of them, in the order of READMEs from the root downwards, then of docstrings."""
    order = sorted(repository.texts, key=lambda path: (path.count("/"), path))
    found = [line for path in order for line in _read_text(repository, path, repository.texts[path])]
    for path, facts in repository.files.items():
        if facts.docstring:
            found += _read_text(repository, path, facts.docstring)
    return found


def _read_text(repository: Repository, source: str, text: str) -> Iterator[CommandLine]:
    home = str(PurePosixPath(source).parent)
    folder = home = "" if home == "." else home
    for number, line in enumerate(text.replace("\\\n", " ").splitlines()):
        if line.startswith(("```", "#")):
            folder = home
        for words in _split_line(line):
            if words[0] == "cd" and len(words) == 2:
                folder = str(PurePosixPath(folder, words[1])).removeprefix("./")
            elif (read := _read_words(repository, words, folder)) is not None:
                script, arguments, module, launcher, place = read
                yield CommandLine(source, number, script, tuple(arguments), module, launcher, place)


def _split_line(line: str) -> Iterator[list[str]]:
    """The commands of a line, of its code in backticks too."""
    pieces = re.findall(r"`([^`]+)`", line) if "`" in line and not line.startswith("```") else [line]
    for piece in pieces:
        for command in re.split(r"&&|;", piece.strip().lstrip("$!> ")):
            text = re.sub(r"\s#.*$", "", command)
            with contextlib.suppress(ValueError):
                words = shlex.split(text)
                while words and _ASSIGNMENT.fullmatch(words[0]):
                    words.pop(0)
                for prefix in PREFIXES:
                    if tuple(words[: len(prefix)]) == prefix:
                        words = words[len(prefix) :]
                if words:
                    yield words


def _read_words(
    repository: Repository, words: list[str], folder: str
) -> tuple[str, list[str], str, str, str] | None:
    """The script's path, its arguments, the module's name, the launcher, and the folder to start it in.

    None for other commands.
    """
    launcher = words[0] if words[0] in LAUNCHERS else ""
    if not launcher and not _PYTHON.fullmatch(words[0]):
        return None
    for place, word in enumerate(words[1:], 1):
        if word == "-m" and place + 1 < len(words):
            name = words[place + 1]
            if name.startswith("torch.distributed"):
                launcher = "torchrun"
                continue
            path = _find_module_file(repository, name)
            return (path, words[place + 2 :], name, launcher, "") if path else None
        if word.endswith(".py"):
            path, start = _find_script(repository, word, folder)
            return (path, words[place + 1 :], "", launcher, start) if path else None
        if not launcher and not word.startswith("-"):
            return None
    return None


def _find_script(repository: Repository, word: str, folder: str) -> tuple[str, str]:
    """The script's path, and the folder that the word is seen from: this one, or the root."""
    for base in dict.fromkeys((folder, "")):
        path = PurePosixPath(base, word).as_posix().removeprefix("./")
        if path in repository.files:
            return path, base
    return "", ""


def _find_module_file(repository: Repository, name: str) -> str:
    for root in repository.roots:
        place = PurePosixPath(root, *name.split("."))
        for path in (f"{place}.py", str(place / "__main__.py")):
            if path in repository.files:
                return path
    return ""
