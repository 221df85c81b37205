"""Our own side-scroller for the NES, played on the one console that a process can hold.

The program is in program/, its cartridge in cartridge.py. Games take turns on the console: a state is put in
and taken out within some microseconds. A decision lasts four frames; the last four pictures are seen at once.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np
from arguments import Args
from benchmark_support.nes.console import Console, Software, mask_buttons
from cartridge import cartridge, program
from numpy.typing import NDArray
from pictures import FRAMES, STACK, WAITS, Pictures

BUTTONS = [mask_buttons(*way, *more) for more in ((), ("A",), ("B",)) for way in ((), ("LEFT",), ("RIGHT",))]
"""The nine moves: stand, left or right; walking, jumping or running."""

OVER = 2
"""The program's mode when the player has fallen into a pit or met a walker."""

PIXELS_PER_REWARD = 16
"""A column of the level is worth 1; the end of a game by a pit or a walker costs as much."""

MISSING = (
    "mario_pipeline can't play side_scroller here, since its emulator, the package stable-retro, is missing"
)


class Turn(NamedTuple):
    """What a turn led to: the console's state, the player's place in pixels, whether the game is over."""

    state: bytes
    place: int
    is_over: bool
    picture: Pictures


class Player:
    """Plays turns of many games on one console; one thread at a time."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.console: Console | None = None
        self.users = 0

    def borrow(self) -> None:
        """Switch the console on for the first user."""
        with self.lock:
            if self.console is None:
                symbols = program()[1]
                self.console = Console(Software("SideScroller-Nes-v0", cartridge(), {}), MISSING)
                self.console.run(20)
                self.console.update_memory()
                self.begin = bytes(self.console.core.get_state())
                # The console's memory stands in its state as it is.
                self.base = self.begin.index(self.console.memory().tobytes())
                self.mode, self.low, self.high = (
                    self.base + symbols[name] for name in ("mode", "xlow", "xhigh")
                )
            self.users += 1

    def give_back(self) -> None:
        """Switch the console off after the last user, so that this process may hold another."""
        with self.lock:
            self.users -= 1
            if self.users == 0 and self.console is not None:
                self.console.close()
                self.console = None

    def start(self, wait: int, shape: tuple[int, int]) -> Turn:
        """A new game; the frame in which it begins decides where in the level."""
        with self.lock:
            self._run(self.begin, mask_buttons(), wait)
            self._press(mask_buttons("START"), 1)
            # Drawing the level's begin takes some frames.
            self._press(mask_buttons(), 12)
            return self._look(shape)

    def play(self, state: bytes, action: int, shape: tuple[int, int]) -> Turn:
        """One decision of a game, from the state that it was left in."""
        with self.lock:
            self._run(state, BUTTONS[action], FRAMES)
            return self._look(shape)

    def _run(self, state: bytes, buttons: NDArray[np.uint8], frames: int) -> None:
        if self.console is None:
            raise RuntimeError("the console is off")
        self.console.core.set_state(state)
        self._press(buttons, frames)

    def _press(self, buttons: NDArray[np.uint8], frames: int) -> None:
        if self.console is not None:
            self.console.press(buttons)
            self.console.run(frames)

    def _look(self, shape: tuple[int, int]) -> Turn:
        if self.console is None:
            raise RuntimeError("the console is off")
        state = bytes(self.console.core.get_state())
        place = state[self.high] * 256 + state[self.low]
        picture = shrink(self.console.core.get_screen(), *shape)
        return Turn(state, place, state[self.mode] == OVER, picture)


def shrink(screen: Pictures, rows: int, columns: int) -> Pictures:
    """The lower part of the screen in small and gray: means over what every second pixel has of green."""
    half = screen[::2, ::2, 1]
    down, across = half.shape[0] // rows, half.shape[1] // columns
    part = half[-rows * down :, : columns * across]
    return part.reshape(rows, down, columns, across).mean(axis=(1, 3)).astype(np.uint8)


PLAYER = Player()
"""A process can hold one console only."""


class ScrollerGame:
    """One game: how it stands, and what is seen of it."""

    def __init__(self, args: Args, shape: tuple[int, int], seed: int) -> None:
        self.shape = shape
        self.steps_limit = args.game_steps
        self.chance = np.random.default_rng(seed)

    def reset(self) -> Pictures:
        """Begin a game; returns its first view."""
        self.turn = PLAYER.start(int(self.chance.integers(WAITS + 1)), self.shape)
        self.steps = 0
        self.view = np.repeat(self.turn.picture[None], STACK, axis=0)
        return self.view

    def step(self, action: int) -> tuple[Pictures, float, bool, float]:
        """Play one decision: view, reward, whether the game has ended, pixels gained.

        A game that ends is begun anew at once.
        """
        before, self.turn = self.turn.place, PLAYER.play(self.turn.state, action, self.shape)
        advance = float(self.turn.place - before)
        reward = advance / PIXELS_PER_REWARD - self.turn.is_over
        self.steps += 1
        if self.turn.is_over or self.steps >= self.steps_limit:
            return self.reset(), reward, True, advance
        self.view = np.concatenate([self.view[1:], self.turn.picture[None]])
        return self.view, reward, False, advance
