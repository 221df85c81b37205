"""The agent's arithmetic written out in numpy: acting, and the update with its own backward pass.

The arrays are the network's own parameters seen from numpy, so that either half can be switched alone and
whatever torch's optimizer does to them is seen at once. That works on the CPU only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

Floats = NDArray[np.float32]
Arrays = tuple[Floats, NDArray[np.int64], Floats, Floats, Floats]
"""Views, actions, rewards, next views, ended: a row for each transition."""


class NumpyNetwork:
    """Forward and backward of the network's three layers; weights are seen as inputs x outputs."""

    def __init__(self, network: nn.Sequential, discount: float) -> None:
        self._discount = np.float32(discount)
        self._layers = _pairs([parameter.detach().numpy().T for parameter in network.parameters()])

    def own(self, network: nn.Sequential) -> nn.Parameter:
        """Move the network's parameters into one tensor, and return it: an optimizer has one instead of six.

        There a weight lies as inputs x outputs, which is the faster way round for the products of a batch.
        """
        parameters = [parameter.detach() for parameter in network.parameters()]
        flat = nn.Parameter(flattened(parameters))
        flat.grad = torch.zeros_like(flat)
        self._shapes = [parameter.t().shape for parameter in parameters]
        values, slopes = self._parts(flat.detach()), self._parts(flat.grad)
        for parameter, value in zip(network.parameters(), values, strict=True):
            parameter.data = value.t()
        self._layers, self._slopes = (_pairs([array.numpy() for array in side]) for side in (values, slopes))
        return flat

    def split(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Return the parts of such a tensor in the shapes of the network's parameters."""
        return [part.t().contiguous() for part in self._parts(flat)]

    def _parts(self, flat: torch.Tensor) -> list[torch.Tensor]:
        parts = flat.split([shape.numel() for shape in self._shapes])
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def best(self, view: Any) -> int:
        """Return the action of the highest value for one view."""
        (first, first_bias), (second, second_bias), (third, third_bias) = self._layers
        found = np.dot(view, first)
        found += first_bias
        np.maximum(found, 0, out=found)
        found = found.dot(second)
        found += second_bias
        np.maximum(found, 0, out=found)
        found = found.dot(third)
        found += third_bias
        return int(found.argmax())

    def forward(self, batch: Arrays) -> tuple[list[Floats], Floats]:
        """Return the activations of each layer for the batch's views, and the errors of the values taken."""
        views, actions, rewards, next_views, ended = batch
        ahead = self._activations(next_views)[-1].max(axis=1)
        activations = self._activations(views)
        taken = activations[-1][np.arange(len(actions)), actions]
        return [views, *activations], taken - (rewards + self._discount * (1 - ended) * ahead)

    def backward(self, activations: list[Floats], actions: NDArray[np.int64], errors: Floats) -> None:
        """Write the gradient of the mean squared error to where the optimizer reads it."""
        slope = np.zeros_like(activations[-1])
        slope[np.arange(len(actions)), actions] = errors * np.float32(2 / len(errors))
        for at in (2, 1, 0):
            weight_slope, bias_slope = self._slopes[at]
            np.matmul(activations[at].T, slope, out=weight_slope)
            np.sum(slope, axis=0, out=bias_slope)
            if at:
                slope = slope @ self._layers[at][0].T
                slope *= activations[at] > 0

    def _activations(self, views: Floats) -> list[Floats]:
        found, activations = views, []
        for at, (weight, bias) in enumerate(self._layers):
            found = found @ weight
            found += bias
            if at < 2:
                np.maximum(found, 0, out=found)
            activations.append(found)
        return activations


def flattened(parameters: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the parameters in one tensor, each weight as inputs x outputs."""
    return torch.cat([parameter.t().flatten() for parameter in parameters])


def _pairs(arrays: list[Floats]) -> list[tuple[Floats, Floats]]:
    """Return each layer's weight and bias."""
    return list(zip(arrays[::2], arrays[1::2], strict=True))
