"""The same training loop as TraceML's guide has it: initialised once, and a context around each step."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import small_steps
import traceml_ai

if __name__ == "__main__":
    traceml_ai.init(mode="auto")
    network, take_plain_step = small_steps.build_training(int(sys.argv[1]))

    def take_step() -> None:
        """Take one step, traced."""
        with traceml_ai.trace_step(network):
            take_plain_step()

    small_steps.train_in_turns(take_step)
