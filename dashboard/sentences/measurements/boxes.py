"""The box that code was measured in, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.sentences.formatting.numbers import format_quantity

NO_BOX = "none: the code could reach whatever the host's account can"


def describe_box(box: Mapping[str, Any] | None) -> str:
    """One line from what a host has said of its box; empty where it said nothing."""
    if not box:
        return ""
    if box.get("kind") == "none":
        return NO_BOX
    parts = [str(box.get("kind"))]
    parts.append("no network" if box.get("network") == "none" else "with the host's network")
    if isinstance(box.get("memory"), int):
        whole = "in all" if box.get("memory_of") == "tree" else "of each process"
        parts.append(f"{format_quantity(box['memory'], 'bytes')} of memory {whole}")
    if isinstance(box.get("processes"), int):
        parts.append(f"{box['processes']} processes")
    return ", ".join(parts)
