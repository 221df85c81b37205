"""Neutral commits that add a file which no training reads: notes, tests, settings of tools."""

from __future__ import annotations

from ..edits import Change, Edit

README = """# Snake

A small DQN that learns Snake from its surroundings, turned to its heading.

    python train.py --steps 20000
"""

NOTES = """# Notes

- The discount is low on purpose: a snake that looks too far ahead starves.
- Exploration ends early; the game is random enough.
"""

ALGORITHM = """# The algorithm

Every step the snake acts, remembers, draws a batch from its memory, and moves the values of the batch towards
the reward plus what the next view is worth. One network does both: the game is simple enough.
"""

TEST_OF_MEMORY = '''"""The memory forgets the oldest first."""

from replay import CAPACITY, Replay, Transition


def test_the_memory_forgets_the_oldest():
    replay = Replay(seed=0)
    for number in range(CAPACITY + 1):
        replay.push(Transition(None, number, 0.0, None, False))
    assert len(replay) == CAPACITY
    assert replay.transitions[0].action == 1
'''

TEST_OF_TENSORS = '''"""Every transition is a row."""

import numpy as np
from environment import VIEW
from replay import Transition
from tensors import as_tensors


def test_every_transition_is_a_row():
    view = np.zeros(VIEW * VIEW, dtype=np.float32)
    batch = as_tensors([Transition(view, 1, 0.5, view, False)] * 70)
    assert batch.views.shape == batch.next_views.shape == (70, VIEW * VIEW)
    assert batch.rewards.tolist() == [0.5] * 70
'''

TEST_OF_TRAINING = '''"""A seed decides the whole training."""

from train import Trainer


def trained(seed):
    trainer = Trainer(batch_size=8, seed=seed)
    for number in range(20):
        trainer.step(number)
    return trainer.fingerprint()


def test_a_seed_decides_the_whole_training():
    assert trained(3) == trained(3) != trained(4)
'''

PLOT = '''"""Plot the returns that a log holds: python tools/plot.py LOG."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

returns = [float(line.split()[-1]) for line in Path(sys.argv[1]).read_text().splitlines() if "return" in line]
plt.plot(returns)
plt.savefig("returns.png")
'''

EDITORS = """root = true

[*.py]
indent_style = space
indent_size = 4
"""

DOCUMENTS = (
    Change("Describe the trainer", (Edit("README.md", "", README),)),
    Change("Ignore caches", (Edit(".gitignore", "", "__pycache__/\n*.pt\n"),)),
    Change("Write down what we learned", (Edit("docs/notes.md", "", NOTES),)),
    Change("Describe the algorithm", (Edit("docs/algorithm.md", "", ALGORITHM),)),
    Change("Test the memory", (Edit("tests/test_replay.py", "", TEST_OF_MEMORY),)),
    Change("Test that transitions are rows", (Edit("tests/test_tensors.py", "", TEST_OF_TENSORS),)),
    Change("Test that a seed decides", (Edit("tests/test_train.py", "", TEST_OF_TRAINING),)),
    Change("Plot the returns of a log", (Edit("tools/plot.py", "", PLOT),)),
    Change("Tell editors how we indent", (Edit(".editorconfig", "", EDITORS),)),
)
