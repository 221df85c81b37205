"""Paths of phases: `learn/backward` is nested in `learn`."""

from __future__ import annotations


def holds(outer: str, inner: str) -> bool:
    """Is the phase `inner` the phase `outer`, or nested in it? Outside all phases is empty."""
    return not outer or inner == outer or inner.startswith(f"{outer}/")
