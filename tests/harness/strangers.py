"""Scripts without marks, and a stand-in for a library of environments that isn't installed here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from paceline.measured.plan import ProcessPlan
from paceline.watching.process import MeasuredProcess

TRAIN = """
import torch
from torch import nn

def main(steps):
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rows = torch.utils.data.TensorDataset(torch.randn(320, 32), torch.randn(320, 1))
    loader = torch.utils.data.DataLoader(rows, batch_size=16)
    done = 0
    while done < steps:
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            done += 1
"""

# As much of gymnasium as the harness looks at.
GYMNASIUM = """
from typing import Any, Generic, TypeVar
T = TypeVar("T")

class Env(Generic[T]):
    def step(self, action: Any) -> Any:
        raise NotImplementedError
    def reset(self, *, seed: Any = None) -> Any:
        raise NotImplementedError

class Wrapper(Env[T]):
    def __init__(self, env: Any) -> None:
        self.env = env
    def step(self, action: Any) -> Any:
        return self.env.step(action)
    def reset(self, *, seed: Any = None) -> Any:
        return self.env.reset(seed=seed)
"""

PLAY = """
import gymnasium

class Walk(gymnasium.Env):
    at = 0
    def step(self, action):
        self.at += action
        return self.at, 1.0, self.at > 5, False, {}
    def reset(self, *, seed=None):
        self.at = 0
        return self.at, {}

class Limit(gymnasium.Wrapper):
    def step(self, action):
        return super().step(action)
"""


def write_gymnasium(folder: Path) -> None:
    """Put the library of environments beside the scripts."""
    (folder / "gymnasium").mkdir()
    (folder / "gymnasium" / "__init__.py").write_text(GYMNASIUM)
    (folder / "gymnasium" / "vector.py").write_text("from . import Env\nclass VectorEnv(Env): ...\n")


def run_script(folder: Path, script: str, steps: int = 20, kind: str = "timing") -> dict[str, Any]:
    """Run a script in one measured process, ended after so many steps, and return its outcome."""
    (folder / "train.py").write_text(script)
    (folder / "measured").mkdir()
    plan = ProcessPlan(
        kind=kind,
        script="train.py",
        arguments=[],
        folder=str(folder),
        warmup_steps=0,
        steps=steps,
        seed=0,
        result="",
        progress="",
        package="",
        parent=0,
        auto=True,
    )
    with MeasuredProcess(plan, folder / "measured", {**os.environ, "OMP_NUM_THREADS": "1"}) as process:
        assert process.wait(90), process.tail()
        return process.outcome()


def phase_counts(left: dict[str, Any]) -> dict[str, float]:
    """Return how often per step the main thread was in each phase."""
    rows = left["result"]["phases"]
    return {row["path"]: row["count"] for row in rows if row["thread"] == "main" and row["path"][0] != "("}
