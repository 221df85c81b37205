"""What differs between two environments, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def format_difference(difference: Sequence[str]) -> str:
    """`driver 550.1 → 560.2`: what differs, and what it was before and after."""
    name, before, after = difference
    return f"{name} {before} → {after}" if before or after else name


def describe_differences(differences: Iterable[Sequence[str]]) -> str:
    """`driver 550.1 → 560.2, torch 2.12.0 → 2.13.0`."""
    return ", ".join(format_difference(difference) for difference in differences)
