"""Phases of reinforcement learning environments: gymnasium's, gym's, vector environments of others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from ..step_kinds import ENVIRONMENT
from .wrapping import Function, is_never_traced, wrap_in_every_class, wrap_outermost, wrap_step

STEP = "env_step"
RESET = "env_reset"


# By module: the classes whose families are environments.
FAMILIES = {
    "gymnasium": ("Env", "Wrapper"),
    "gymnasium.vector": ("VectorEnv", "VectorWrapper"),
    "gym": ("Env", "Wrapper"),
    "gym.vector": ("VectorEnv", "VectorWrapper"),
    "stable_baselines3.common.vec_env.base_vec_env": ("VecEnv",),
    "tianshou.env.venvs": ("BaseVectorEnv",),
    "envpool.python.envpool": ("EnvPoolMixin",),
}


def environment_patches() -> dict[str, Callable[[ModuleType], None]]:
    """Return what to do after the import of each library: time its environments."""
    return {name: functools.partial(_patch_families, names) for name, names in FAMILIES.items()}


def _patch_families(names: Iterable[str], library: ModuleType) -> None:
    for name in names:
        _patch_family(getattr(library, name, None))


def _patch_family(base: Any) -> None:
    if not isinstance(base, type) or any("__paceline__" in vars(cls) for cls in base.__mro__):
        return  # of the family of another base
    base.__paceline__ = True  # type: ignore[attr-defined]
    wrap_in_every_class(base, "step", _wrap_env_step)
    wrap_in_every_class(base, "reset", _wrap_env_reset)


def _wrap_env_step(original: Function) -> Function:
    return wrap_step(STEP, ENVIRONMENT, original, is_never_traced)


def _wrap_env_reset(original: Function) -> Function:
    return wrap_outermost(RESET, original, is_never_traced)
