"""The interface that a measurement offers to the marks in training code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

_Item = TypeVar("_Item")


class Recorder(Protocol):
    """Takes the marks of the measured code; see the functions of the package for their meaning."""

    @property
    def phase(self) -> Callable[[str], AbstractContextManager[None]]: ...

    @property
    def lap(self) -> Callable[[str], None]: ...

    def steps(self, iterable: Iterable[_Item]) -> Iterable[_Item]: ...

    def count(self, name: str, n: float) -> None: ...

    def gauge(self, name: str, value: float) -> None: ...

    def quality(self, name: str, value: float) -> None: ...

    def setting(self, name: str, value: object) -> None: ...

    def stop_recording(self) -> None: ...
