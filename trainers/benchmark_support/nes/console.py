"""The console: the core fceumm through stable-retro, in this process, which can hold only one at a time."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BUTTONS = ("B", "", "SELECT", "START", "UP", "DOWN", "LEFT", "RIGHT", "A")

MEMORY = 2048
"""Bytes of the console's memory."""


class MissingEmulatorError(RuntimeError):
    """One sentence: which package is missing, and what can't be run without it."""


class Software(NamedTuple):
    """A game: its name, the cartridge's bytes, and addresses of bytes in memory by their names.

    `scenario` says, as stable-retro wants it, when a game ends and what is rewarded; only stepping the
    console as a Gymnasium environment asks for that.
    """

    name: str
    cartridge: bytes
    addresses: Mapping[str, int]
    scenario: Mapping[str, Any] = {}


def mask_buttons(*buttons: str) -> NDArray[np.uint8]:
    """Buttons as the emulator takes them."""
    return np.array([button in buttons for button in BUTTONS], dtype=np.uint8)


def install(software: Software, folder: Path) -> None:
    """Write the game with the descriptions that stable-retro wants into a folder."""
    game = folder / software.name
    game.mkdir()
    (game / "rom.nes").write_bytes(software.cartridge)
    # The checksum leaves the file's header out.
    checksum = hashlib.sha1(software.cartridge[16:], usedforsecurity=False).hexdigest()
    (game / "rom.sha").write_text(checksum)
    values = {name: {"address": address, "type": "|u1"} for name, address in software.addresses.items()}
    (game / "data.json").write_text(json.dumps({"info": values}))
    (game / "scenario.json").write_text(json.dumps(software.scenario))
    (game / "metadata.json").write_text("{}")


class Console:
    """A console with a game in it, switched on."""

    def __init__(self, software: Software, missing: str) -> None:
        """`missing` is what the MissingEmulatorError says where stable-retro can't be imported."""
        try:
            import stable_retro as retro
        except ImportError as error:
            raise MissingEmulatorError(f"{missing}: {error}") from error
        with tempfile.TemporaryDirectory() as folder:
            install(software, Path(folder))
            retro.data.add_custom_integration(folder)
            self.environment = retro.make(
                software.name,
                state=retro.State.NONE,
                inttype=retro.data.Integrations.CUSTOM_ONLY,
                render_mode="rgb_array",
            )
        self.core = self.environment.em
        self.environment.reset()

    def press(self, buttons: NDArray[np.uint8]) -> None:
        """Hold these buttons from now on."""
        self.core.set_button_mask(buttons, 0)

    def run(self, frames: int) -> None:
        """Let so many frames pass; memory is as before until `update_memory`."""
        for _ in range(frames):
            self.core.step()

    def update_memory(self) -> None:
        """Let `memory` see what the frames have changed."""
        self.environment.data.update_ram()

    def memory(self) -> NDArray[np.uint8]:
        """A copy of the console's memory, MEMORY bytes."""
        blocks = self.environment.data.memory.blocks
        return np.frombuffer(blocks[0] + blocks[1024], dtype=np.uint8)

    def keep_state(self) -> None:
        """Have `reset` return to how the console is now."""
        self.environment.initial_state = bytes(self.core.get_state())

    def reset(self) -> None:
        """Return to the kept state, or switch the console off and on where none was kept."""
        self.environment.reset()

    def close(self) -> None:
        """Release the emulator, so that this process may hold another."""
        self.environment.close()
        del self.core
