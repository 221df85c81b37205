"""`python -m paceline script`: a stranger's script, measured without a change to it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipapp
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import pytest
from paceline.command_line import script_command
from paceline.manifest.toml_table import ManifestError
from paceline.watching import missing_steps

from tests.harness.conftest import MEASURING_ONCE, Project
from tests.harness.strangers import PLAY, TRAIN, UNCOMPILED, write_gymnasium

ONCE = ("--quick", "--repetitions", "1", "--document", "out.json")


def measure_script(folder: Path, script: str, *options: str, new: bool = False) -> dict[str, Any]:
    (folder / "train.py").write_text(script)
    ended = Project(folder, prepared=True, new=new).call("script", *ONCE, *options, "train.py")
    assert ended.returncode == 0, ended.stderr
    raw: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return raw


def phase_paths(raw: dict[str, Any]) -> set[str]:
    return {row["path"] for row in raw["phases"] if row["thread"] == "main"} - {"(unattributed)"}


# A module without weights within a batch's making, as the transforms of torchvision are: no forward pass.
STACK = """
class Stack(nn.Module):
    def forward(self, rows):
        return torch.utils.data.default_collate(rows)

if __name__ == '__main__':
    main(10**6)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    script = TRAIN.replace("batch_size=16", "batch_size=16, collate_fn=Stack()") + STACK
    return measure_script(tmp_path_factory.mktemp("trained"), script, "--steps", "60", new=True)


def test_automatic_phases_of_a_training_script(trained: dict[str, Any]) -> None:
    wanted = {"forward", "backward", "optimizer", "zero_grad", "clip_gradients", "data_loading"}
    assert phase_paths(trained) == wanted
    counts = {row["path"]: row["count"] for row in trained["phases"]}
    assert counts["forward"] == counts["optimizer"] == counts["backward"] == 1
    assert trained["step"]["passes"]["forward"] == 1


def test_the_steps_are_those_that_were_asked_for(trained: dict[str, Any]) -> None:
    protocol = trained["protocol"]
    assert (protocol["warmup_steps"], protocol["steps"], protocol["counting_steps"]) == (12, 48, 24)
    assert trained["benchmark"]["name"] == "train"
    assert trained["benchmark"]["params"] == {}


def test_wrappers_are_not_counted_as_calls(trained: dict[str, Any]) -> None:
    functions = trained["profile"]["functions"]
    assert not [row for row in functions if "paceline" in row["file"]]
    called = {row["function"]: row["calls"] for row in functions}
    assert called["Linear.forward"] == 2
    assert called["Module._call_impl"] == 5


def test_an_environment_sets_the_pace(tmp_path: Path) -> None:
    write_gymnasium(tmp_path)
    loop = """
train, test = Limit(Limit(Walk())), Walk()
weight = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
train.reset(seed=1)
for number in range(10**6):
    if train.step(1)[2]:
        train.reset()
    if number % 4 == 0:
        weight.sum().backward()
        optimizer.step()
    if number % 10 == 0:
        test.reset()
        test.step(1), test.step(1)
"""
    project = Project(tmp_path, prepared=True)
    project.write(UNCOMPILED + PLAY + loop, auto=True, repetitions=1, warmup_steps=20, steps=80)
    raw = project.measure("--timed-only")
    counts = {row["path"]: row["count"] for row in raw["phases"] if row["thread"] == "main"}
    assert counts["optimizer"] == 0.25
    assert counts["env_step"] == pytest.approx(1.2)
    assert {"env_reset", "backward"} < set(counts)


def test_a_script_that_ends_early_is_measured_as_it_is(tmp_path: Path) -> None:
    raw = measure_script(tmp_path, TRAIN + "\nmain(31)\n")
    # Two epochs have 40 ends of an optimizer's step, and 39 steps lie between them.
    assert raw["protocol"]["warmup_steps"] + raw["protocol"]["steps"] == 39


def test_a_script_that_ends_at_once_after_few_steps_is_measured(tmp_path: Path) -> None:
    """As distributed trainings do, whose threads would hold them up."""
    raw = measure_script(tmp_path, f"{TRAIN}\nimport os\nmain(40)\nos._exit(0)\n")
    assert raw["protocol"]["steps"] == 32  # a fifth of 39 is warm-up


TWO_PARTS = (
    UNCOMPILED
    + """
weights = [torch.nn.Parameter(torch.ones(2)) for part in range(2)]
kept = [torch.optim.SGD([weight], 0.1) for weight in weights]
for optimizer, weight, steps in zip(kept, weights, (30, STEPS)):
    for _ in range(steps):
        weight.sum().backward()
        optimizer.step()
"""
)


@pytest.mark.parametrize(("steps", "told"), [(80, True), (20, False)])
def test_steps_that_end_none_are_told_where_steps_are_missing(tmp_path: Path, steps: int, told: bool) -> None:
    (tmp_path / "train.py").write_text(TWO_PARTS.replace("STEPS", str(steps)))
    ended = Project(tmp_path, prepared=True).call("script", *ONCE, "--steps", "60", "train.py")
    assert ended.returncode == 0
    assert "train.py ended after 29 of 60 steps, let its loop run longer" in ended.stderr
    advice = "; 80 other optimizer steps ended none, mark theirs: `for batch in paceline.steps(batches):`"
    assert (advice in ended.stderr) == told
    assert "; measuring 29\n" in ended.stderr


def test_a_signals_handler_may_end_a_script_while_its_result_is_written(tmp_path: Path) -> None:
    """As one that saves a checkpoint and ends by `os._exit` does."""
    interrupted = """
import os, signal
from paceline.measured import result_writer
write = result_writer._write_outcome
def write_and_interrupt(*arguments):
    write(*arguments)
    signal.raise_signal(signal.SIGTERM)
result_writer._write_outcome = write_and_interrupt
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
main(40)
"""
    raw = measure_script(tmp_path, TRAIN + interrupted, "--steps", "30", "--time-limit", "60")
    assert raw["protocol"]["steps"] == 24


def test_a_script_without_steps_is_told_what_was_looked_for(tmp_path: Path) -> None:
    by_hand = """
weights = torch.ones(3, requires_grad=True)
for _ in range(5):
    weights.square().sum().backward()
    weights = (weights - 0.1 * weights.grad).detach().requires_grad_()
"""
    (tmp_path / "train.py").write_text(UNCOMPILED + by_hand)
    ended = Project(tmp_path, prepared=True).call("script", *ONCE, "train.py")
    assert ended.returncode == 1
    assert "took no step" in ended.stderr
    assert "environment" in ended.stderr
    assert "seen: 5 backward passes; an optimizer that is no torch.optim.Optimizer isn't seen" in ended.stderr


def test_a_failing_script_shows_its_last_lines(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(UNCOMPILED + "raise RuntimeError('no data')\n")
    ended = Project(tmp_path, prepared=True).call("script", *ONCE, "train.py")
    assert ended.returncode == 1
    assert "RuntimeError: no data" in ended.stderr
    assert "paceline: train.py crashed with exit status 1" in ended.stderr
    assert "runpy" not in ended.stderr


@pytest.mark.parametrize(("taken", "advised"), [(20, True), (2, False)])
def test_a_script_that_fails_in_the_middle_is_told_how_far_it_came(
    tmp_path: Path, taken: int, advised: bool
) -> None:
    (tmp_path / "train.py").write_text(f"{TRAIN}\nmain({taken})\nsys.exit(3)\n")
    ended = Project(tmp_path, prepared=True).call("script", *ONCE, "--steps", "60", "train.py")
    assert ended.returncode == 1
    told = f"it had taken {taken - 1} of 60 steps, --steps {taken - 1} ends it before that"
    assert (told in ended.stderr) == advised
    assert "train.py crashed with exit status 3" in ended.stderr


@pytest.mark.parametrize("start", [("train.py",), ("-m", "train")], ids=["script", "module"])
def test_a_scripts_module_has_what_python_gives_it(tmp_path: Path, start: tuple[str, ...]) -> None:
    names = "type(__builtins__), vars().get('__annotations__'), vars().get('__cached__'), list(globals())"
    seen = f"print({names}, __import__('sys').flags)\n"
    (tmp_path / "train.py").write_text(f"{seen}import paceline\nfor _ in paceline.steps(range(30)): pass\n")
    alone = subprocess.run([sys.executable, *start], cwd=tmp_path, capture_output=True, text=True, check=True)
    options = ("script", "--keep-running", "--steps", "9")
    ended = Project(tmp_path, new=True).call(*options, *start)
    assert ended.stdout.splitlines()[0] == alone.stdout.splitlines()[0], ended.stderr


@pytest.mark.parametrize("options", [ONCE, ("--keep-running",)], ids=["ended", "kept running"])
def test_shared_memory_that_a_script_leaves_is_removed(tmp_path: Path, options: tuple[str, ...]) -> None:
    shared = "from multiprocessing import shared_memory as shared"
    kept = "kept = shared.SharedMemory(create=True, size=9)\nopen('name', 'w').write(kept.name)"
    steps = "import paceline\nfor _ in paceline.steps(range(30)): pass"
    (tmp_path / "train.py").write_text(f"{shared}\n{kept}\n{steps}\n")
    ended = Project(tmp_path, prepared=True).call("script", *options, "--steps", "9", "train.py")
    assert ended.returncode == 0, ended.stderr
    with pytest.raises(FileNotFoundError):
        SharedMemory((tmp_path / "name").read_text())


def test_a_script_that_was_told_to_end_gets_no_advice(tmp_path: Path) -> None:
    told = "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)"
    (tmp_path / "train.py").write_text(f"{TRAIN}\nmain(20)\n{told}\n")
    ended = Project(tmp_path, prepared=True).call("script", *ONCE, "--steps", "60", "train.py")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "paceline: train.py was killed by signal 15"


def test_a_script_sees_what_python_would_show_it(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("NAME = 'helper'\n")
    check = """
import os, sys, helper
with open("seen", "w") as file:
    print(sys.argv, os.path.basename(__file__), __name__, os.getcwd() == os.path.dirname(__file__), file=file)
"""
    (tmp_path / "train.py").write_text(check + TRAIN + "\nmain(20)\n")
    options = ("--keep-running", "--steps", "9", "--document", "out.json")
    ended = Project(tmp_path, prepared=True).call(
        "script", *options, "train.py", "--lr=0.1", "--steps", "3,4"
    )
    assert ended.returncode == 0, ended.stderr
    raw = json.loads((tmp_path / "out.json").read_text())
    seen = (tmp_path / "seen").read_text().strip()
    assert seen == "['train.py', '--lr=0.1', '--steps', '3,4'] train.py __main__ True"
    assert raw["benchmark"]["case"] == "arguments=--lr 0.1 --steps 3;4"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--steps", "1"), "--steps is 1, must be between 2 and 1000000"),
        (("--steps", "9", "--warmup-steps", "9"), "--warmup-steps is 9, must be between 0 and 8"),
        (("--repetitions", "0"), "--repetitions is 0, must be between 1 and 100"),
    ],
)
def test_wrong_numbers_are_refused(tmp_path: Path, options: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "train.py").write_text("")
    ended = Project(tmp_path).call("script", *options, "train.py")
    assert (ended.returncode, ended.stderr.strip()) == (1, f"paceline: {sentence}")


def test_a_manifest_may_ask_for_automatic_phases(tmp_path: Path) -> None:
    project = Project(tmp_path, prepared=True)
    project.write(TRAIN + "\nmain(10**6)\n", auto=True, repetitions=1, steps=20)
    raw = project.measure("--timed-only")
    assert {"forward", "backward"} < phase_paths(raw)
    assert raw["protocol"]["steps"] == 20


def test_no_step_of_a_pretraining_is_counted(tmp_path: Path) -> None:
    loop = """
from torch import nn
weights = torch.zeros(3, requires_grad=True)
before, after = (torch.optim.SGD([weights], lr=0.1) for _ in range(2))
for number in range(10**6):
    weights.sum().backward()
    if number < 5:
        weights.detach().sin()
        before.step()
    else:
        after.step()
"""
    project = Project(tmp_path, prepared=True)
    counting = {"counting_warmup_steps": 1, "counting_steps": 2}
    project.write(UNCOMPILED + loop, auto=True, repetitions=1, warmup_steps=10, steps=20, **counting)
    raw = project.measure()
    assert raw["step"]["succeeded"] == "SGD"
    updates = {row["phase"]: row["value"] for row in raw["metrics"] if row["name"] == "tensor_operations"}
    # Without the pretraining's sine.
    assert updates["(unattributed)"] == 1


def test_python_is_no_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    ended = Project(tmp_path).call("script", "python3", "train.py", "--lr", "1")
    assert "script: leave python3 out, what is named is the script itself, train.py" in ended.stderr


LITTLE_WORK = "from paceline.watching import missing_steps\nmissing_steps.CHILD_SECONDS = 0.1\n"


def test_a_failing_program_that_a_script_starts_is_named_as_what_to_measure(tmp_path: Path) -> None:
    start = "subprocess.run([sys.executable, 'inner.py', '--lr', '1']).returncode"
    (tmp_path / "train.py").write_text(f"import subprocess, sys\nsys.exit({start})\n")
    (tmp_path / "inner.py").write_text("import time\nwhile time.process_time() < 0.2: pass\nexit(4)\n")
    ended = Project(tmp_path, code=f"{LITTLE_WORK}{MEASURING_ONCE}").call("script", *ONCE, "train.py")
    told = "train.py crashed with exit status 4; it took no step itself, 0 s of work were done in processes"
    assert told in ended.stderr
    assert ended.stderr.strip().endswith("measure what it starts, paceline script inner.py --lr 1")


def test_spawned_ranks_that_fail_before_a_step_are_no_script_to_measure() -> None:
    assert missing_steps.describe_failed_programs([{"called": False, "work": {"child_seconds": 3.0}}]) == ""


def test_a_script_that_becomes_another_program_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os, sys\nos.execv(sys.executable, [sys.executable, '-V'])\n")
    ended = Project(tmp_path).call("script", *ONCE, "train.py")
    assert (
        "another program by os.execv: measure that one, or, where it starts itself anew, set" in ended.stderr
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("uv", "run", "train.py", "--lr", "1"),
            "uv run comes first, uv run paceline script train.py --lr 1",
        ),
        (
            ("conda", "run", "-n", "torch", "python", "train.py"),
            "conda run comes first, conda run -n torch paceline script train.py",
        ),
        (("app",), "app is a folder; name app/__main__.py, or -m app"),
        (("python", "-m", "app", "run.py"), "leave python out, what is named is the script itself, -m app"),
        (("app.pyz",), "app.pyz is no source of Python; unpack an archive"),
    ],
)
def test_what_is_no_script_gets_the_words_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app").mkdir()
    Path("app", "__main__.py").touch()
    zipapp.create_archive("app", "app.pyz")
    with pytest.raises(ManifestError, match=re.escape(f"script: {sentence}")):
        script_command._check_script(Path(words[0]), list(words[1:]))


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    ended = Project(tmp_path).call("script", "trian.py")
    assert ended.stderr.strip() == "paceline: script: there is no file trian.py"


def test_a_missing_script_of_a_launcher_is_named(tmp_path: Path) -> None:
    ended = Project(tmp_path).call("script", "torchrun", "--nproc-per-node", "2", "trian.py", "--lr", "1")
    assert ended.stderr.strip() == f"paceline: torchrun: trian.py is not a file here, in {tmp_path}"


@pytest.mark.parametrize(("package", "folder"), [("src/tinynet", "src"), ("tinynet", ".")])
def test_a_module_of_the_repository_is_found_for_a_script(tmp_path: Path, package: str, folder: str) -> None:
    for name in (package, "scripts"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / "scripts" / "train.py").write_text("import tinynet\n" + TRAIN + "\nmain(10**6)\n")
    project = Project(tmp_path, prepared=True)
    ended = project.call("script", *ONCE, "scripts/train.py")
    assert ended.stderr.splitlines()[-1].endswith(f"give --python-path {folder}")
    assert project.call("script", *ONCE, "--python-path", folder, "scripts/train.py").returncode == 0


def test_a_pretraining_is_not_measured_where_the_training_after_it_is_short(tmp_path: Path) -> None:
    """With fewer steps the warm-up is over before the pretraining: its optimizer would set the pace."""
    (tmp_path / "train.py").write_text("""
import torch

model = torch.nn.Linear(2, 1)
early, late = torch.optim.SGD(model.parameters()), torch.optim.Adam(model.parameters())
for optimizer, steps in ((early, 20), (late, 250)):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(4, 2)).sum().backward()
        optimizer.step()
""")
    ended = Project(tmp_path, prepared=True).call("script", *ONCE, "train.py")
    assert ended.returncode == 1
    assert "other optimizer steps ended none, mark theirs" in ended.stderr
    assert not (tmp_path / "out.json").exists()
