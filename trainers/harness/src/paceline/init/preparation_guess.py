"""Which command of a repository makes the data that a script reads."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from .candidates import Candidate
from .readme import CommandLine
from .repository import Repository

_MAKES_DATA = re.compile(
    r"(prepare|download|preprocess|process_data|make_data|get_data|build_data|tokenize|generate_)\w*\.py|\w+_(prepare|download|data)\.py"
)
_WORD = re.compile(r"[a-z0-9]{3,}")


def guess_preparation(
    repository: Repository,
    commands: Sequence[CommandLine],
    candidate: Candidate,
    words: Sequence[str],
    *,
    documented_only: bool = False,
) -> tuple[str, ...]:
    """The words behind `python` of the likeliest command; empty where there is none.

    With `documented_only`, of those that stand beside the training in a README.

    A README tells it before the training, and it shares words with its arguments: data/shakespeare/prepare.py
    and config/train_shakespeare.py.
    """
    wanted = _find_words(" ".join([candidate.path, *words]))
    training_lines = {line.source: line.number for line in candidate.commands}
    lines = {
        (line.script, *line.arguments): _rate_line(line, training_lines, wanted)
        for line in commands
        if _makes_data(line.script, candidate)
        and not line.has_placeholder
        and not line.launcher
        and (line.source in training_lines or not documented_only)
    }
    for path in () if documented_only else repository.files:
        if _makes_data(path, candidate) and (path,) not in lines:
            lines[path,] = 3.0 * (str(PurePosixPath(path).parent) == candidate.folder != "") + _shared_words(
                path, wanted
            )
    best = max(lines, key=lambda line: lines[line], default=())
    return best if best and lines[best] >= 2 else ()


def format_preparation(words: Sequence[str], working_directory: str = "") -> str:
    """The command as a shell takes it; a script within the training's working directory runs there too."""
    path = PurePosixPath(words[0])
    if working_directory and path.is_relative_to(working_directory):
        inside = str(path.relative_to(working_directory))
        return f"cd {shlex.quote(working_directory)} && {shlex.join(['python', inside, *words[1:]])}"
    return shlex.join(["python", *words])


def _makes_data(path: str, candidate: Candidate) -> bool:
    return path != candidate.path and bool(_MAKES_DATA.fullmatch(PurePosixPath(path).name))


def _rate_line(line: CommandLine, training_lines: dict[str, int], wanted: set[str]) -> float:
    is_beside = line.source in training_lines
    points = 1.0 * is_beside + _shared_words(line.script, wanted)
    points += 2.0 * (is_beside and line.source.count("/") > 0)
    return points + 1.0 * (is_beside and line.number < max(training_lines.values()))


def _shared_words(path: str, wanted: set[str]) -> float:
    return 2.0 * len(_find_words(path) & wanted - {"data", "train", "prepare", "main", "examples"})


def _find_words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower())) - {"config", "cpu", "device", "false", "true", "size", "iters"}
