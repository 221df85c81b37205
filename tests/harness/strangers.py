"""Scripts without marks, and a stand-in for a library of environments that isn't installed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paceline
from paceline.measured.plan import EMPTY_PROGRESS, ProcessPlan
from paceline.watching.process import MeasuredProcess

from tests import prepared_python

# The first optimizer imports torch's compiler, which takes longer than torch. Scripts that compile nothing
# begin with a stand-in: as much of it as optimizers, ranks and Accelerate call. Another one stands for what a
# compiler computes of tensors without their numbers, a third of what importing torch takes; generators of
# random numbers need a class that would have come with it.
UNCOMPILED = """
import gc, sys, types
gc.disable()  # a seventh of what importing torch takes
sys.modules["torch._meta_registrations"] = types.ModuleType("torch._meta_registrations")
import torch, torch._opaque_base
torch._C._set_generator_metaclass(torch._opaque_base.OpaqueBaseMeta)
gc.enable()
stand_in = types.ModuleType("torch._dynamo")
stand_in.disable = lambda function=None, *_, **__: function
stand_in.graph_break = lambda: None
stand_in.trace_rules = types.SimpleNamespace(clear_lru_cache=lambda: None)
stand_in.utils = types.SimpleNamespace(get_optimize_ddp_mode=lambda: "ddp_optimizer")
stand_in.eval_frame = types.SimpleNamespace(OptimizedModule=())
stand_in.OptimizedModule = type(None)  # asked for by a backward pass within a forward call
sys.modules["torch._dynamo"] = torch._dynamo = stand_in
"""


def start_uncompiled(script: str) -> str:
    """A whole script with the stand-in before it, where no import of the future can follow."""
    return UNCOMPILED + script.replace("from __future__ import annotations\n", "")


TRAIN = (
    UNCOMPILED
    + """
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
)

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


# One that waits a second at most for a script that doesn't want to end.
IMPATIENT = """
from paceline.auto import step_finder
from paceline.measured import child, ending
step_finder.TIDY_UP_SECONDS = 1.0
child.main()
ending.end_process()
"""


def run_script(folder: Path, script: str, steps: int = 20, kind: str = "timing") -> dict[str, Any]:
    """Run a script in one measured process, ended after so many steps, and return its outcome."""
    (folder / "train.py").write_text(script)
    left = folder / "measured"
    left.mkdir()
    (left / "progress").write_bytes(EMPTY_PROGRESS)
    plan = ProcessPlan(
        kind=kind,
        script="train.py",
        arguments=[],
        folder=str(folder),
        warmup_steps=0,
        steps=steps,
        seed=0,
        result=str(left / "result.json"),
        progress=str(left / "progress"),
        package=str(Path(paceline.__file__).resolve().parent),
        parent=os.getpid(),
        auto=True,
    )
    plan.save(left / "plan.json")
    ended = prepared_python.run_prepared(
        [sys.executable, "-P", "-c", IMPATIENT, left / "plan.json"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "SB3_LOGDIR": str(left)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stdout
    outcome: dict[str, Any] = json.loads((left / "result.json").read_text())
    assert outcome["complete"], ended.stdout
    return outcome


@contextmanager
def start_processes(
    folder: Path,
    script: str,
    arguments: list[str],
    *,
    processes: int = 1,
    steps: int = 20,
    launcher: Sequence[str] = (),
) -> Iterator[MeasuredProcess]:
    """Start a script that has several processes, to be timed and never counted."""
    (folder / "train.py").write_text(script)
    plan = ProcessPlan(
        kind="timing",
        script="train.py",
        arguments=arguments,
        folder=str(folder),
        warmup_steps=2,
        steps=steps,
        seed=0,
        result="",
        progress="",
        package="",
        parent=0,
        auto=True,
        processes=processes,
        launcher=list(launcher),
    )
    left = folder / "measured"
    left.mkdir()
    harness = str(Path(paceline.__file__).parents[1])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": harness}
    with prepared_python.prepared_starts():
        process = MeasuredProcess(plan, left, environment)
    with process:
        yield process


def run_processes(
    folder: Path, script: str, arguments: list[str], *, processes: int = 1, steps: int = 20
) -> dict[str, Any]:
    """Run such a script to its end and return what its processes left."""
    with start_processes(folder, script, arguments, processes=processes, steps=steps) as process:
        assert process.wait(100), process.tail()
        return process.outcome()


def phase_counts(left: dict[str, Any]) -> dict[str, float]:
    """Return how often per step the main thread was in each phase."""
    rows = left["result"]["phases"]
    return {row["path"]: row["count"] for row in rows if row["thread"] == "main" and row["path"][0] != "("}
