"""The planted history's training, run in this process."""

from __future__ import annotations

from trainers.planted import calibration
from trainers.planted.edits import Tree


def learned_fingerprint(tree: Tree, steps: int = 40) -> str:
    """What a tree's training has learned after so many steps: the same for code that computes the same."""
    trainer = calibration.load_trainer(tree).Trainer(calibration.BATCH_SIZE, 0)
    for number in range(steps):
        trainer.step(number)
    return str(trainer.fingerprint())
