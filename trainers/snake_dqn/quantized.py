"""The network with weights of 8 bits, to act with: dynamic quantization, as torch's deployments do it.

Each weight is rounded to one of 255 multiples of a step, and the activations of each call to multiples of a
step of their own (Jacob et al., 2018, "Quantization and training of neural networks for efficient
integer-arithmetic-only inference"). Training stays in float32: the rounded weights are made anew after each
update, when they are first needed.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn

LARGEST = 127


class QuantizedNetwork:
    """Three layers with ReLU between them, by torch's operations for quantized layers.

    torch.ao's `quantize_dynamic` makes modules of the same operations, but is deprecated, and takes twelve
    times as long to make them.
    """

    def __init__(self, network: nn.Sequential) -> None:
        self._layers = [layer for layer in network if isinstance(layer, nn.Linear)]
        self._packed: list[Any] = []

    def forget(self) -> None:
        """The network's weights have changed."""
        self._packed = []

    def __call__(self, views: torch.Tensor) -> torch.Tensor:
        """Return the values of the actions, len(views) x actions."""
        if not self._packed:
            self._packed = [_pack(layer) for layer in self._layers]
        *hidden, last = self._packed
        for packed in hidden:
            views = torch.ops.quantized.linear_relu_dynamic(views, packed)
        values: torch.Tensor = torch.ops.quantized.linear_dynamic(views, last)
        return values


def _pack(layer: nn.Linear) -> Any:
    weight = layer.weight.detach().contiguous()
    # A layer of zeros has any step.
    step = float(weight.abs().max()) / LARGEST or 1.0
    with warnings.catch_warnings():
        # torch says that tensors of 8 bits will move to another package, which isn't one of ours.
        warnings.simplefilter("ignore", UserWarning)
        rounded = torch.quantize_per_tensor(weight, step, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(rounded, layer.bias.detach())
