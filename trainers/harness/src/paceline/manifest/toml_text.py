"""Reads TOML that anybody may have pushed: what would take the parser's memory is refused before it."""

from __future__ import annotations

import re
import tomllib
from typing import Any

# Of `a.b.c` the parser keeps each beginning: a key of a hundred thousand parts takes tens of gigabytes.
KEY_PARTS_LIMIT = 32
# What may hold quotes and dots that are no key's: comments, and texts over several lines. Where nothing ends
# such a text the parser reads to the end as well, so that neither pattern fails once it has begun.
_NO_KEY = "|".join(
    (
        r"#[^\n]*",
        r"""\"{3}(?:[^"\\]+|\\[\s\S]|"(?!""))*(?:"{3,5}|\\?\Z)""",
        r"""'{3}(?:[^']+|'(?!''))*(?:'{3,5}|\Z)""",
    )
)
# A part as it stands in a key; a quote that nothing closes reaches to the end of its line. Possessive: each
# character is looked at once.
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:\\.|[^"\\\n])*+"?|'[^'\n]*+'?)"""
_KEY = rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART})*+"
_TOKEN = re.compile(rf"{_NO_KEY}|({_KEY})")
_KEY_PART = re.compile(_PART)


def load_toml(text: str) -> dict[str, Any]:
    """Return what the text says.

    Raises tomllib.TOMLDecodeError; RecursionError where it is nested too deeply, ValueError for a number with
    too many digits.
    """
    for found in _TOKEN.finditer(text):
        key = found[1] or ""
        if key.count(".") >= KEY_PARTS_LIMIT and len(_KEY_PART.findall(key)) > KEY_PARTS_LIMIT:
            raise tomllib.TOMLDecodeError(f"a key has more than {KEY_PARTS_LIMIT} parts with dots between")
    return tomllib.loads(text)
