"""A package of its own that the training carries along: `pip install --target vendored`, checked in."""

from __future__ import annotations

from ..edits import Change, Edit, after, before
from .plants import Plant

PACKAGE = "vendored/meters/__init__.py"
METADATA = "vendored/meters.dist-info/METADATA"
REQUIREMENTS = "requirements-vendored.txt"

ADD = """    def add(self, value: float) -> None:
        self.total += value - self.values[0]
        self.values.append(value)
"""

OLD = f'''"""Meters for training loops."""

from collections import deque


class Average:
    """The average of the last values, as if they had been 0 before."""

    def __init__(self, window: int) -> None:
        self.values = deque([0.0] * window, maxlen=window)
        self.total = 0.0

{ADD}
    def __str__(self) -> str:
        return f"{{self.total / len(self.values):.5f}}"
'''

ADD_WITH_SPREAD = (
    ADD
    + """        mean = self.total / len(self.values)
        squares = 0.0
        for one in islice(self.values, SPREAD_OVER):
            squares += (one - mean) ** 2
        self.spread = (squares / SPREAD_OVER) ** 0.5
"""
)

CARRIED = Change(
    "Carry the package meters along",
    (
        Edit(PACKAGE, "", OLD),
        Edit(METADATA, "", "Metadata-Version: 2.1\nName: meters\nVersion: 1.4.0\n"),
        Edit(
            REQUIREMENTS, "", "# pip install --target vendored -r requirements-vendored.txt\nmeters==1.4.0\n"
        ),
        after("train.py", "import random", "import sys", "from pathlib import Path"),
        before(
            "train.py",
            "EXPLORATION_STEPS = 200",
            'sys.path.insert(0, str(Path(__file__).with_name("vendored")))',
            "from meters import Average  # noqa: E402",
            "",
        ),
        after(
            "train.py",
            "        self.view = self.game.view()",
            "        self.rewards = Average(window=100_000)",
        ),
        after(
            "train.py",
            "            self.replay.push(Transition(self.view, action, reward, next_view, ended))",
            '        with paceline.phase("log"):',
            "            self.rewards.add(reward)",
        ),
        after("train.py", "    print(trainer.replay.summary())", "    print(trainer.rewards)"),
    ),
)
"""Part of the first commit."""

# The new version goes through many values at every step, to know their spread.
UPDATED = Plant(
    name="dependency",
    subject="Update meters to 2.0.0",
    metric="step_time",
    phase="log",
    function="add",
    edits=(
        before(PACKAGE, "from collections import deque", "from itertools import islice"),
        after(PACKAGE, "from collections import deque", "", "SPREAD_OVER = SIZE"),
        Edit(PACKAGE, ADD, ADD_WITH_SPREAD),
        Edit(METADATA, "1.4.0", "2.0.0"),
        Edit(REQUIREMENTS, "meters==1.4.0", "meters==2.0.0"),
    ),
    trial=2_000,
    most=100_000,
)
