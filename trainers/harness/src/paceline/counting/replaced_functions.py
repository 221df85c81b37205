"""Replaces a function of the program by a wrapper of it, for as long as a window lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Function = Callable[..., Any]


@contextmanager
def replace_function(owner: Any, name: str, wrap: Callable[[Function], Function]) -> Iterator[None]:
    """Let a module or a class know what `wrap` returns by this name; an inherited method stays inherited."""
    original = getattr(owner, name)
    inherited = isinstance(owner, type) and name not in vars(owner)
    setattr(owner, name, wrap(original))
    try:
        yield
    finally:
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, original)
