"""Paths of phases: `learn/backward` is nested in `learn`."""

from __future__ import annotations


def is_in_phase(inner: str, outer: str) -> bool:
    """True where the phase `inner` is the phase `outer`, or nested in it; an empty one holds all."""
    return not outer or inner == outer or inner.startswith(f"{outer}/")
