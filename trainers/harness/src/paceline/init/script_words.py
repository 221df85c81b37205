"""What `init` passes to the script that it tries; read before anything else of `init` is imported."""

from __future__ import annotations

from collections.abc import Sequence


def split_arguments(words: Sequence[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """Part a command line of `init` at its `--`; None where it has none."""
    if words[:1] != ["init"] or "--" not in words:
        return list(words), None
    place = words.index("--")
    return list(words[:place]), tuple(words[place + 1 :])
