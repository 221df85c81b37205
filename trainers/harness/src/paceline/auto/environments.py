"""Phases of reinforcement learning environments: gymnasium's, and those of its predecessor gym."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from . import pacing
from .wrapping import Function, is_never_traced, wrap_in_every_class, wrap_outermost, wrap_step

STEP = "env_step"
RESET = "env_reset"


def patch_environments(library: ModuleType) -> None:
    """Time the environments of the library, once it is imported."""
    for name in ("Env", "Wrapper"):
        _patch_family(getattr(library, name, None))


def patch_vector_environments(library: ModuleType) -> None:
    """Time its vector environments."""
    for name in ("VectorEnv", "VectorWrapper"):
        _patch_family(getattr(library, name, None))


def _patch_family(base: Any) -> None:
    if not isinstance(base, type) or any("__paceline__" in vars(cls) for cls in base.__mro__):
        return  # of the family of another base
    base.__paceline__ = True  # type: ignore[attr-defined]
    wrap_in_every_class(base, "step", _wrap_env_step)
    wrap_in_every_class(base, "reset", _wrap_env_reset)


def _wrap_env_step(original: Function) -> Function:
    return wrap_step(STEP, pacing.ENVIRONMENT, original, is_never_traced)


def _wrap_env_reset(original: Function) -> Function:
    return wrap_outermost(RESET, original, is_never_traced)
