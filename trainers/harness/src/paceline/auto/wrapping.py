"""Wrappers that open a phase around a function's outermost call in a thread.

A wrapper refers to nothing but its original and names of this package: a script may pickle its own classes
by value (cloudpickle does), and a process that unpickles them has no recorder, where phases do nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from time import perf_counter
from types import FunctionType
from typing import Any

import paceline

from . import step_finder

Function = Callable[..., Any]

# By phase: the threads that are inside a call.
_inside: dict[str, set[int]] = {}


def threads_inside(name: str) -> set[int]:
    """Return the threads that are inside a call of the phase; the set is kept up by its wrappers."""
    return _inside.setdefault(name, set())


def wrap_outermost(
    name: str,
    original: Function,
    is_traced: Callable[[], bool],
    after: Callable[[int, bool, tuple[Any, ...]], None] | None = None,
    after_inner: Callable[[int, Any], object] | None = None,
    passes_through: Callable[[int, tuple[Any, ...]], bool] | None = None,
) -> Function:
    """Return `original` in a phase; calls inside a call, and those that are being traced, pass through.

    `after` is called behind each call with its thread, whether it has returned, and its arguments;
    `after_inner` behind each one inside a call, with the thread and the first argument. `passes_through` says
    of other calls, by thread and arguments, whether they pass through as well.
    """
    inside = threads_inside(name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        # A tracer takes the first test for a constant, so that nothing below becomes part of its graph.
        if is_traced():
            return original(*args, **kwargs)
        ident = get_ident()
        if ident in inside:
            result = original(*args, **kwargs)
            if after_inner is not None:
                after_inner(ident, args[0])
            return result
        if passes_through is not None and passes_through(ident, args):
            return original(*args, **kwargs)
        inside.add(ident)
        has_returned, node = False, None
        try:
            if ident == paceline.first_ident:
                first: Any = paceline.first_thread
                node = first.node.children.get(name)
            if node is not None and node.is_plain:
                # What the lines below do takes three calls, each of which has left the processor's caches.
                first.node = node
                node.start = perf_counter()
                result = original(*args, **kwargs)
            else:
                node = None
                with paceline.phase(name):
                    result = original(*args, **kwargs)
            has_returned = True
        finally:
            if node is not None:
                if first.node is node and node.is_plain:
                    node.total += perf_counter() - node.start
                    node.count += 1
                    first.node = node.parent
                else:
                    node.__exit__(None, None, None)
            inside.discard(ident)
            if after is not None:
                after(ident, has_returned, args)
        return result

    return wrapped


def _owner_itself(stepped: object) -> object:
    return stepped


def wrap_step(
    name: str,
    kind: str,
    original: Function,
    is_traced: Callable[[], bool],
    owner: Callable[[Any], object] = _owner_itself,
) -> Function:
    """Return a method wrapped as by `wrap_outermost`, whose end may be the end of a step of its `owner`."""
    return wrap_outermost(name, original, is_traced, functools.partial(_end_step, kind, owner))


def _end_step(
    kind: str, owner: Callable[[Any], object], _ident: int, has_returned: bool, args: tuple[Any, ...]
) -> None:
    if has_returned:
        step_finder.end_owner_step(kind, owner(args[0]))


def is_never_traced() -> bool:
    """Return False, for functions that no compiler ever traces."""
    return False


def wrap_in_every_class(base: type[Any], method: str, wrap: Callable[[Function], Function]) -> None:
    """Wrap a method wherever a class of this family defines it, also in classes that are defined later."""
    for cls in _class_family(base):
        _wrap_own_method(base, cls, method, wrap)
    before = base.__dict__.get("__init_subclass__")

    def __init_subclass__(cls: type[Any], /, **kwargs: Any) -> None:  # noqa: N807  # it becomes that method
        if before is None:
            super(base, cls).__init_subclass__(**kwargs)
        else:
            before.__get__(None, cls)(**kwargs)
        _wrap_own_method(base, cls, method, wrap)

    setattr(base, "__init_subclass__", classmethod(__init_subclass__))  # noqa: B010  # a method of `type`


def _class_family(base: type[Any]) -> list[type[Any]]:
    family = [base]
    for cls in family:
        # A class with two bases of the family is found twice.
        family += [subclass for subclass in type.__subclasses__(cls) if subclass not in family]
    return family


def _wrap_own_method(
    base: type[Any], cls: type[Any], method: str, wrap: Callable[[Function], Function]
) -> None:
    holder = next((ancestor for ancestor in cls.__mro__ if method in vars(ancestor)), None)
    if holder is None or (holder is not cls and issubclass(holder, base)):
        return  # inherited from a class whose method is wrapped
    original = vars(holder)[method]
    # What is no plain function stays as it is: an abstract method, a class, a static method.
    if isinstance(original, FunctionType) and not getattr(original, "__isabstractmethod__", False):
        # A class beside the family (a mixin) is left alone; its method is wrapped for this class only.
        setattr(cls, method, wrap(original))


def forget_calls() -> None:
    """Forget who is inside a call: a forked process comes out of none of its parent's."""
    for inside in _inside.values():
        inside.clear()
