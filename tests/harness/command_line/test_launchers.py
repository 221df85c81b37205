"""Launchers of other projects, which start the ranks of small real scripts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from paceline.command_line.script_command import LAUNCHERS, read_launcher

from tests.harness.conftest import Project
from tests.harness.strangers import UNCOMPILED
from tests.workers.waiting import wait_until

# It ends without Python's own end: on a busy machine gloo's threads still let go of tensors meanwhile,
# without us and behind a group that was destroyed too, which aborts the process.
TRAIN = (
    UNCOMPILED
    + """
import os, torch, torch.distributed as dist
from torch import nn
rank, size = int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])
store = f"file://{os.getcwd()}/store-{os.getppid()}"
dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
model = nn.parallel.DistributedDataParallel(nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(60):
    loss = model(torch.randn(16, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
os._exit(0)
"""
)


def measure_launched(folder: Path, *words: str) -> dict[str, Any]:
    (folder / "train.py").write_text(TRAIN)
    # Nothing is counted: that takes a second start of all ranks.
    options = ("--keep-running", "--steps", "30", "--document", "out.json")
    ended = Project(folder).call("script", *options, *words)
    assert ended.returncode == 0, ended.stderr
    raw: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return raw


@pytest.fixture(autouse=True)
def _path_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launchers lie beside this Python."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def check_ranks(raw: dict[str, Any]) -> None:
    """A step reduces the gradients once."""
    assert (raw["step"]["kind"], raw["step"]["owner"]) == ("optimizer", "SGD")
    assert raw["ranks"]["world_size"] == 2
    assert [row["rank"] for row in raw["ranks"]["rows"]] == [0, 1]
    for row in raw["ranks"]["rows"]:
        assert [(kind["kind"], kind["count"], kind["bytes"]) for kind in row["collectives"]] == [
            ("all_reduce", 1, 4 * (64 + 1))
        ]


def test_mpirun(tmp_path: Path) -> None:
    check_ranks(measure_launched(tmp_path, "mpirun", "-n", "2", "python", "train.py"))


def test_a_launcher_is_asked_to_end_when_the_harness_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = tmp_path / "bin" / "mpirun"
    launcher.parent.mkdir()
    launcher.write_text(
        "#!/bin/sh\ntrap ': > asked; exit' TERM\n: > started\nfor i in $(seq 999); do sleep 0.02; done\n"
    )
    launcher.chmod(0o755)
    (tmp_path / "train.py").touch()
    monkeypatch.setenv("PATH", f"{launcher.parent}{os.pathsep}{os.environ['PATH']}")
    words = Project(tmp_path).command("script", "mpirun", "-n", "2", "python", "train.py")
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL) as harness:
        wait_until((tmp_path / "started").exists)
        harness.kill()
    wait_until((tmp_path / "asked").exists)
    assert harness.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("words", "started"),
    [
        ("srun -n 2 python3 train.py --a 1", f"srun -n 2 {sys.executable} -m"),
        (
            "srun -J torchrun -n 1 torchrun --standalone train.py --a 1",
            "srun -J torchrun -n 1 {} --standalone -m",
        ),
        ("mpirun -n 1 python -m torch.distributed.run train.py --a 1", "mpirun -n 1 {} -m"),
    ],
)
def test_a_scheduler_that_starts_the_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, started: str
) -> None:
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    script, *behind = words.split()
    arguments = Namespace(script=Path(script), module=False, nproc=1, arguments=behind)
    read_launcher(arguments)
    assert " ".join(arguments.launcher) == started.format(" ".join(LAUNCHERS["torchrun"]))
    assert (arguments.script, arguments.module, arguments.arguments) == (
        Path("train.py"),
        False,
        ["--a", "1"],
    )


def test_accelerate_launch(tmp_path: Path) -> None:
    """Which has several processes on a processor by mpirun."""
    (tmp_path / "hosts").write_text("localhost\n")
    options = ("--cpu", "--num_processes", "2", "--num_machines", "1", "--mpirun_hostfile", "hosts")
    check_ranks(measure_launched(tmp_path, "accelerate", "launch", *options, "train.py"))
