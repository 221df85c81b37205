"""What may have been meant by a name that isn't known, and what is known."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from itertools import islice

MOST_NAMED = 8
NEAR = 0.4


def suggest_name(name: str, known: Collection[str]) -> str:
    """The end of a sentence: the nearest name where one is near, then those that are known, eight at most."""
    named = ", ".join(islice(known, MOST_NAMED))
    if len(known) > MOST_NAMED:
        named += f" and {len(known) - MOST_NAMED} more"
    near = get_close_matches(name, known, n=1, cutoff=NEAR)
    return f"did you mean {near[0]}? It has {named}." if near else f"it has {named or 'none'}."
