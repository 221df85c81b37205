"""A training of somebody's own: measured or not, and without the harness, it computes and ends the same."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import prepared_python
from tests.harness.conftest import LOOP, Project
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
# Read once: the training writes it anew at each step.
while len(told := met.read_text().split() if met.exists() else []) < 2 or int(told[1]) < 10:
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


# Saves what it has when it is told to end, as trainings on clusters do; tells of its first steps by a file.
SAVING = (
    UNCOMPILED
    + """
import signal, sys, time
told = []
signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
signal.signal(signal.SIGUSR1, lambda number, _: open("requeued", "w").close())
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
try:
    for step in range(int(sys.argv[1])):
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        if step == 10:
            open("met", "w").close()
        if told:
            break
        time.sleep(0.02)
except KeyboardInterrupt:
    told.append(signal.SIGINT)
time.sleep(0.5)
open("saved", "w").write(str([int(number) for number in told]))
sys.exit(5)
"""
)


def start_saving(folder: Path, *options: str) -> subprocess.Popen[str]:
    (folder / "train.py").write_text(SAVING)
    command = Project(folder).command("script", "--keep-running", *options, "train.py", "3000")
    # It heeds interrupts, as in a terminal: what a shell starts in the background ignores them.
    with prepared_python.prepared_starts():
        harness = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    wait_until((folder / "met").exists)
    return harness


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_training_that_is_told_to_end_saves_first(tmp_path: Path, number: signal.Signals) -> None:
    harness = start_saving(tmp_path, "--steps", "8")
    harness.send_signal(number)
    printed, _ = harness.communicate(timeout=60)
    assert harness.returncode == 5, printed
    assert (tmp_path / "saved").read_text() == str([int(number)])
    assert "throughput" in printed


def test_every_rank_is_told_to_end(tmp_path: Path) -> None:
    harness = start_saving(tmp_path, "--steps", "2000", "--nproc", "1")
    harness.send_signal(signal.SIGUSR1)
    wait_until((tmp_path / "requeued").exists)
    harness.send_signal(signal.SIGTERM)
    printed, _ = harness.communicate(timeout=60)
    assert (tmp_path / "saved").read_text() == str([int(signal.SIGTERM)]), printed
    assert harness.returncode == 5


TALKING = (
    UNCOMPILED
    + """
import os, sys
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for line in sys.stdin.buffer:
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    sys.stdout.buffer.write(line)
sys.stdout.flush()
sys.stderr.write("\\r3/5" + 300_000 * "." + "\\r4/5")
"""
)


def test_a_training_reads_and_writes_as_it_would_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TALKING)
    given = b"".join(b"\0\xff%d\n" % number for number in range(20))
    command = Project(tmp_path).command("script", "--keep-running", "--steps", "8", "train.py")
    with prepared_python.prepared_starts():
        ended = subprocess.run(
            command, cwd=tmp_path, input=given, capture_output=True, timeout=100, check=True
        )
    assert ended.stdout.startswith(given)
    assert b"\r3/5" + 300_000 * b"." + b"\r4/5" in ended.stderr


def test_what_a_training_leaves_is_finalized(tmp_path: Path) -> None:
    held = "class Held:\n  def __del__(self): print('torn down', __name__)\nheld = Held()\n"
    warned = "import held, warnings\nwarnings.simplefilter('always')\nleft = open('held.py')"
    (tmp_path / "held.py").write_text(held)
    (tmp_path / "train.py").write_text(f"{LOOP.replace('10**6', '30')}\n{held}{warned}")
    ended = Project(tmp_path, new=True).call("script", "--keep-running", "--steps", "10", "train.py")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[:2] == ["torn down __main__", "torn down held"]
    assert re.search(r"\n<?sys>?:\d: ResourceWarning: unclosed file", ended.stderr)


def test_what_a_training_leaves_running_goes_on(tmp_path: Path) -> None:
    left = "import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 1; echo uploaded'])"
    (tmp_path / "train.py").write_text(f"{LOOP.replace('10**6', '30')}\n{left}")
    ended = Project(tmp_path, new=True).call("script", "--keep-running", "--steps", "10", "train.py")
    assert (ended.returncode, "uploaded" in ended.stdout) == (0, True), ended.stderr


def test_a_training_may_close_all_files(tmp_path: Path) -> None:
    closing = "import os\nos.closerange(3, 200)\nown = [open('train.py') for _ in range(9)]"
    (tmp_path / "train.py").write_text(f"{closing}\n{LOOP.replace('10**6', '30')}\nprint('done')")
    ended = Project(tmp_path, new=True).call("script", "--keep-running", "--steps", "10", "train.py")
    assert (ended.returncode, ended.stdout.splitlines()[:1]) == (0, ["done"]), ended.stderr
    assert "1 repetition of 8 steps after 2" in ended.stdout
    assert "memory_growth" in ended.stdout


def test_a_training_that_ends_well_before_its_window_did_not_fail(training: Project) -> None:
    (training.folder / "short.py").write_text(TALKING)
    ended = training.call("script", "--keep-running", "--steps", "8", "short.py")
    assert ended.returncode == 0, ended.stderr
    assert "paceline: short.py took no step" in ended.stderr


def test_a_training_that_misses_a_module_is_told_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "words.py").write_text("TEXT = 'a'\n")
    (tmp_path / "train.py").write_text("import words\n")
    ended = Project(tmp_path).call("script", "--keep-running", "--steps", "8", "train.py")
    assert ended.returncode == 1
    assert "what it lacks lies in this repository, give --python-path src" in ended.stderr
    assert ended.stderr.count("ModuleNotFoundError") == 1
