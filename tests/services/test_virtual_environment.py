from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.services import virtual_environment
from dashboard.services.processes import CHECKOUT


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout that needs no packages."""
    for name in virtual_environment.INPUTS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.fixture
def made(root: Path) -> Path:
    """What `python -m venv` leaves, as far as it is looked at."""
    for name in ("bin/python", "pyvenv.cfg", "lib/python3.11/site-packages/pip/__main__.py"):
        (root / ".venv" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / ".venv" / name).touch(mode=0o755)
    return root / ".venv"


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The environments that pip would have installed into."""
    calls: list[Path] = []
    monkeypatch.setattr(
        virtual_environment, "install_dependencies", lambda _, target, __: calls.append(target)
    )
    return calls


def test_a_half_made_environment_is_made_again_once(root, installs, capsys):
    (root / ".venv/bin").mkdir(parents=True)
    assert [virtual_environment.main(root), virtual_environment.main(root)] == [0, 0]
    assert "only half made; making it again" in capsys.readouterr().out
    assert installs == [root / ".venv"]
    assert virtual_environment.is_complete(root / ".venv")
    subprocess.run([root / ".venv/bin/python", "-m", "pip", "--version"], check=True, capture_output=True)


def test_a_fresh_checkout_gets_an_environment(root, installs, monkeypatch, capsys):
    python = root / "python"
    python.write_text('#!/bin/sh\necho "$@" > told\nmkdir .venv\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.chdir(root)
    assert virtual_environment.main(root) == 0
    assert (root / "told").read_text() == f"-m venv --clear {root}/.venv\n"
    assert capsys.readouterr().out.startswith("Making the environment in .venv.\n")
    assert installs == [root / ".venv"]


def test_an_interrupted_installation_is_taken_up_again(root, made, monkeypatch, installs):
    def interrupted(root: Path, target: Path, extras: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(virtual_environment, "install_dependencies", interrupted)
        assert virtual_environment.main(root) == 130
    assert virtual_environment.main(root) == 0
    assert installs == [made]


def test_new_constraints_are_installed(root, made, installs):
    virtual_environment.main(root)
    (root / "constraints.txt").write_text("numpy==2.4.6\n")
    virtual_environment.main(root)
    assert len(installs) == 2


def test_a_python_without_venv_is_told_with_the_package(root, monkeypatch, capsys):
    monkeypatch.setattr(virtual_environment.importlib.util, "find_spec", lambda _: None)
    assert virtual_environment.main(root) == 1
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"apt install python{version}-venv" in capsys.readouterr().err


def test_a_full_disk_is_told_before_anything_is_made(root, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, 1_000_000))
    assert virtual_environment.main(root) == 1
    assert capsys.readouterr().err.startswith("Only 1 MB are free for")
    assert not (root / ".venv").exists()


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["Collecting torch", "ERROR: No matching distribution found for torch"], "No matching distribution"),
        (["ERROR: Could not install packages: [Errno 28] No space left on device"], "The disk is full"),
        (["Killed"], "can't be installed into .venv: Killed"),
    ],
)
def test_the_line_that_says_why_pip_failed(lines, sentence):
    assert sentence in virtual_environment.explain_failure(lines)


def test_two_calls_wait_for_each_other(root, made):
    script = CHECKOUT / "dashboard/services/virtual_environment.py"
    code = f"import runpy, pathlib; runpy.run_path({str(script)!r})['main'](pathlib.Path({str(root)!r}))"
    (made / "paceline-stamp").write_text(
        virtual_environment.hash_inputs(root, virtual_environment.EVERYTHING)
    )
    folder = os.open(root, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    second = subprocess.Popen([sys.executable, "-I", "-c", code], stdout=subprocess.PIPE, text=True)
    assert second.stdout is not None
    assert second.stdout.readline() == "Another make is setting up .venv; waiting for it.\n"
    os.close(folder)
    assert second.wait(60) == 0
