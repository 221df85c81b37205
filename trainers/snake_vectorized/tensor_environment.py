"""The same games on tensors, on a GPU where there is one: each row of environment.py's arrays is a row here.

All random numbers come from numpy's generator on the host, so that both play exactly the same games.
"""

from __future__ import annotations

import numpy as np
import torch
from environment import (
    EMPTY_BOARD,
    INNER_CELLS,
    LENGTH,
    LOOKS,
    MIDDLE,
    MOST,
    MOVES,
    NUMBERS,
    PATIENCE,
    TURNS,
    WIDTH,
    Booleans,
    Integers,
)


class TensorSnakes:
    """`count` games on a device, with the interface of Snakes; actions, rewards and views are tensors.

    What flood fill and the metrics read comes to the host as arrays: `blocked`, `ahead`, `ended_scores`
    and `ended_ages`.
    """

    def __init__(self, count: int, seed: int, device: torch.device) -> None:
        self.device = device
        self.random = np.random.default_rng(seed)
        self._empty, self._cells, self._moves, self._turns = map(
            self._moved, (EMPTY_BOARD, INNER_CELLS, MOVES, TURNS)
        )
        self._headings = torch.arange(4, device=device)
        self.boards = self._empty.repeat(count, 1)
        for name in NUMBERS:
            setattr(self, name, torch.zeros(count, dtype=torch.int64, device=device))
        self.ended_scores = self.ended_ages = np.zeros(0, dtype=np.int64)
        self._start(torch.arange(count, device=device))

    def step(self, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Move every snake by one cell. Return the rewards and which episodes ended."""
        distance = self._distance()
        self.heading = (self.heading + self._turns[actions]) % 4
        self.head = self.head + self._moves[self.heading]
        eats = self.head == self.food
        # The tail leaves first: its cell is free when the head arrives.
        self.clock += ~eats
        self.score += eats
        self.age += 1
        self.hunger = torch.where(eats, 0, self.hunger + 1)
        here = self.head.unsqueeze(1)
        dies = (self.boards.gather(1, here).squeeze(1) > self.clock) | (self.hunger >= PATIENCE)
        ended = dies | (self.score >= MOST)
        self.boards.scatter_(1, here, (self.clock + LENGTH + self.score).int().unsqueeze(1))
        nearer = torch.where(self._distance() < distance, 0.1, -0.1)
        rewards = torch.where(dies, -1.0, torch.where(eats, 1.0, nearer))
        self._begin_anew(ended, eats)
        return rewards, ended

    def view(self, out: torch.Tensor) -> None:
        """Write what every snake sees into `out`, count x LOOKS: ones and zeros."""
        out[:, :3] = self.boards.gather(1, self._next_cells()) > self.clock.unsqueeze(1) + 1
        out[:, 3:7] = self.heading.unsqueeze(1) == self._headings
        head_row, head_column, row, column = *_places(self.head), *_places(self.food)
        gaps = row < head_row, row > head_row, column < head_column, column > head_column
        out[:, 7:LOOKS] = torch.stack(gaps, dim=1)

    def ahead(self) -> Integers:
        """Return the cells that the three actions lead to, count x 3, on the host."""
        return self._next_cells().cpu().numpy()

    def blocked(self) -> Booleans:
        """Return which cells the body or a wall will still hold after a step, count x cells, on the host."""
        return (self.boards > self.clock.unsqueeze(1) + 1).cpu().numpy()

    def _next_cells(self) -> torch.Tensor:
        return self.head.unsqueeze(1) + self._moves[(self.heading.unsqueeze(1) + self._turns) % 4]

    def _begin_anew(self, ended: torch.Tensor, eats: torch.Tensor) -> None:
        over = ended.nonzero().squeeze(1)
        self.ended_scores, self.ended_ages = self.score[over].cpu().numpy(), self.age[over].cpu().numpy()
        self._start(over)
        self._place_food((eats & ~ended).nonzero().squeeze(1))

    def _start(self, games: torch.Tensor) -> None:
        """Start episodes in the middle of the board, heading anywhere."""
        self.boards[games] = self._empty
        self.head[games] = MIDDLE
        self.heading[games] = self._moved(self.random.integers(4, size=len(games)))
        for tensor in (self.clock, self.score, self.age, self.hunger):
            tensor[games] = 0
        for back in range(LENGTH):
            self.boards[games, MIDDLE - back * self._moves[self.heading[games]]] = LENGTH - back
        self._place_food(games)

    def _place_food(self, games: torch.Tensor) -> None:
        """Draw a cell for each of these games until all are free ones."""
        while len(games):
            cells = self._cells[self._moved(self.random.integers(len(INNER_CELLS), size=len(games)))]
            self.food[games] = cells
            games = games[self.boards[games, cells] > self.clock[games]]

    def _distance(self) -> torch.Tensor:
        head_row, head_column, row, column = *_places(self.head), *_places(self.food)
        return (head_row - row).abs() + (head_column - column).abs()

    def _moved(self, array: Integers) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)


def _places(cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows and the columns of cells of a board."""
    return torch.div(cells, WIDTH, rounding_mode="floor"), cells % WIDTH
