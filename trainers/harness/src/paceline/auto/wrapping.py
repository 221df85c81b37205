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
from weakref import WeakSet

import paceline

from . import step_finder

Function = Callable[..., Any]


class OutermostCalls:
    """Which threads are in a call of one phase's wrappers, and the node of the first thread's last call.

    `is_open` is said of the first thread, `others` are the numbers of the others. Between two calls a
    training computes, so that all memory that a call needs has left the processor's caches: the first
    thread, which makes nearly all calls, needs only this object, its own state and the node.
    """

    __slots__ = ("is_open", "name", "node", "others")

    def __init__(self, name: str) -> None:
        self.name = name
        self.forget()

    def __reduce__(self) -> tuple[Callable[[str], OutermostCalls], tuple[str]]:
        return calls_of_phase, (self.name,)

    def enter(self, ident: int) -> None:
        """Note that the thread with this number is inside a call."""
        if ident == paceline.first_thread.ident:
            self.is_open = True
        else:
            self.others.add(ident)

    def leave(self, ident: int) -> None:
        """Note that it is no more."""
        if ident == paceline.first_thread.ident:
            self.is_open = False
        self.others.discard(ident)

    def forget(self) -> None:
        """Forget who is inside a call."""
        self.is_open = False
        self.others: set[int] = set()
        self.node: Any = None

    def is_inside(self, ident: int) -> bool:
        """Return whether the thread with this number is inside a call."""
        return self.is_open if ident == paceline.first_thread.ident else ident in self.others

    def find_threads(self) -> set[int]:
        """Return the numbers of the threads that are inside a call."""
        return {paceline.first_thread.ident, *self.others} if self.is_open else self.others


_calls: dict[str, OutermostCalls] = {}
_wrappers: WeakSet[Function] = WeakSet()


def calls_of_phase(name: str) -> OutermostCalls:
    """Return those of the phase with this name, which its wrappers keep up."""
    if name not in _calls:
        _calls[name] = OutermostCalls(name)
    return _calls[name]


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
    calls = calls_of_phase(name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        # A tracer takes the first test for a constant, so that nothing below becomes part of its graph.
        if paceline.may_be_traced and is_traced():
            return original(*args, **kwargs)
        ident, first = get_ident(), paceline.first_thread
        if calls.is_open if ident == first.ident else ident in calls.others:
            result = original(*args, **kwargs)
            if after_inner is not None:
                after_inner(ident, args[0])
            return result
        if passes_through is not None and passes_through(ident, args):
            return original(*args, **kwargs)
        node = calls.node
        if ident != first.ident:
            node = None
        elif node is None or node.parent is not first.node:
            node = calls.node = first.node.children.get(name)
        if node is None or not node.is_plain:
            return _call_in_phase(calls, ident, after, original, args, kwargs)
        # What the lines below do takes three calls, each of which has left the processor's caches.
        calls.is_open, has_returned = True, False
        first.node = node
        node.start = perf_counter()
        try:
            result = original(*args, **kwargs)
            has_returned = True
        finally:
            if first.node is node and node.is_plain:
                node.total += perf_counter() - node.start
                node.count += 1
                first.node = node.parent
            else:
                node.__exit__(None, None, None)
            calls.is_open = False
            if after is not None:
                after(ident, has_returned, args)
        return result

    _wrappers.add(wrapped)
    return wrapped


def unwrap_function(function: Function) -> Function:
    """Return what a wrapper of `wrap_outermost` calls; another function as it is."""
    return function.__wrapped__ if function in _wrappers else function  # type: ignore[attr-defined]


def _call_in_phase(
    calls: OutermostCalls,
    ident: int,
    after: Callable[[int, bool, tuple[Any, ...]], None] | None,
    original: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call in any thread and at the first time, when the phase has no node yet."""
    has_returned = False
    calls.enter(ident)
    try:
        with paceline.phase(calls.name):
            result = original(*args, **kwargs)
        has_returned = True
    finally:
        calls.leave(ident)
        if after is not None:
            after(ident, has_returned, args)
    return result


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
    for calls in _calls.values():
        calls.forget()
