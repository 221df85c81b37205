"""A training of somebody's own: measured or not, and without the harness, it computes and ends the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import prepared_python
from tests.harness.conftest import Project
from tests.harness.strangers import UNCOMPILED

TRAINING = (
    UNCOMPILED
    + """
import hashlib, os, random, sys, time, torch
from torch import nn
random.seed(1)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters())
for step in range(60):
    loss = model(torch.randn(16, 32) * random.random()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if len(sys.argv) > 2:
        # Slow enough to be met in the middle.
        time.sleep(0.05)
        open(sys.argv[2], "w").write(f"{os.getppid()} {step}")
with open(sys.argv[1] + ".starts", "a") as starts:
    starts.write("once ")
weights = b"".join(weight.detach().numpy().tobytes() for weight in model.parameters())
open(sys.argv[1], "w").write(f"{loss.item().hex()} {hashlib.sha256(weights).hexdigest()}")
sys.exit(7)
"""
)
# Kills the harness once the training is in the middle, adopts the training, and ends with its status.
KILLER = """
import ctypes, os, signal, subprocess, sys, time
from pathlib import Path
ctypes.CDLL(None).prctl(36, 1)
harness = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL)
met = Path(sys.argv[1])
while not met.exists() or not met.read_text() or int(met.read_text().split()[1]) < 10:
    assert harness.poll() is None
    time.sleep(0.05)
harness.kill()
harness.wait()
training, status = os.wait()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("training")
    (folder / "train.py").write_text(TRAINING)
    assert subprocess.run([sys.executable, "train.py", "alone"], cwd=folder, timeout=60).returncode == 7
    return Project(folder, prepared=True)


def read_weights(training: Project, name: str) -> str:
    return (training.folder / name).read_text()


def test_a_measured_training_ends_and_computes_as_it_would_alone(training: Project) -> None:
    ended = training.call("script", "--keep-running", "--steps", "20", "train.py", "measured")
    assert ended.returncode == 7, ended.stderr
    assert "1 repetition of 16 steps after 4" in ended.stdout
    assert read_weights(training, "measured") == read_weights(training, "alone")
    assert read_weights(training, "measured.starts") == "once "


@pytest.mark.parametrize("steps", [20, 50])
def test_a_training_survives_the_harness(training: Project, steps: int) -> None:
    """It is killed behind the measured window, and inside it."""
    name = f"left-{steps}"
    command = training.command(
        "script", "--keep-running", "--steps", str(steps), "train.py", name, f"at-{steps}"
    )
    killer = [sys.executable, "-c", KILLER, f"at-{steps}", *command]
    ended = prepared_python.run_prepared(killer, cwd=training.folder, capture_output=True, timeout=100)
    assert ended.returncode == 7, ended.stderr
    assert read_weights(training, name) == read_weights(training, "alone")


EPOCHS = """
import paceline
taken = []
for epoch in range(3):
    for batch in paceline.steps(iter(range(40))):
        taken.append(batch)
paceline.quality("steps", len(taken))
assert taken == 3 * list(range(40))
open("taken", "w").write(str(len(taken)))
"""


@pytest.mark.parametrize("steps", [20, 60, 120])
def test_a_training_with_marked_steps_goes_on(tmp_path: Path, steps: int) -> None:
    """The window ends within one of its loops, or with the last one."""
    (tmp_path / "train.py").write_text(EPOCHS)
    ended = Project(tmp_path).call("script", "--keep-running", "--steps", str(steps), "train.py")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "taken").read_text() == "120"


def test_a_training_that_ends_too_early_keeps_its_status(training: Project) -> None:
    ended = training.call("script", "--keep-running", "--steps", "100", "train.py", "short")
    assert ended.returncode == 7
    assert "train.py crashed with exit status 7" in ended.stderr
    assert read_weights(training, "short") == read_weights(training, "alone")


@pytest.mark.parametrize("more", [("--repetitions", "2"), ("--profile-device",), ("--trace", "trace.json")])
def test_a_training_is_measured_once(training: Project, more: tuple[str, ...]) -> None:
    ended = training.call("script", "--keep-running", *more, "train.py", "twice")
    assert ended.returncode == 1
    assert "--keep-running measures once: leave " in ended.stderr
    assert more[0] in ended.stderr
