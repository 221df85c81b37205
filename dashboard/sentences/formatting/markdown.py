"""Text of others within markdown that a forge shows."""

from __future__ import annotations

# What markdown and forges read as something else than text: `@` would call people by their name.
SPECIAL = str.maketrans(
    {
        **{character: f"\\{character}" for character in "\\`*_{}[]()#|!~"},
        **{"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "@\u200b"},
    }
)


def escape_markdown(text: str) -> str:
    """One line that shows as it is written, and calls nobody."""
    return " ".join(text.split()).translate(SPECIAL)


def code_span(text: str) -> str:
    return f"`{' '.join(text.replace('`', ' ').split())}`"
