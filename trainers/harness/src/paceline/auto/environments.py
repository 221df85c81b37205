"""Phases of reinforcement learning environments: gymnasium's, and those of its predecessor gym."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from . import pace
from .wrapping import Function, every_class, never, outermost, stepping

STEP = "env_step"
RESET = "env_reset"


def patch(library: ModuleType) -> None:
    """Time the environments of the library, once it is imported."""
    for name in ("Env", "Wrapper"):
        _patch_family(getattr(library, name, None))


def patch_vector(library: ModuleType) -> None:
    """Time its vector environments."""
    for name in ("VectorEnv", "VectorWrapper"):
        _patch_family(getattr(library, name, None))


def _patch_family(base: Any) -> None:
    if not isinstance(base, type) or any("__paceline__" in vars(cls) for cls in base.__mro__):
        return  # of the family of another base
    base.__paceline__ = True  # type: ignore[attr-defined]
    every_class(base, "step", _step)
    every_class(base, "reset", _reset)


def _step(original: Function) -> Function:
    return stepping(STEP, pace.ENVIRONMENT, original, never)


def _reset(original: Function) -> Function:
    return outermost(RESET, original, never)
