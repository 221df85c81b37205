"""The network that plays: through torch, or written out in numpy with its own backward pass."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import paceline
import torch
from benchmark_support.checkpoints import (
    State,
    adam_state,
    generator_state,
    restore_adam,
    restore_generator,
)
from benchmark_support.cuda_graphs import Replayed
from environment import ACTIONS, Floats, Integers
from memory import Batch
from numpy.typing import NDArray
from torch import nn

BETAS = (0.9, 0.999)
EPSILON = 1e-8
"""Of Adam, as torch has them."""


class Agent:
    """The network with its optimizer, through torch: acts, and learns from batches."""

    def __init__(self, args: Any, features: int, device: torch.device) -> None:
        self.args = args
        self.device = device
        self.network = nn.Sequential(
            nn.Linear(features, args.hidden),
            nn.ReLU(),
            nn.Linear(args.hidden, args.hidden),
            nn.ReLU(),
            nn.Linear(args.hidden, ACTIONS),
        ).to(device)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=args.learning_rate, capturable=bool(args.graphs)
        )
        self.update = Replayed(self._update) if args.graphs else self._update
        self.random = np.random.default_rng(args.seed)

    def hold(self, views: Floats) -> Any:
        """Bring views to where the network is, and return them as the loop passes them on."""
        return self._tensor(views)

    def act(self, views: Any, exploration: float) -> Any:
        """Return an action for each view: mostly the best, with the given share random ones."""
        explores = self.random.random(len(views)) < exploration
        drawn = self.random.integers(ACTIONS, size=len(views))
        return torch.where(self._tensor(explores), self._tensor(drawn), self.best(views))

    def best(self, views: Any) -> Any:
        """Return the action of the highest value for each view."""
        with torch.inference_mode(), self._precision():
            if self.args.acting == "batch":
                return self.network(views).argmax(dim=1)
            return torch.stack([self.network(view.unsqueeze(0)).argmax(dim=1)[0] for view in views])

    def learn(self, batch: Batch) -> Callable[[], float]:
        """One step of the optimizer; returns how to read the loss: that may wait for the device."""
        loss: torch.Tensor = self.update(tuple(map(self._tensor, batch)))
        return loss.item

    def parameters(self) -> list[NDArray[Any]]:
        """Return the parameters as arrays."""
        return [parameter.detach().cpu().numpy() for parameter in self.network.parameters()]

    def state(self) -> State:
        """Return all that it has learned and draws, for a checkpoint; NumpyNetwork's is alike."""
        return {
            "parameters": [parameter.detach().cpu() for parameter in self.network.parameters()],
            "adam": adam_state(self.optimizer),
            "random": generator_state(self.random),
        }

    def restore(self, state: State) -> None:
        """Go on from there."""
        with torch.no_grad():
            for parameter, value in zip(self.network.parameters(), state["parameters"], strict=True):
                parameter.copy_(value)
        restore_adam(self.optimizer, state["adam"])
        restore_generator(self.random, state["random"])

    def _update(self, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        with paceline.phase("forward"):
            loss = self._loss(batch)
        with paceline.phase("backward"):
            self.optimizer.zero_grad()
            loss.backward()
        with paceline.phase("optimizer"):
            self.optimizer.step()
        return loss

    def _loss(self, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        views, actions, rewards, following, ended = batch
        with self._precision():
            with torch.no_grad():
                ahead = self.network(following).amax(dim=1)
            values = self.network(views).gather(1, actions.unsqueeze(1)).squeeze(1)
        targets = rewards + self.args.discount * (1 - ended) * ahead.float()
        return nn.functional.mse_loss(values.float(), targets)

    def _tensor(self, array: NDArray[Any]) -> torch.Tensor:
        tensor = torch.from_numpy(array)
        if self.device.type == "cpu":
            return tensor
        if self.args.pinned:
            # From pinned memory the copy runs beside the code that follows.
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)

    def _precision(self) -> AbstractContextManager[Any]:
        if not self.args.bf16:
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)


class NumpyNetwork:
    """The same network in numpy. The parameters lie in one array, so that Adam is a few operations on it."""

    def __init__(self, args: Any, features: int) -> None:
        self.args = args
        self.random = np.random.default_rng(args.seed)
        self._shapes = shapes = [(features, args.hidden), (args.hidden, args.hidden), (args.hidden, ACTIONS)]
        size = sum(inputs * outputs + outputs for inputs, outputs in shapes)
        self.flat, self.gradient = np.zeros(size, dtype=np.float32), np.zeros(size, dtype=np.float32)
        self.layers, self.gradients = _layers(self.flat, shapes), _layers(self.gradient, shapes)
        self._start(shapes)
        self._mean, self._square = np.zeros_like(self.flat), np.zeros_like(self.flat)
        self._work = np.zeros_like(self.flat), np.zeros_like(self.flat)
        self._updates = 0
        self._rows = np.arange(args.batch_size)

    def hold(self, views: Floats) -> Any:
        """Return the views as the loop passes them on: as they are."""
        return views

    def act(self, views: Floats, exploration: float) -> Integers:
        """Return an action for each view: mostly the best, with the given share random ones."""
        explores = self.random.random(len(views)) < exploration
        drawn = self.random.integers(ACTIONS, size=len(views))
        return np.where(explores, drawn, self.best(views))

    def best(self, views: Floats) -> Integers:
        """Return the action of the highest value for each view."""
        return self._forward(views)[-1].argmax(axis=1)

    def learn(self, batch: Batch) -> Callable[[], float]:
        """One step of the optimizer; returns how to read the loss."""
        views, actions, rewards, following, ended = batch
        with paceline.phase("forward"):
            ahead = self._forward(following)[-1].max(axis=1)
            activations = self._forward(views)
            errors = activations[-1][self._rows, actions]
            errors -= rewards + np.float32(self.args.discount) * (1 - ended) * ahead
        with paceline.phase("backward"):
            self._backward(views, activations, actions, errors)
        with paceline.phase("optimizer"):
            self._adam()
        return lambda: float(errors @ errors) / len(errors)

    def parameters(self) -> list[NDArray[Any]]:
        """Return the parameters as arrays, in the shapes that torch gives them."""
        return [parameter.numpy() for parameter in _as_torch(self.layers)]

    def state(self) -> State:
        """Return all that it has learned and draws, for a checkpoint; Agent's is alike."""
        means, squares = _layers(self._mean, self._shapes), _layers(self._square, self._shapes)
        return {
            "parameters": _as_torch(self.layers),
            "adam": {"updates": self._updates, "means": _as_torch(means), "squares": _as_torch(squares)},
            "random": generator_state(self.random),
        }

    def restore(self, state: State) -> None:
        """Go on from there."""
        adam = state["adam"]
        kept = (self.flat, state["parameters"]), (self._mean, adam["means"]), (self._square, adam["squares"])
        for flat, values in kept:
            layers = [array for layer in _layers(flat, self._shapes) for array in layer]
            for array, value in zip(layers, values, strict=True):
                array[:] = value.numpy().T
        self._updates = adam["updates"]
        restore_generator(self.random, state["random"])

    def _start(self, shapes: list[tuple[int, int]]) -> None:
        """Draw the same parameters as torch's layers do."""
        for (inputs, outputs), (weight, bias) in zip(shapes, self.layers, strict=True):
            layer = nn.Linear(inputs, outputs)
            weight[:] = layer.weight.detach().numpy().T
            bias[:] = layer.bias.detach().numpy()

    def _forward(self, views: Floats) -> list[Floats]:
        """Return the activations of each layer; the last are the values of the actions."""
        activations = []
        found = views
        for at, (weight, bias) in enumerate(self.layers):
            found = found @ weight
            found += bias
            if at < 2:
                np.maximum(found, 0, out=found)
            activations.append(found)
        return activations

    def _backward(self, views: Floats, activations: list[Floats], actions: Integers, errors: Floats) -> None:
        """Write the gradient of the mean squared error."""
        inputs = [views, *activations[:-1]]
        slope = np.zeros_like(activations[-1])
        slope[self._rows, actions] = errors * np.float32(2 / len(errors))
        for at in (2, 1, 0):
            weight, bias = self.gradients[at]
            np.matmul(inputs[at].T, slope, out=weight)
            np.sum(slope, axis=0, out=bias)
            if at:
                slope = slope @ self.layers[at][0].T
                slope *= inputs[at] > 0

    def _adam(self) -> None:
        self._updates += 1
        (first, second), (step, root) = BETAS, self._work
        self._mean *= np.float32(first)
        self._mean += np.multiply(self.gradient, np.float32(1 - first), out=step)
        self._square *= np.float32(second)
        np.multiply(self.gradient, self.gradient, out=step)
        step *= np.float32(1 - second)
        self._square += step
        np.sqrt(self._square, out=root)
        root *= np.float32(1 / (1 - second**self._updates) ** 0.5)
        root += np.float32(EPSILON)
        np.divide(self._mean, root, out=step)
        step *= np.float32(self.args.learning_rate / (1 - first**self._updates))
        self.flat -= step


def _layers(flat: Floats, shapes: list[tuple[int, int]]) -> list[tuple[Floats, Floats]]:
    """Return each layer's weight, inputs x outputs, and bias as views of one array."""
    layers, at = [], 0
    for inputs, outputs in shapes:
        end = at + inputs * outputs
        layers.append((flat[at:end].reshape(inputs, outputs), flat[end : end + outputs]))
        at = end + outputs
    return layers


def _as_torch(layers: list[tuple[Floats, Floats]]) -> list[torch.Tensor]:
    """Return copies of weights and biases in the shapes that torch gives them."""
    return [torch.from_numpy(array.T.copy()) for layer in layers for array in layer]


def fingerprint(agent: Agent | NumpyNetwork) -> str:
    """A hash of all the parameters: equal for two runs that learned bit by bit the same."""
    digest = hashlib.sha256()
    for parameter in agent.parameters():
        digest.update(parameter.tobytes())
    return digest.hexdigest()
