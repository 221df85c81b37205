"""Ranks that a script starts as programs of this Python, as Lightning does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from paceline.measured.rank_programs import (
    CHILD,
    PROGRAM,
    PythonProgram,
    is_another_rank,
    measuring_command,
    read_program,
)
from paceline.protocol.process_environment import unchanged_environment
from paceline.watching import process

from tests.harness.strangers import run_processes

# Rank 0 starts the other one, and says what it was told of it. A process group needs no torch here.
RANKS = """
import os, subprocess, sys, types
sys.modules["torch.distributed"] = types.SimpleNamespace(
    is_available=lambda: True,
    is_initialized=lambda: True,
    get_rank=lambda: int(os.environ["LOCAL_RANK"]),
    get_world_size=lambda: 2,
)
import paceline
if "LOCAL_RANK" not in os.environ:
    os.environ.update(WORLD_SIZE="2", LOCAL_RANK="0")
    command = [sys.executable, "-B", *sys.argv]
    # An iterator is looked at once.
    other = subprocess.Popen(map(str, command), env={**os.environ, "LOCAL_RANK": "1"})
    # With its own rank's variables it is a helper.
    subprocess.run([sys.executable, "-c", "pass"], env={**os.environ})
for _ in paceline.steps(range(40)):
    pass
if os.environ["LOCAL_RANK"] == "0":
    assert other.wait() == 5
else:
    print(sys.argv, os.path.basename(__file__), __name__, sys.dont_write_bytecode, flush=True)
    sys.exit(5)
"""

STEPS = "import paceline\nfor _ in paceline.steps(range(40)): pass\n"


def test_a_rank_that_the_script_starts_has_its_row(tmp_path: Path) -> None:
    left = run_processes(tmp_path, RANKS, ["--lr", "1"])
    assert [rank["rank"] for rank in left["ranks"]] == [0, 1]
    assert "['train.py', '--lr', '1'] train.py __main__ True" in (tmp_path / "measured/output").read_text()


def test_a_rank_runs_by_itself_once_the_harness_is_gone(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys\nprint(sys.argv[1:], sys.dont_write_bytecode, 'paceline' in sys.modules)")
    gone = tmp_path / "plan.json"
    command = [sys.executable, "-B", str(CHILD), PROGRAM, str(script), "--lr", "1", str(gone)]
    shown = subprocess.run(command, env=unchanged_environment(), capture_output=True, text=True, check=True)
    assert shown.stdout == "['--lr', '1'] True False\n"


def test_a_rank_that_would_not_find_the_harness_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("")
    root, rank = str(CHILD.parents[2]), {"RANK": "1", "WORLD_SIZE": "2"}
    monkeypatch.setenv("PYTHONPATH", root)
    for script, variables in (("train.py", rank), (".", {**rank, "PYTHONPATH": root})):
        words = [sys.executable, script]
        assert measuring_command(words, tmp_path, variables, str(tmp_path / "plan.json")) is words


def test_words_of_a_launcher_stand_before_the_scripts_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, str(CHILD), "--local_rank=0"]
    monkeypatch.setattr(process, "_start_command", lambda _plan, plan_file: [*command, plan_file])
    run_processes(tmp_path, f"import sys\nprint(sys.argv)\n{STEPS}", ["--lr", "1"])
    assert "['train.py', '--local_rank=0', '--lr', '1']" in (tmp_path / "measured/output").read_text()


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["python", "a.py", "-m"], PythonProgram([], "a.py", False, ["-m"])),
        (["/x/python3.12", "-u", "-X", "dev", "-Wignore", "-m", "a.b", "1"], ("-u -X dev -Wignore", "a.b")),
        (["python", "-c", "pass"], None),
        # Without its variables the harness isn't found.
        (["python", "-I", "a.py"], None),
        (["python"], None),
        (["bash", "a.py"], None),
    ],
)
def test_a_command_line_of_python_is_read(words: list[str], program: object) -> None:
    if isinstance(program, tuple):
        program = PythonProgram(program[0].split(), program[1], True, ["1"])
    assert read_program(words) == program


@pytest.mark.parametrize(
    ("own", "given", "is_rank"),
    [
        ({}, {"RANK": "0", "WORLD_SIZE": "2"}, True),
        ({"LOCAL_RANK": "0"}, {"LOCAL_RANK": "1", "WORLD_SIZE": "2"}, True),
        ({"RANK": "1", "WORLD_SIZE": "2"}, {"RANK": "1", "WORLD_SIZE": "2"}, False),
        ({}, {"RANK": "0", "WORLD_SIZE": "1"}, False),
        ({}, {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}, True),
        ({}, {}, False),
    ],
)
def test_another_rank_is_told_by_its_variables(
    own: dict[str, str], given: dict[str, str], is_rank: bool
) -> None:
    assert is_another_rank(own, given) == is_rank
