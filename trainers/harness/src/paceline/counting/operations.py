"""Tensor operations by kind and phase, seen by a dispatch mode. Imported only where torch is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..counters import SCALAR_READ
from ..measured.marks import ThreadState

COPIES = ("aten::_to_copy", "aten::copy_", "aten::_copy_from")
# The size of their result lies on the device, so the host waits for it.
WAITING = ("aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::unique_dim", "aten::equal")


class Tally:
    """Counts of one phase."""

    def __init__(self) -> None:
        self.operations: defaultdict[str, int] = defaultdict(int)
        self.copies = 0
        self.copied_bytes = 0
        self.synchronisations = 0


class OperationMode(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """Counts what one thread dispatches, backward passes on the host included."""

    def __init__(self, state: ThreadState, is_on: Callable[[], bool]) -> None:
        super().__init__()
        self._state = state
        self._is_on = is_on
        self._names: dict[Any, str] = {}
        self.tallies: defaultdict[str, Tally] = defaultdict(Tally)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Count one operation and run it."""
        result = func(*args, **(kwargs or {}))
        if self._is_on():
            self._count(func, args, kwargs or {}, result)
        return result

    def count_synchronize(self) -> None:
        """Count explicit waits for a CUDA device too; they pass no dispatcher."""
        wait = torch.cuda.synchronize

        def counted(*args: Any, **kwargs: Any) -> None:
            if self._is_on():
                self.tallies[self._state.node.path].synchronisations += 1
            wait(*args, **kwargs)

        torch.cuda.synchronize = counted

    def _count(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        name = self._names.get(func)
        if name is None:
            name = self._names[func] = str(func._schema.name)
        tally = self.tallies[self._state.node.path]
        tally.operations[name] += 1
        if name in COPIES:
            _count_copy(tally, args, kwargs, result)
        elif (name == SCALAR_READ or name in WAITING) and _on_device(args[0]):
            tally.synchronisations += 1


def _count_copy(tally: Tally, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
    source = next((value for value in reversed(args) if isinstance(value, torch.Tensor)), None)
    if source is None or not isinstance(result, torch.Tensor) or source.device.type == result.device.type:
        return
    tally.copies += 1
    tally.copied_bytes += result.nbytes
    asynchronous = kwargs.get("non_blocking", False) or (len(args) > 2 and args[2] is True)
    tally.synchronisations += not asynchronous


def _on_device(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type != "cpu"
