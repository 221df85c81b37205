"""A prepared process is to the one who starts it, and to what it runs, as a new one would be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import prepared_python

SEEN = """
import json, os, sys
print(json.dumps({
    "argv": sys.argv, "path": sys.path[:2], "folder": os.getcwd(), "parent": os.getppid(),
    "variables": {name: os.environ.get(name) for name in ("GIVEN", "HOME")}, "name": __name__,
    "loaded": "torch" in sys.modules, "hashes": hash("paceline"), "input": sys.stdin.read(),
    "files": sorted(int(number) for number in os.listdir("/proc/self/fd"))[:4],
}))
"""


def run_seeing(command: list[str], start: Any, **options: Any) -> dict[str, Any]:
    variables = {"GIVEN": "1", "PYTHONPATH": "/somewhere", "PYTHONHASHSEED": "0"}
    done = start(
        [sys.executable, *command],
        env=variables,
        input="words",
        stdout=subprocess.PIPE,
        check=True,
        **options,
    )
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def start_new(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, text=True, **options)


@pytest.mark.parametrize("options", [[], ["-c"], ["-m"], ["-P", "-c"], ["-u", "-c"]])
def test_it_sees_what_a_new_one_sees(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "looking.py").write_text(SEEN)
    first = {"-c": SEEN, "-m": "looking"}.get(options[-1] if options else "", "looking.py")
    command = [*options, first, "--lr", "1"]
    real = run_seeing(command, start_new, cwd=tmp_path)
    prepared = run_seeing(command, prepared_python.run_prepared, cwd=tmp_path)
    assert prepared.pop("loaded")
    assert not real.pop("loaded")
    assert prepared == real
    assert real["parent"] == os.getpid()


def test_one_may_have_the_harness_alone() -> None:
    told = "import sys; print('paceline.protocol' in sys.modules, 'torch' in sys.modules)"
    command = [sys.executable, "-c", told]
    said = prepared_python.run_prepared(command, with_torch=False, stdout=subprocess.PIPE).stdout
    assert said == "True False\n"


def test_another_seed_of_hashes_needs_a_new_one() -> None:
    told = "import sys; print('torch' in sys.modules, hash('paceline'))"
    said = [
        prepared_python.run_prepared(
            [sys.executable, "-c", told], env={"PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, check=True
        ).stdout
        for seed in "01"
    ]
    assert [line.split()[0] for line in said] == ["True", "False"]
    assert said[0].split()[1] != said[1].split()[1]


@pytest.mark.parametrize(
    ("code", "status", "output"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('no data')", 1, "no data\n"),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("raise KeyboardInterrupt", -signal.SIGINT, ""),
        ("import atexit; atexit.register(print, 'tidied', flush=True)", 0, "tidied\n"),
        ("print('left', end='')", 0, "left"),
        ("import threading; threading.Timer(0.1, print, ('late',)).start()", 0, "late\n"),
    ],
)
def test_it_ends_as_a_new_one_does(code: str, status: int, output: str) -> None:
    for start in (start_new, prepared_python.run_prepared):
        ended = start([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert (ended.returncode, ended.stdout if status != -signal.SIGINT else "") == (status, output)


def test_its_error_is_the_codes_alone() -> None:
    ended = [
        start([sys.executable, "-c", "def fail():\n    1 / 0\nfail()"], capture_output=True)
        for start in (start_new, prepared_python.run_prepared)
    ]
    assert ended[0].stderr == ended[1].stderr
    assert "ZeroDivisionError" in ended[0].stderr


def test_what_it_starts_is_prepared_and_its_own_child() -> None:
    inner = "import os, sys; print('torch' in sys.modules, os.getppid())"
    outer = (
        "import os, subprocess, sys\n"
        f"said = subprocess.check_output([sys.executable, '-c', {inner!r}], text=True)\n"
        "print(said.split() == ['True', str(os.getpid())])"
    )
    ended = prepared_python.run_prepared([sys.executable, "-c", outer], capture_output=True)
    assert (ended.stdout, ended.stderr) == ("True\n", "")


def test_a_process_with_threads_starts_new_ones() -> None:
    outer = (
        "import subprocess, sys, threading\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "subprocess.run([sys.executable, '-c', 'import sys; print(\"torch\" in sys.modules)'])"
    )
    assert (
        prepared_python.run_prepared([sys.executable, "-c", outer], capture_output=True).stdout == "False\n"
    )


def test_one_that_takes_too_long_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        prepared_python.run_prepared([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)
