"""Snake on a square board, seen by the snake: a grid that is turned to its heading."""

from __future__ import annotations

import random
from collections import deque

import numpy as np
from numpy.typing import NDArray

BOARD = 20
"""Cells along one side of the board."""

VIEW = 20
"""Cells along one side of the view, which is what the network sees."""

AHEAD = 12
"""The view's row of the head: 12 rows lie ahead of it, 7 behind."""

LEFT = 10
"""The view's column of the head: 10 columns lie left of it, 9 right."""

ACTIONS = 3
"""Straight on, turn right, turn left."""

PATIENCE = 100
"""Steps without food after which an episode ends, as if the snake had died."""

MARGIN = VIEW
"""Wall around the board, wide enough that a view never leaves the array."""

WIDTH = BOARD + 2 * MARGIN
MOVES = (-WIDTH, 1, WIDTH, -1)
"""Offsets in the flat board of one cell north, east, south, west."""

TURNS = (0, 1, 3)
"""Quarter turns to the right for each action."""

View = NDArray[np.float32]


def _empty_board() -> View:
    board = np.full((WIDTH, WIDTH), -1.0, dtype=np.float32)
    board[MARGIN:-MARGIN, MARGIN:-MARGIN] = 0.0
    return board.ravel()


def _looks() -> list[NDArray[np.intp]]:
    """For each heading the offsets, seen from the head, of the view's cells in reading order."""
    cells = [(AHEAD - row, column - LEFT) for row in range(VIEW) for column in range(VIEW)]
    return [
        np.array([ahead * MOVES[heading] + right * MOVES[(heading + 1) % 4] for ahead, right in cells])
        for heading in range(4)
    ]


EMPTY_BOARD = _empty_board()
LOOKS = _looks()


class Snake:
    """One game. `score` is the number of foods eaten since the last reset.

    A view has VIEW * VIEW cells: -1 for a wall or the body, 0 for free, and 0.5 more along the row and the
    column of the food, so that the food itself is 1. Food beyond the view is shown at its edge.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.reset()

    def reset(self) -> View:
        """Start an episode in the middle of the board, heading anywhere; return the first view."""
        self.board = EMPTY_BOARD.copy()
        self.heading = self.random.randrange(4)
        head = (MARGIN + BOARD // 2) * WIDTH + MARGIN + BOARD // 2
        self.body = deque(head - back * MOVES[self.heading] for back in range(3))
        self.board[list(self.body)] = -1.0
        self.score = 0
        self.hunger = 0
        self._place_food()
        return self.view()

    def step(self, action: int) -> tuple[View, float, bool]:
        """Move by one cell. Return the next view, the reward, and whether the episode ended."""
        self.heading = (self.heading + TURNS[action]) % 4
        distance = self._distance()
        head = self.body[0] + MOVES[self.heading]
        self.hunger += 1
        if head == self.food:
            return self._eat(head), 1.0, False
        # The tail leaves first: its cell is free when the head arrives.
        self.board[self.body.pop()] = 0.0
        dead = bool(self.board[head] < 0) or self.hunger >= PATIENCE
        self.body.appendleft(head)
        self.board[head] = -1.0
        if dead:
            return self.view(), -1.0, True
        return self.view(), 0.1 if self._distance() < distance else -0.1, False

    def view(self) -> View:
        """Return a new array: the surroundings of the head, turned so that ahead is up."""
        cells = self.board.take(self.body[0] + LOOKS[self.heading])
        ahead, right = self._towards_food()
        grid = cells.reshape(VIEW, VIEW)
        grid[min(max(AHEAD - ahead, 0), VIEW - 1)] += 0.5
        grid[:, min(max(LEFT + right, 0), VIEW - 1)] += 0.5
        return cells

    def _eat(self, head: int) -> View:
        self.body.appendleft(head)
        self.board[head] = -1.0
        self.score += 1
        self.hunger = 0
        self._place_food()
        return self.view()

    def _place_food(self) -> None:
        while True:
            row, column = self.random.randrange(BOARD), self.random.randrange(BOARD)
            self.food = (MARGIN + row) * WIDTH + MARGIN + column
            if self.board[self.food] == 0.0:
                return

    def _gap(self) -> tuple[int, int]:
        """Cells from the head to the food: south, east."""
        row, column = divmod(self.food, WIDTH)
        head_row, head_column = divmod(self.body[0], WIDTH)
        return row - head_row, column - head_column

    def _distance(self) -> int:
        south, east = self._gap()
        return abs(south) + abs(east)

    def _towards_food(self) -> tuple[int, int]:
        """Cells from the head to the food: ahead, right."""
        south, east = self._gap()
        return ((-south, east), (east, south), (south, -east), (-east, -south))[self.heading]
