"""The games: Pong on the emulated Atari of ale-py. The agent takes pictures of them, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FRAMES = 4
"""Frames of the emulator in one decision."""

ROWS, COLUMNS = 210, 160

ACTIONS = 3
"""Stay, move up, move down."""

PRESSED = (0, 2, 3)
"""The same among the game's own six: nothing, right, left; Pong's knob turned right moves the paddle up."""

MISSING = "cs2_vision can't run here, since its emulator, the package ale-py, is missing"

Screen = NDArray[np.uint8]
"""A picture, ROWS x COLUMNS, each pixel a number of the console's palette."""


class MissingPartError(RuntimeError):
    """One sentence: which package is missing, and what can't be run without it."""


def emulator(seed: int) -> Any:
    """A console with the game in it."""
    try:
        import ale_py
        from ale_py import roms
    except ImportError as error:
        raise MissingPartError(f"{MISSING}: {error}") from error
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    console = ale_py.ALEInterface()
    console.setInt("random_seed", seed)
    # One time in ten the console misses a new press, so that no two games are alike.
    console.setFloat("repeat_action_probability", 0.1)
    console.loadROM(roms.get_rom_path("pong"))
    return console


class Game:
    """Plays one game after the other."""

    def __init__(self, seed: int) -> None:
        self.console = emulator(seed)
        self.actions = [self.console.getMinimalActionSet()[at] for at in PRESSED]
        self.console.reset_game()

    def step(self, action: int) -> None:
        """Run the frames of one decision; a game that is over starts again."""
        pressed = self.actions[action]
        for _ in range(FRAMES):
            self.console.act(pressed)
        if self.console.game_over():
            self.console.reset_game()

    def screen(self) -> Screen:
        """A copy of what is on the screen."""
        return np.array(self.console.getScreen())
