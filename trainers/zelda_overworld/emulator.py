"""The emulator: fceumm through stable-retro, in this process or in one of its own.

`Emulator` runs it here. `Remote` starts this file as a script, sends it one byte per decision and reads back
memory and picture, so that several emulators run at once: a process can hold only one.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The process of a Remote runs this file, with its own folder first on the path.
sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

import contextlib
import subprocess
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
from benchmark_support.nes.console import MEMORY, Console, MissingEmulatorError, Software, mask_buttons
from cartridge import cartridge, program
from numpy.typing import NDArray

FRAMES = 7
"""Frames of the emulator in one decision."""

PICTURE = (112, 120, 3)
"""Rows, columns and colours of the picture: every second pixel of the screen."""

DIRECTIONS = ("UP", "DOWN", "LEFT", "RIGHT")

ACTIONS = 8
"""Walk up, down, left, right; turn there and draw the sword."""

EQUIPMENT = (
    "torch",
    "rope",
    "boots",
    "raft",
    "ladder",
    "lens",
    "whistle",
    "flute",
    "lamp",
    "map",
    "compass",
    "ring",
    "gloves",
    "shield",
    "bow",
    "quiver",
    "cloak",
    "amulet",
    "hammer",
    "staff",
)

SYMBOLS = {
    "frame": "frame",
    "mode": "mode",
    "location": "location",
    "in_cave": "incave",
    "level": "level",
    "player_x": "px",
    "player_y": "py",
    "facing": "facing",
    "health": "hp",
    "full_health": "maxhp",
    "hurt": "hurt",
    "sword": "sword",
    "gems": "gems",
    "kills": "kills",
    "bombs": "bombs",
    "keys": "keys",
    "alive": "alive",
    "thing": "itemtype",
    "thing_x": "itemx",
    "thing_y": "itemy",
}
"""Names of the readings, and what the program calls them."""

Memory = NDArray[np.uint8]
Picture = NDArray[np.uint8]


class Reading(NamedTuple):
    """What one decision left behind: memory of MEMORY bytes, a picture of PICTURE, values by their names."""

    memory: Memory
    picture: Picture
    info: dict[str, int]


class Source(Protocol):
    """Where readings come from. `begin` starts a decision, `finish` waits for what it leaves behind.

    Between two decisions `save_state` returns all that the console is, and `load_state` takes it back there.
    """

    def reset(self, wait: int) -> Reading: ...

    def begin(self, action: int) -> None: ...

    def finish(self) -> Reading: ...

    def save_state(self) -> bytes: ...

    def load_state(self, state: bytes) -> None: ...

    def close(self) -> None: ...


MISSING = "zelda_overworld can't run here, since its emulator, the package stable-retro, is missing"

WITHOUT = 3
"""Exit status of an emulator's process that has no emulator."""

SAVE, LOAD = 254, 255
"""Requests to an emulator's process beyond its actions and resets."""

RAM_CHUNK = b"RAM\0" + MEMORY.to_bytes(4, "little")
"""What stands in front of the memory in a saved state of the console."""

LENGTH = 4
"""Bytes of a state's length, in front of the state."""


def addresses() -> dict[str, int]:
    """The address of every value in `info`."""
    _, symbols = program()
    found = {name: symbols[symbol] for name, symbol in SYMBOLS.items()}
    return found | {name: symbols["equipment"] + at for at, name in enumerate(EQUIPMENT)}


def tiles_at() -> int:
    """The address of the room's tiles."""
    return program()[1]["tiles"]


def presses(action: int) -> list[NDArray[np.uint8]]:
    """What is pressed in each frame of a decision: walk on, or turn and draw the sword."""
    way = mask_buttons(DIRECTIONS[action % 4])
    return [way] * FRAMES if action < 4 else [way, mask_buttons("A")] + [mask_buttons()] * (FRAMES - 2)


PRESSES = [presses(action) for action in range(ACTIONS)]


def software() -> Software:
    """The game as the console takes it."""
    over = {"variables": {"mode": {"op": "equal", "reference": 4}}}
    reward = {"variables": {"gems": {"reward": 1.0}, "keys": {"reward": 1.0}}}
    return Software("Overworld-Nes-v0", cartridge(), addresses(), {"done": over, "reward": reward})


class Emulator:
    """The emulator in this process; a process can hold only one at a time.

    Without `direct` it is stepped as a Gymnasium environment, which looks at the screen and computes a reward
    after every frame; with it only the seventh frame is looked at, and the memory is read off a saved state:
    stable-retro's own copies take fifty times as long as saving one.
    """

    def __init__(self, direct: bool) -> None:
        self.direct = direct
        self.names = list(addresses())
        self.places = np.array(list(addresses().values()))
        self.console = Console(software(), MISSING)
        self._start()
        self.memory_at = self.save_state().index(RAM_CHUNK) + len(RAM_CHUNK)
        self.action = 0

    def _start(self) -> None:
        """Walk through title and menu; games begin where the first room stands."""
        for buttons, frames in (
            (mask_buttons(), 20),
            (mask_buttons("START"), 2),
            (mask_buttons(), 4),
            (mask_buttons("START"), 2),
            (mask_buttons(), 20),
        ):
            self.console.press(buttons)
            self.console.run(frames)
        self.console.keep_state()

    def reset(self, wait: int) -> Reading:
        """Start a game and let `wait` frames pass, by which games differ."""
        self.console.reset()
        self.console.press(mask_buttons())
        self.console.run(wait)
        return self._read_all()

    def begin(self, action: int) -> None:
        self.action = action

    def finish(self) -> Reading:
        """Run the frames of the decision."""
        if self.direct:
            return self._run()
        info: dict[str, int] = {}
        for pressed in PRESSES[self.action]:
            _, _, _, _, info = self.console.environment.step(pressed)
        return Reading(self.console.memory(), self._picture(), info)

    def _run(self) -> Reading:
        last, core = None, self.console.core
        for pressed in PRESSES[self.action]:
            if pressed is not last:
                core.set_button_mask(pressed, 0)
                last = pressed
            core.step()
        return self._read_all()

    def _read_all(self) -> Reading:
        memory = np.frombuffer(self.console.core.get_state(), np.uint8, MEMORY, self.memory_at)
        return Reading(memory, self._picture(), self._values(memory))

    def _picture(self) -> Picture:
        return np.ascontiguousarray(self.console.core.get_screen()[::2, ::2])

    def _values(self, memory: Memory) -> dict[str, int]:
        return dict(zip(self.names, memory[self.places].tolist(), strict=True))

    def save_state(self) -> bytes:
        return bytes(self.console.core.get_state())

    def load_state(self, state: bytes) -> None:
        """Raises ValueError where the core takes no such state."""
        if not self.console.core.set_state(state):
            raise ValueError("the emulator takes no such state")
        self.console.update_memory()

    def close(self) -> None:
        """Release the emulator, so that this process may hold another."""
        self.console.close()


class Remote:
    """An emulator in a process of its own. It ends when its standard input does."""

    def __init__(self, direct: bool) -> None:
        command = [sys.executable, str(Path(__file__)), *(["--direct"] if direct else [])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.names = list(addresses())
        self.places = np.array(list(addresses().values()))
        self.asks: Any = self.process.stdin
        self.answers: Any = self.process.stdout

    def reset(self, wait: int) -> Reading:
        self._ask(ACTIONS + wait)
        return self.finish()

    def begin(self, action: int) -> None:
        self._ask(action)

    def _reason(self) -> str:
        status = self.process.wait()
        return MISSING if status == WITHOUT else f"the emulator's process has ended with status {status}"

    def _ask(self, request: int, more: bytes = b"") -> None:
        # Where the process has ended, reading its answer says so.
        with contextlib.suppress(BrokenPipeError):
            self.asks.write(bytes([request]) + more)
            self.asks.flush()

    def _read(self, size: int) -> bytearray:
        content = bytearray(size)
        # One call, which waits for all of it: how many pieces a pipe delivers is a matter of chance.
        if self.answers.readinto(content) < size:
            raise MissingEmulatorError(self._reason())
        return content

    def finish(self) -> Reading:
        """Wait for the answer; raises MissingEmulatorError where the process has ended."""
        content = self._read(MEMORY + PICTURE[0] * PICTURE[1] * PICTURE[2])
        memory = np.frombuffer(content, dtype=np.uint8, count=MEMORY)
        picture = np.frombuffer(content, dtype=np.uint8, offset=MEMORY).reshape(PICTURE)
        return Reading(memory, picture, dict(zip(self.names, memory[self.places].tolist(), strict=True)))

    def save_state(self) -> bytes:
        self._ask(SAVE)
        return bytes(self._read(int.from_bytes(self._read(LENGTH), "little")))

    def load_state(self, state: bytes) -> None:
        self._ask(LOAD, len(state).to_bytes(LENGTH, "little") + state)

    def close(self) -> None:
        # A process that has ended leaves a question that it was never asked.
        with contextlib.suppress(BrokenPipeError):
            self.asks.close()
        self.answers.close()
        self.process.wait()


def serve(asks: IO[bytes], answers: IO[bytes], direct: bool) -> None:
    """Answer decisions, and beyond them requests for a new game, until there are no more."""
    emulator = Emulator(direct)
    while request := asks.read(1):
        if request[0] >= SAVE:
            _move_state(emulator, request[0], asks, answers)
            continue
        if request[0] >= ACTIONS:
            reading = emulator.reset(request[0] - ACTIONS)
        else:
            emulator.begin(request[0])
            reading = emulator.finish()
        answers.write(reading.memory.tobytes() + reading.picture.tobytes())
        answers.flush()


def _move_state(emulator: Emulator, request: int, asks: IO[bytes], answers: IO[bytes]) -> None:
    if request == LOAD:
        emulator.load_state(asks.read(int.from_bytes(asks.read(LENGTH), "little")))
        return
    state = emulator.save_state()
    answers.write(len(state).to_bytes(LENGTH, "little") + state)
    answers.flush()


def main() -> None:
    """The process of a Remote: the standard output is the channel, so nothing else may print there."""
    answers = sys.stdout.buffer
    with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            serve(sys.stdin.buffer, answers, "--direct" in sys.argv)
        except MissingEmulatorError:
            # The sentence is for the process that asked to say.
            sys.exit(WITHOUT)


if __name__ == "__main__":
    main()
