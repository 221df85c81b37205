"""The lines of a suspect that a commit range changed: its function before and after, as a diff."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from dashboard.models import Commit, Project
from dashboard.regressions import diffs, touched
from dashboard.repositories import RepositoryError, mirror_of

logger = logging.getLogger(__name__)

# What a page shows: enough to see what was done, not a review.
MOST_FUNCTIONS = 3
MOST_LINES = 40
MOST_LETTERS = 200
CONTEXT = 2
# Comparing takes the square of it at worst.
MOST_COMPARED = 1500


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a diff; a number is None on the side where the line isn't. A gap has neither."""

    sign: str
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What changed in one function; `left_out` lines of it aren't shown."""

    file: str
    function: str
    lines: Sequence[Line]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Body:
    """The lines of a function in its file, the first with its number."""

    first: int
    lines: Sequence[str]


def changed_lines(
    project: Project, good: Commit, bad: Commit, suspects: Sequence[Mapping[str, Any]]
) -> list[Excerpt]:
    """An excerpt of each of the first suspects that the range changed; none where the mirror can't say."""
    asked = [one for one in suspects if one.get("changed") and one.get("file")][:MOST_FUNCTIONS]
    if not asked or not project.repository:
        return []
    mirror = mirror_of(project)
    try:
        moved = {one.new: one.old for one in diffs.changed(mirror, good.hash, bad.hash)}
        old = diffs.texts(mirror, {f"{good.hash}:{moved.get(one['file']) or one['file']}" for one in asked})
        new = diffs.texts(mirror, {f"{bad.hash}:{one['file']}" for one in asked})
    except RepositoryError as error:
        logger.warning("The lines that %s changed in %s aren't shown: %s", bad, project, error)
        return []
    found = []
    for one in asked:
        before = old.get(f"{good.hash}:{moved.get(one['file']) or one['file']}", "")
        after = new.get(f"{bad.hash}:{one['file']}", "")
        lines = compare(body(before, one["function"]), body(after, one["function"], one.get("line") or 0))
        if lines:
            left = max(len(lines) - MOST_LINES, 0)
            found.append(Excerpt(one["file"], one["function"], lines[:MOST_LINES], left))
    return found


def body(source: str, name: str, line: int = 0) -> Body:
    """The function of that name, the one at `line` first; the whole file for what stands outside of all."""
    every = source.split("\n")
    if name == touched.MODULE:
        return Body(1, every)
    try:
        known = list(touched.walk(ast.parse(source), ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Body(1, [])
    called = [node for full, node in known if name in (full, full.rpartition(".")[2])]
    node = next((one for one in called if touched.first_line(one) == line), called[0] if called else None)
    if node is None:
        return Body(1, [])
    first = touched.first_line(node)
    return Body(first, every[first - 1 : node.end_lineno])


def compare(before: Body, after: Body) -> list[Line]:
    """The lines that differ, each with a few around it; empty where none does, or too many are there."""
    if len(before.lines) > MOST_COMPARED or len(after.lines) > MOST_COMPARED:
        return []
    matcher = SequenceMatcher(None, before.lines, after.lines, autojunk=False)
    shown: list[Line] = []
    for number, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if number:
            shown.append(Line("", None, None, "…"))
        for opcode in group:
            shown.extend(written(opcode, before, after))
    return dedented(shown)


def dedented(shown: Sequence[Line]) -> list[Line]:
    """Without the indentation that all share: a method's lines then fit beside other things."""
    texts = [one.text for one in shown if one.sign and one.text]
    spare = min((len(text) - len(text.lstrip(" ")) for text in texts), default=0)
    return [replace(one, text=one.text[spare:]) if one.sign else one for one in shown]


def written(opcode: tuple[str, int, int, int, int], before: Body, after: Body) -> Iterator[Line]:
    tag, i, j, k, m = opcode
    if tag == "equal":
        for shift in range(j - i):
            yield line(" ", before.first + i + shift, after.first + k + shift, after.lines[k + shift])
        return
    for place in range(i, j):
        yield line("-", before.first + place, None, before.lines[place])
    for place in range(k, m):
        yield line("+", None, after.first + place, after.lines[place])


def line(sign: str, old: int | None, new: int | None, text: str) -> Line:
    clipped = text.rstrip()
    return Line(sign, old, new, clipped if len(clipped) <= MOST_LETTERS else clipped[:MOST_LETTERS] + "…")
