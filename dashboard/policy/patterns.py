"""Patterns for branches, tags and paths: `*` stops at a slash, `**` doesn't, `!` takes back."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Iterable, Sequence

# Distinct paths of a large push.
CACHED_MATCHES = 1 << 16


def selects_name(patterns: Sequence[str], name: str) -> bool:
    """Whether the last pattern that matches the name of a branch or tag takes it in."""
    return _last_match(patterns, lambda pattern: _matches_whole(pattern, name))


def selects_path(patterns: Sequence[str], path: str) -> bool:
    """As `selects_name`, for a file; a pattern without a slash is matched with its name in any folder."""
    return _last_match(patterns, lambda pattern: _matches_path(pattern, path))


def touched_paths(changed: Iterable[str], paths: Sequence[str], paths_ignore: Sequence[str]) -> list[str]:
    """The changed files that count: those of `paths` (empty: all) without those of `paths_ignore`."""
    counted = (path for path in changed if not selects_path(paths_ignore, path))
    return [path for path in counted if not paths or selects_path(paths, path)]


def _last_match(patterns: Sequence[str], is_match: Callable[[str], bool]) -> bool:
    # A list of exceptions alone takes in everything else.
    selected = bool(patterns) and patterns[0].startswith("!")
    for pattern in patterns:
        taken_back = pattern.startswith("!")
        if is_match(pattern[1:] if taken_back else pattern):
            selected = not taken_back
    return selected


@functools.lru_cache(CACHED_MATCHES)
def _matches_path(pattern: str, path: str) -> bool:
    if "/" not in pattern:
        return _matches_segment(pattern, path.rpartition("/")[2])
    # What names a folder means all that is in it.
    return _matches_whole(f"{pattern}**" if pattern.endswith("/") else pattern, path)


@functools.lru_cache(CACHED_MATCHES)
def _matches_whole(pattern: str, text: str) -> bool:
    segments = pattern.lstrip("/").split("/")
    # Which segments of the pattern may come next, after each segment of the text.
    states = _skip_globstars({0}, segments)
    for part in text.split("/"):
        after: set[int] = set()
        for state in states:
            if state == len(segments):
                continue
            if segments[state] == "**":
                after.add(state)
            elif _matches_segment(segments[state], part):
                after.add(state + 1)
        states = _skip_globstars(after, segments)
        if not states:
            return False
    # `docs/**` is what lies in the folder, not a file of its name.
    return len(segments) in states


def _skip_globstars(states: set[int], segments: Sequence[str]) -> set[int]:
    """`**` stands for no segment too."""
    reached = set(states)
    for state in states:
        index = state
        while index < len(segments) and segments[index] == "**":
            index += 1
            reached.add(index)
    return reached


def _matches_segment(pattern: str, part: str) -> bool:
    return _compile_segment(pattern).match(part) is not None


@functools.lru_cache(4096)
def _compile_segment(pattern: str) -> re.Pattern[str]:
    # Without backtracking over its stars, however many a pattern has.
    return re.compile(fnmatch.translate(pattern))
