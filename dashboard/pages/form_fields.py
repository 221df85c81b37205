"""What stands in a form's fields, as Postgres can take it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import BadRequest

# Longer ones are beyond any row, and Python refuses to read the longest.
MOST_DIGITS = 18
VERSION_DIGITS = 16
OVERTAKEN = (
    "Somebody has changed it since this page was loaded, so nothing was stored. What you typed stands below: "
    "sent again it takes the place of theirs."
)


def read_text(form: Mapping[str, Any], name: str) -> str:
    """Empty where the form lacks it; without a NUL, for which Postgres has no text."""
    return str(form.get(name, "")).replace("\0", "")


def read_sent_text(form: Mapping[str, Any], name: str) -> str:
    """Of a field whose empty text takes away what is there: a form without the field must not. As it was
    sent. Raises BadRequest."""
    if name not in form:
        raise BadRequest(f"{name}: the form that was sent lacks this field, so nothing was changed.")
    return str(form[name])


def text_version(text: str) -> str:
    """By which a form says which text it was made from, in its field `text_version`."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:VERSION_DIGITS]


def sent_version(form: Mapping[str, Any], stored: str) -> str:
    """That of the form; where it has none, as a script's, that of the text that is stored now."""
    return str(form.get("text_version", "")) or text_version(stored)


def parse_key(text: str) -> int:
    """The key of a row; 0, which no row has, where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else 0
