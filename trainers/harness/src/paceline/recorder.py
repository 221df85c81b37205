"""The interface that a measurement offers to the marks in training code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from .measured.phase_nodes import ThreadState

_Item = TypeVar("_Item")


class Recorder(Protocol):
    """Takes the marks of the measured code; see the functions of the package for their meaning."""

    @property
    def phase(self) -> Callable[[str], AbstractContextManager[None]]: ...

    @property
    def first_thread(self) -> ThreadState: ...

    @property
    def lap(self) -> Callable[[str], None]: ...

    def steps(self, iterable: Iterable[_Item]) -> Iterable[_Item]: ...

    def count(self, name: str, n: float) -> None: ...

    def gauge(self, name: str, value: float) -> None: ...

    def quality(self, name: str, value: float) -> None: ...

    def setting(self, name: str, value: object) -> None: ...

    def stop_recording(self) -> None: ...
