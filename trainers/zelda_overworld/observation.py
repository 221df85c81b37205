"""What the network sees: three pictures of the last three decisions, in gray, and fourteen facts."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import torch
from critics import Goal, Objective
from emulator import Picture
from model import Game
from world import Direction

STACK = 3
"""Pictures in an observation."""

FACTS = 14
"""Six about the objective, four for the direction we came from, four about the player."""

GRAYSCALE_WEIGHTS = torch.tensor([0.299, 0.587, 0.114])
GRAYSCALE_NORM_WEIGHTS_4D = (GRAYSCALE_WEIGHTS / 255.0).view(1, -1, 1, 1)

Stacked = torch.Tensor
"""float32, STACK x 3 x rows x columns, 0 to 255."""


def stack_tensors(frames: Sequence[Picture]) -> Stacked:
    """One tensor per picture, then one of all."""
    return torch.stack([torch.as_tensor(frame, dtype=torch.float32).permute(2, 0, 1) for frame in frames])


def stack_arrays(frames: Sequence[Picture]) -> Stacked:
    """One array of all pictures, then one tensor."""
    return torch.from_numpy(np.stack(frames)).permute(0, 3, 1, 2).contiguous().float()


def image_in_three(frames: Stacked) -> torch.Tensor:
    """Gray, STACK x rows x columns, 0 to 1: divided, multiplied, summed."""
    weights = GRAYSCALE_WEIGHTS.view(1, -1, 1, 1)
    return (frames / 255.0 * weights).sum(dim=1)


def image_in_two(frames: Stacked) -> torch.Tensor:
    """The same with the division in the weights, which differs in the last bits."""
    return (frames * GRAYSCALE_NORM_WEIGHTS_4D).sum(dim=1)


class Rolling:
    """Turns each picture to gray once, not once for each of the three stacks that it is in."""

    def __init__(self) -> None:
        self.grays: deque[torch.Tensor] = deque(maxlen=STACK)

    def push(self, frame: Picture) -> None:
        """Take the newest picture."""
        planes = torch.from_numpy(frame).permute(2, 0, 1).contiguous().float()
        self.grays.append((planes.unsqueeze(0) * GRAYSCALE_NORM_WEIGHTS_4D).sum(dim=1))

    def fill(self, frame: Picture) -> None:
        """Take the first picture of a game, in all places."""
        for _ in range(STACK):
            self.push(frame)

    def image(self) -> torch.Tensor:
        """Gray, STACK x rows x columns, 0 to 1."""
        return torch.cat(tuple(self.grays))


class Information:
    """The fourteen facts, from three tensors."""

    def vector(self, game: Game, objective: Objective | None, source: Direction | None) -> torch.Tensor:
        """float32, FACTS values: 0 or 1."""
        came = torch.zeros(4)
        if source is not None:
            came[source.value] = 1.0
        about = torch.zeros(4)
        about[0] = float(game.player.is_healthy)
        about[1] = float(game.player.is_weak)
        about[2] = float(bool(game.enemies_near))
        about[3] = float(game.player.has_sword_out)
        return torch.cat([self._objectives_vector(game, objective), came, about])

    def _objectives_vector(self, game: Game, objective: Objective | None) -> torch.Tensor:
        """Four directions in which the goal lies, and whether it is a thing or a fight."""
        vector = torch.zeros(6)
        if objective is None:
            return vector
        for way in objective.ways(game):
            vector[way.value] = 1.0
        if objective.goal is Goal.THING:
            vector[4] = 1.0
        elif objective.goal is Goal.FIGHT:
            vector[5] = 1.0
        return vector


class SingleTensorInformation(Information):
    """The same facts, written into one tensor."""

    def vector(self, game: Game, objective: Objective | None, source: Direction | None) -> torch.Tensor:
        """float32, FACTS values: 0 or 1."""
        vector = torch.zeros(FACTS)
        if objective is not None:
            for way in objective.ways(game):
                vector[way.value] = 1.0
            if objective.goal is Goal.THING:
                vector[4] = 1.0
            elif objective.goal is Goal.FIGHT:
                vector[5] = 1.0
        self._assign_direction_offset(vector, source, 6)
        player = game.player
        vector[10] = float(player.is_healthy)
        vector[11] = float(player.is_weak)
        vector[12] = float(bool(game.enemies_near))
        vector[13] = float(player.has_sword_out)
        return vector

    def _assign_direction_offset(self, vector: torch.Tensor, way: Direction | None, offset: int) -> None:
        if way is not None:
            vector[offset + way.value] = 1.0
