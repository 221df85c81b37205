"""The lines of a suspect that a commit range changed: its function before and after, as a diff."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from dashboard import repositories
from dashboard.models import Project
from dashboard.regressions.explanation import changed_functions
from dashboard.repositories import RepositoryError

logger = logging.getLogger(__name__)

# What a page shows: enough to see what was done, not a review.
MOST_FUNCTIONS = 3
MOST_LINES = 40
MOST_LETTERS = 200
CONTEXT = 2
# Comparing takes the square of it at worst.
MOST_COMPARED = 1500


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff; a number is None on the side where the line isn't. A gap has neither."""

    sign: str
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Body:
    """The lines of a function in its file, the first with its number."""

    first: int
    lines: Sequence[str]


def changed_lines(
    project: Project, good: str, bad: str, suspects: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """An excerpt of each of the first suspects that changed between two hashes; none where git can't say.

    Each has `file`, `function`, `lines` (`sign`, `old`, `new`, `text`) and how many of them are `left_out`.
    """
    asked = [suspect for suspect in suspects if suspect.get("changed") and suspect.get("file")]
    asked = asked[:MOST_FUNCTIONS]
    if not asked or not project.repository:
        return []
    try:
        mirror = project.mirror
        moved = {file.new: file.old for file in repositories.changed_files(mirror, good, bad)}
        old = repositories.file_texts(
            mirror, {f"{good}:{moved.get(suspect['file']) or suspect['file']}" for suspect in asked}
        )
        new = repositories.file_texts(mirror, {f"{bad}:{suspect['file']}" for suspect in asked})
    except RepositoryError as error:
        logger.warning("The lines that %s changed in %s aren't shown: %s", bad, project, error)
        return []
    excerpts = []
    for suspect in asked:
        name = suspect["function"]
        before = old.get(f"{good}:{moved.get(suspect['file']) or suspect['file']}", "")
        after = new.get(f"{bad}:{suspect['file']}", "")
        lines = diff_bodies(function_body(before, name), function_body(after, name, suspect.get("line") or 0))
        if lines:
            shown = [asdict(line) for line in lines[:MOST_LINES]]
            left_out = max(len(lines) - MOST_LINES, 0)
            excerpts.append({"file": suspect["file"], "function": name, "lines": shown, "left_out": left_out})
    return excerpts


def function_body(source: str, name: str, line: int = 0) -> Body:
    """The function of that name, the one at `line` first; the whole file for what stands outside of all."""
    every = source.split("\n")
    if name == changed_functions.MODULE:
        return Body(1, every)
    try:
        definitions = list(changed_functions.walk_definitions(changed_functions.parse_source(source), ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Body(1, [])
    called = [node for full, node in definitions if name in (full, full.rpartition(".")[2])]
    at_line = (node for node in called if changed_functions.first_line(node) == line)
    node = next(at_line, called[0] if called else None)
    if node is None:
        return Body(1, [])
    first = changed_functions.first_line(node)
    return Body(first, every[first - 1 : node.end_lineno])


def diff_bodies(before: Body, after: Body) -> list[DiffLine]:
    """The lines that differ, each with a few around it; empty where none does, or too many are there."""
    if len(before.lines) > MOST_COMPARED or len(after.lines) > MOST_COMPARED:
        return []
    matcher = SequenceMatcher(None, before.lines, after.lines, autojunk=False)
    shown: list[DiffLine] = []
    for number, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if number:
            shown.append(DiffLine("", None, None, "…"))
        for opcode in group:
            shown.extend(lines_of_opcode(opcode, before, after))
    return without_indentation(shown)


def without_indentation(shown: Sequence[DiffLine]) -> list[DiffLine]:
    """Without the indentation that all share: a method's lines then fit beside other things."""
    texts = [line.text for line in shown if line.sign and line.text]
    spare = min((len(text) - len(text.lstrip(" ")) for text in texts), default=0)
    return [replace(line, text=line.text[spare:]) if line.sign else line for line in shown]


def lines_of_opcode(opcode: tuple[str, int, int, int, int], before: Body, after: Body) -> Iterator[DiffLine]:
    tag, i, j, k, m = opcode
    if tag == "equal":
        for shift in range(j - i):
            yield diff_line(" ", before.first + i + shift, after.first + k + shift, after.lines[k + shift])
        return
    for index in range(i, j):
        yield diff_line("-", before.first + index, None, before.lines[index])
    for index in range(k, m):
        yield diff_line("+", None, after.first + index, after.lines[index])


def diff_line(sign: str, old: int | None, new: int | None, text: str) -> DiffLine:
    clipped = text.rstrip().replace("\0", "\N{REPLACEMENT CHARACTER}")
    if len(clipped) > MOST_LETTERS:
        clipped = clipped[:MOST_LETTERS] + "…"
    return DiffLine(sign, old, new, clipped)
