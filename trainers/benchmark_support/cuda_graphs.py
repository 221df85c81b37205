"""An update of the network as one CUDA graph: one launch by the host, in place of one for each kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paceline
import torch

EAGER = 3
"""Updates before the capture: libraries choose their kernels in them, and the optimizer makes its state."""


class Replayed:
    """Calls `update` with batches of one shape: at first as it is, then by replaying what it does.

    `update` must neither wait for the device nor choose by values. What it returns lies in the same tensors
    after every call. The method is "whole-network capture" of PyTorch's notes on CUDA semantics.
    """

    def __init__(self, update: Callable[[tuple[torch.Tensor, ...]], Any]) -> None:
        self.update = update
        self.calls = 0
        self.inputs: tuple[torch.Tensor, ...] = ()
        self.graph: torch.cuda.CUDAGraph | None = None
        self.returned: Any = None

    def __call__(self, batch: tuple[torch.Tensor, ...]) -> Any:
        """One update; every call is exactly one, whether it is captured or not."""
        self.calls += 1
        if self.calls <= EAGER:
            return self._aside(batch)
        if self.graph is None:
            self._capture(batch)
        with paceline.phase("replay"):
            for mine, given in zip(self.inputs, batch, strict=True):
                mine.copy_(given, non_blocking=True)
            self.graph.replay()
        return self.returned

    def _aside(self, batch: tuple[torch.Tensor, ...]) -> Any:
        """Update on a stream of its own, as a capture asks of what runs before it."""
        here, stream = torch.cuda.current_stream(), torch.cuda.Stream()
        stream.wait_stream(here)
        with torch.cuda.stream(stream):
            returned = self.update(batch)
        here.wait_stream(stream)
        return returned

    def _capture(self, batch: tuple[torch.Tensor, ...]) -> None:
        """Record an update; nothing of it happens yet."""
        self.inputs = tuple(tensor.clone() for tensor in batch)
        self.graph = torch.cuda.CUDAGraph()
        # Another thread, such as one that samples the device, may go on calling it.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.returned = self.update(self.inputs)
