"""The phase of compilation: TorchDynamo's work between its callbacks for the begin and the end of it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from types import ModuleType
from typing import Any

import paceline

COMPILE = "compile"

_inside: set[int] = set()


def patch_compilation(callback: Any) -> None:
    """Time compilation, once the module `torch._dynamo.callback` is imported."""
    handler = callback.CompilationCallbackHandler
    # Not by callbacks of our own: torch.compiler.reset forgets them.
    original = handler.install_callbacks

    @functools.wraps(original)
    @contextmanager
    def install_callbacks(*args: Any, **kwargs: Any) -> Iterator[None]:
        ident = get_ident()
        if ident in _inside:
            # What is compiled while something is compiled belongs to it.
            with original(*args, **kwargs):
                yield
            return
        _inside.add(ident)
        try:
            with paceline.phase(COMPILE), original(*args, **kwargs):
                yield
        finally:
            _inside.discard(ident)

    handler.install_callbacks = install_callbacks


def trace_through_wrappers(trace_rules: ModuleType) -> None:
    """Let the compiler treat this package as it does `torch.nn`: traced through, never compiled by itself.

    All wrappers share one code, of which it keeps eight compiled versions: what more of them call, such as
    a ninth compiled module, would not be compiled. Before it traces anything it asks which modules it may.
    """
    traced = getattr(trace_rules, "get_mod_inlinelist", None)
    skip = getattr(trace_rules, "add", None)
    if traced is not None and skip is not None:
        folder = str(Path(paceline.__file__).parent)

        @functools.cache
        def traced_modules() -> set[str]:
            paceline.may_be_traced = True
            return {*traced(), folder}

        trace_rules.get_mod_inlinelist = traced_modules  # type: ignore[attr-defined]
        skip(paceline.__name__)
    else:
        paceline.may_be_traced = True
