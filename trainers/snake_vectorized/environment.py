"""Many games of Snake side by side, on numpy arrays with one row for each game.

A cell of a board holds the moment at which the body leaves it, on the game's own clock. The clock stands
still while a snake eats, which makes the snake longer; so a move writes one cell, and no body is kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIDE = 10
"""Cells along one side of a board."""

WIDTH = SIDE + 2
"""The same with the walls."""

ACTIONS = 3
"""Straight on, turn right, turn left."""

LOOKS = 11
"""Numbers that a snake sees without flood fill: 3 dangers, 4 headings, 4 directions of the food."""

PATIENCE = 100
"""Steps without food after which an episode ends, as if the snake had died."""

LENGTH = 3
"""Cells of a new snake."""

MOST = 90
"""Foods after which an episode ends as well: the snake has nearly filled its board."""

WALL = np.iinfo(np.int32).max
MOVES = np.array([-WIDTH, 1, WIDTH, -1])
"""Offsets in the flat board of one cell north, east, south, west."""

TURNS = np.array([0, 1, 3])
"""Quarter turns to the right for each action."""

NUMBERS = ("clock", "head", "food", "heading", "score", "age", "hunger")
"""What is one number for each game; with the boards and the random numbers that is all of its state."""

Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]
Floats = NDArray[np.float32]


def _empty_board() -> NDArray[np.int32]:
    board = np.full((WIDTH, WIDTH), WALL, dtype=np.int32)
    board[1:-1, 1:-1] = 0
    return board.ravel()


EMPTY_BOARD = _empty_board()
INNER_CELLS = np.flatnonzero(EMPTY_BOARD == 0)
MIDDLE = WIDTH // 2 * WIDTH + WIDTH // 2


class Snakes:
    """`count` games. An episode that ends is followed by the next one at once.

    `score` and `age` are the foods and steps of the running episodes; `ended_scores` and `ended_ages` are
    those of the episodes that the last step ended.
    """

    def __init__(self, count: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.rows = np.arange(count)
        self.boards = np.tile(EMPTY_BOARD, (count, 1))
        self.clock, self.head, self.food, self.heading = (np.zeros(count, dtype=np.int64) for _ in range(4))
        self.score, self.age, self.hunger = (np.zeros(count, dtype=np.int64) for _ in range(3))
        self.ended_scores = self.ended_ages = np.zeros(0, dtype=np.int64)
        self._start(self.rows)

    def step(self, actions: Integers) -> tuple[Floats, Booleans]:
        """Move every snake by one cell. Return the rewards and which episodes ended."""
        distance = self._distance()
        self.heading = (self.heading + TURNS[actions]) % 4
        self.head = self.head + MOVES[self.heading]
        eats = self.head == self.food
        # The tail leaves first: its cell is free when the head arrives.
        self.clock += ~eats
        self.score += eats
        self.age += 1
        self.hunger = np.where(eats, 0, self.hunger + 1)
        dies = (self.boards[self.rows, self.head] > self.clock) | (self.hunger >= PATIENCE)
        ended = dies | (self.score >= MOST)
        self.boards[self.rows, self.head] = self.clock + LENGTH + self.score
        nearer = np.where(self._distance() < distance, 0.1, -0.1)
        rewards = np.where(dies, -1.0, np.where(eats, 1.0, nearer)).astype(np.float32)
        self._begin_anew(ended, eats)
        return rewards, ended

    def view(self, out: Floats) -> None:
        """Write what every snake sees into `out`, count x LOOKS: ones and zeros."""
        out[:, :3] = np.take_along_axis(self.boards, self.ahead(), axis=1) > self.clock[:, None] + 1
        out[:, 3:7] = self.heading[:, None] == np.arange(4)
        (head_row, head_column), (row, column) = np.divmod(self.head, WIDTH), np.divmod(self.food, WIDTH)
        out[:, 7], out[:, 8] = row < head_row, row > head_row
        out[:, 9], out[:, 10] = column < head_column, column > head_column

    def ahead(self) -> Integers:
        """Return the cells that the three actions lead to, count x 3."""
        return self.head[:, None] + MOVES[(self.heading[:, None] + TURNS) % 4]

    def blocked(self) -> Booleans:
        """Return which cells the body or a wall will still hold after a step, count x cells."""
        return self.boards > self.clock[:, None] + 1

    def _begin_anew(self, ended: Booleans, eats: Booleans) -> None:
        over = np.flatnonzero(ended)
        self.ended_scores, self.ended_ages = self.score[over], self.age[over]
        self._start(over)
        self._place_food(np.flatnonzero(eats & ~ended))

    def _start(self, games: Integers) -> None:
        """Start episodes in the middle of the board, heading anywhere."""
        self.boards[games] = EMPTY_BOARD
        self.head[games] = MIDDLE
        self.heading[games] = self.random.integers(4, size=len(games))
        for array in (self.clock, self.score, self.age, self.hunger):
            array[games] = 0
        for back in range(LENGTH):
            self.boards[games, MIDDLE - back * MOVES[self.heading[games]]] = LENGTH - back
        self._place_food(games)

    def _place_food(self, games: Integers) -> None:
        """Draw a cell for each of these games until all are free ones."""
        while len(games):
            cells = INNER_CELLS[self.random.integers(len(INNER_CELLS), size=len(games))]
            self.food[games] = cells
            games = games[self.boards[games, cells] > self.clock[games]]

    def _distance(self) -> Integers:
        rows, columns = self.head // WIDTH - self.food // WIDTH, self.head % WIDTH - self.food % WIDTH
        return np.abs(rows) + np.abs(columns)
