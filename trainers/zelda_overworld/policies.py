"""Trained policies that come along, so that acting can be measured without training first.

    python trainers/zelda_overworld/train.py --variant beyond --total-steps 12288 --save trained.pt
    python trainers/zelda_overworld/policies.py trained.pt trainers/zelda_overworld/trained/56x60.pt

makes one from a checkpoint; with `--no-small` it is for 112x120. They lack the optimizer's state, and their
numbers are of 16 bits.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The benchmarks share a package that lies beside their folders.
sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

import torch
from benchmark_support.checkpoints import read_checkpoint, write_checkpoint

FOLDER = Path(__file__).parent / "trained"


def trained_policy(rows: int, columns: int) -> dict[str, torch.Tensor]:
    """The parameters of the network that was trained on pictures of this size."""
    state = read_checkpoint(str(FOLDER / f"{rows}x{columns}.pt"), "zelda_overworld")
    parameters: dict[str, torch.Tensor] = state["network"]
    return parameters


def main() -> None:
    """Make a policy of the checkpoint that the first argument names, at the place that the second does."""
    if len(sys.argv) != 3:
        sys.exit("policies.py: give it a checkpoint and the file to write")
    state = read_checkpoint(sys.argv[1], "zelda_overworld")
    network = {name: values.half() for name, values in state["learner"]["network"].items()}
    write_checkpoint(sys.argv[2], "zelda_overworld", {"steps": state["steps"], "network": network})


if __name__ == "__main__":
    main()
