"""One warning as the document holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Raw = Mapping[str, Any]
Warnings = list[dict[str, Any]]
WarningRows = Iterator[dict[str, Any]]


def make_warning(code: str, message: str, advice: str, *, taints: bool = False) -> dict[str, Any]:
    """Return a warning: what was seen, what to do about it, and whether it keeps the run out of judgement."""
    return {"code": code, "message": message, "advice": advice, "taints": taints}
