"""A package that the training requires: unpacked versions, one of them pinned; nothing is downloaded."""

from __future__ import annotations

from ..edits import Change, Edit, lines_after
from .plants import Plant

FOLDER = "requirements"
PINS = f"{FOLDER}/pins.txt"

LOADED = """PACKAGES = Path(__file__).with_name("requirements")
for pin in (PACKAGES / "pins.txt").read_text().split():
    sys.path.insert(0, str(PACKAGES / pin.replace("==", "-")))
from meters import Average  # noqa: E402
"""

OLD = '''"""Meters for training loops."""

from collections import deque


class Average:
    """The average of the last values, as if they had been 0 before."""

    def __init__(self, window: int) -> None:
        self.values = deque([0.0] * window, maxlen=window)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.total += value - self.values[0]
        self.values.append(value)

    def __str__(self) -> str:
        return f"{self.total / len(self.values):.5f}"
'''

# The new version goes through many values at every step, to know their spread.
NEW = '''"""Meters for training loops."""

from collections import deque
from itertools import islice

SPREAD_OVER = SIZE


class Average:
    """The average of the last values and their spread, as if they had been 0 before."""

    def __init__(self, window: int) -> None:
        self.values = deque([0.0] * window, maxlen=window)
        self.total = self.spread = 0.0

    def add(self, value: float) -> None:
        self.total += value - self.values[0]
        self.values.append(value)
        mean = self.total / len(self.values)
        squares = 0.0
        for one in islice(self.values, SPREAD_OVER):
            squares += (one - mean) ** 2
        self.spread = (squares / SPREAD_OVER) ** 0.5

    def __str__(self) -> str:
        return f"{self.total / len(self.values):.5f} +- {self.spread:.5f}"
'''


def unpacked_package(version: str, text: str) -> tuple[Edit, Edit]:
    """The files of one version, as pip would unpack them."""
    folder = f"{FOLDER}/meters-{version}"
    metadata = f"Metadata-Version: 2.1\nName: meters\nVersion: {version}\n"
    return (
        Edit(f"{folder}/meters/__init__.py", "", text),
        Edit(f"{folder}/meters-{version}.dist-info/METADATA", "", metadata),
    )


REQUIRED = Change(
    "Require the package meters",
    (
        *unpacked_package("1.4.0", OLD),
        Edit(PINS, "", "meters==1.4.0\n"),
        lines_after("train.py", "import random", "import sys", "from pathlib import Path"),
        Edit("train.py", "EXPLORATION_STEPS = 200\n", f"{LOADED}\nEXPLORATION_STEPS = 200\n"),
        lines_after(
            "train.py",
            "        self.view = self.game.view()",
            "        self.rewards = Average(window=100_000)",
        ),
        lines_after(
            "train.py",
            "            self.replay.push(Transition(self.view, action, reward, next_view, ended))",
            '        with paceline.phase("log"):',
            "            self.rewards.add(reward)",
        ),
        lines_after("train.py", "    print(trainer.replay.summary())", "    print(trainer.rewards)"),
    ),
)
"""Part of the first commit."""

UPDATED = Plant(
    name="dependency",
    subject="Update meters to 2.0.0",
    metric="step_time",
    phase="log",
    function="add",
    edits=(*unpacked_package("2.0.0", NEW), Edit(PINS, "meters==1.4.0", "meters==2.0.0")),
    trial=4_000,
    most=100_000,
)
