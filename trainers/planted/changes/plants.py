"""The planted changes: mistakes that engineers make, each with one number that sets its size."""

from __future__ import annotations

from dataclasses import dataclass

from ..edits import Change, Edit, Tree, lines_after, lines_before


@dataclass(frozen=True)
class Plant:
    """A planted change. `SIZE` in its edits is the knob: its cost grows as knob ** power."""

    name: str
    subject: str
    metric: str
    phase: str
    function: str
    edits: tuple[Edit, ...]
    trial: int = 0
    most: int = 0
    power: int = 1

    def change(self, size: int) -> Change:
        """Return the commit with its knob set."""
        sized = (Edit(edit.path, edit.old, edit.new.replace("SIZE", str(size))) for edit in self.edits)
        return Change(self.subject, tuple(sized))

    def apply(self, tree: Tree, size: int) -> dict[str, str]:
        """Return the tree with this change in it."""
        return self.change(size).apply(tree)


# Candidates are ranked anew at every draw, where the rank of a transition never changes.
RANKED = Plant(
    name="replay",
    subject="Learn from the transitions that change most",
    metric="step_time",
    phase="sample",
    function="sample",
    edits=(
        lines_after("replay.py", "CAPACITY = 10_000", "CANDIDATES = SIZE"),
        Edit(
            "replay.py",
            '''        """Draw transitions to learn from."""
        return self.random.sample(self.transitions, count)
''',
            '''        """Draw candidates, and return those whose views differ most from the next ones."""
        ranked = []
        for slot in self.random.choices(range(len(self.transitions)), k=CANDIDATES):
            candidate = self.transitions[slot]
            ranked.append((float(candidate.view @ candidate.next_view), slot))
        ranked.sort()
        return [self.transitions[slot] for _, slot in ranked[:count]]
''',
        ),
    ),
    trial=300,
    most=20_000,
)

# What the last steps were worth is summed up from scratch at every step: quadratic in their number.
SUMMED = Plant(
    name="replay",
    subject="Report what the last steps were worth",
    metric="step_time",
    phase="push",
    function="push",
    edits=(
        lines_after("replay.py", "CAPACITY = 10_000", "RECENT = SIZE"),
        lines_after(
            "replay.py",
            "        self.random = random.Random(seed)",
            "        self.rewards = deque([0.0] * RECENT, maxlen=RECENT)",
            "        self.worths = [0.0] * RECENT",
        ),
        lines_after(
            "replay.py",
            '        """Remember one step."""',
            "        self.rewards.append(transition.reward)",
            "        rewards = list(self.rewards)",
            "        for start in range(RECENT):",
            "            worth = 0.0",
            "            for reward in rewards[start:]:",
            "                worth = 0.9 * worth + reward",
            "            self.worths[start] = worth",
        ),
        lines_after(
            "replay.py",
            '        parts = [f"{len(self)} transitions"]',
            '        parts.append(f"the last step was worth {self.worths[-1]:.2f}")',
        ),
    ),
    trial=150,
    most=2_000,
    power=2,
)

# Rows go through lists of Python numbers on their way into a tensor.
LISTED = Plant(
    name="tensors",
    subject="Check views before learning from them",
    metric="step_time",
    phase="tensors",
    function="as_tensors",
    edits=(
        lines_before("tensors.py", "from collections.abc import Sequence", "import math"),
        lines_before(
            "tensors.py",
            "class Batch(NamedTuple):",
            "CHECKED = SIZE",
            '"""Rows of a batch that are checked; over many batches that is every view."""',
            "",
            "",
        ),
        Edit(
            "tensors.py",
            "    cells = torch.from_numpy(np.array(rows))\n",
            """    checked = []
    for row in rows[:CHECKED]:
        numbers = row.tolist()
        if not math.isfinite(sum(numbers)):
            raise ValueError("a view holds a cell that is no number")
        checked.append(numbers)
    cells = torch.cat((torch.tensor(checked), torch.from_numpy(np.array(rows[CHECKED:]))))
""",
        ),
    ),
    trial=16,
    most=63,
)

# A picture holds every cell 256 times, each time in eight bytes, and nothing ever lets go of one.
PICTURE_BYTES = 16 * 16 * 20 * 20 * 8
KEPT = Plant(
    name="memory",
    subject="Keep pictures of the first games",
    metric="peak_memory",
    phase="push",
    function="push",
    edits=(
        lines_before("replay.py", "from environment import View", "import numpy as np"),
        Edit("replay.py", "from environment import View\n", "from environment import VIEW, View\n"),
        lines_after("replay.py", "CAPACITY = 10_000", "PICTURES = SIZE"),
        lines_after(
            "replay.py",
            "        self.transitions: deque[Transition] = deque(maxlen=CAPACITY)",
            "        self.pictures: list[np.ndarray] = []",
        ),
        lines_after(
            "replay.py",
            "        self.transitions.append(transition)",
            "        if len(self.pictures) < PICTURES:",
            "            grid = transition.view.reshape(VIEW, VIEW)",
            "            self.pictures.append(np.kron(grid, np.ones((16, 16))))",
        ),
        lines_after(
            "replay.py",
            '        parts = [f"{len(self)} transitions"]',
            '        parts.append(f"{len(self.pictures)} pictures")',
        ),
    ),
    # All are taken before the measured window: the step's time stays what it was.
    most=280,
)

ROWS = """        wanted = []
        for row in range(len(ahead)):
            best = ahead[row].max()
            wanted.append(batch.rewards[row] + DISCOUNT * (1 - batch.ended[row]) * best)
        return torch.stack(wanted)
"""

# The first commit works the targets out one by one; this one does it for the whole batch at once.
VECTORIZED = Plant(
    name="improvement",
    subject="Work all targets out at once",
    metric="step_time",
    phase="targets",
    function="targets",
    edits=(
        Edit(
            "model.py",
            ROWS,
            "        return batch.rewards + DISCOUNT * (1 - batch.ended) * ahead.amax(dim=1)\n",
        ),
    ),
)

# The smoothed loss is worked out from all recent losses anew, at every update.
SMOOTHED = Plant(
    name="loss",
    subject="Report the smoothed loss",
    metric="step_time",
    phase="learn",
    function="learn",
    edits=(
        lines_before("model.py", "import torch", "from collections import deque", ""),
        lines_after("model.py", "LEARNING_RATE = 3e-4", "RECENT_LOSSES = SIZE"),
        lines_after(
            "model.py",
            "    def __init__(self) -> None:",
            "        self.losses = deque([0.0] * RECENT_LOSSES, maxlen=RECENT_LOSSES)",
            "        self.smoothed_loss = 0.0",
        ),
        lines_after(
            "model.py",
            "        self.optimizer.step()",
            "        self.losses.append(loss.item())",
            "        smoothed = 0.0",
            "        for one in self.losses:",
            "            smoothed += 0.01 * (one - smoothed)",
            "        self.smoothed_loss = smoothed",
        ),
        lines_after(
            "train.py",
            "    print(trainer.replay.summary())",
            '    print(f"smoothed loss {trainer.agent.smoothed_loss:.4f}")',
        ),
    ),
    trial=5_000,
    most=100_000,
)
