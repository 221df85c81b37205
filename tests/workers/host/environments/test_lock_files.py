"""Environments of lock files: installed as they are locked, without the commit's own package."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from paceline.manifest.environment_table import Environment

from tests.workers.host.boxes import MIB, small_box
from tests.workers.host.wheels import build_wheel
from workers.host.box.box import Sandbox
from workers.host.environments.build_runner import BuildRunner
from workers.host.environments.lock_files import LockFile, find_program, read_lock
from workers.host.environments.own_code import build_code
from workers.host.environments.shared_environments import Environments
from workers.host.errors import BuildError
from workers.host.logs import Log

PROJECT = """
[project]
name = "learner"
version = "1"
requires-python = ">=3.11"
dependencies = ["tiny"]
[project.optional-dependencies]
train = ["big"]
[[tool.uv.index]]
name = "local"
url = "wheels"
format = "flat"
default = true
"""
PACKAGE = """
[[package]]
name = "{name}"
version = "1.0"
source = {{ registry = "wheels" }}
wheels = [{{ path = "{name}-1.0-py3-none-any.whl" }}]
"""
LOCK = f"""version = 1
revision = 3
requires-python = ">=3.11"
{PACKAGE.format(name="big")}{PACKAGE.format(name="tiny")}
[[package]]
name = "learner"
version = "1"
source = {{ virtual = "." }}
dependencies = [{{ name = "tiny" }}]
[package.optional-dependencies]
train = [{{ name = "big" }}]
[package.metadata]
requires-dist = [{{ name = "big", marker = "extra == 'train'" }}, {{ name = "tiny" }}]
provides-extras = ["train"]
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    for number, name in enumerate(("tiny", "big")):
        build_wheel(folder / "wheels", name, f"SIZE = {number}")
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "uv.lock").write_text(LOCK)
    (folder / "learner.py").write_text("")
    return folder


def test_uv_installs_what_is_locked(tmp_path: Path, checkout: Path) -> None:
    box = small_box("bubblewrap", tmp_path / "box", Sandbox(network="none", build_disk=400 * MIB))
    runner = BuildRunner(tmp_path / "home", Log(), host_variables={}, box=box)
    environment = Environment(lock="uv.lock")
    base = Environments(runner).base(checkout, environment)
    code = (
        "import importlib.util as u; print([bool(u.find_spec(n)) for n in ('tiny', 'big', 'learner', 'pip')])"
    )
    found = subprocess.check_output([base.python, "-c", code], text=True, cwd=tmp_path)
    assert found == "[True, False, False, True]\n"
    # The key is the content: a commit with another code has the same environment.
    (checkout / "learner.py").write_text("changed = True")
    assert build_code(checkout, "tree", environment, runner) == base


def test_extras_belong_to_what_is_locked(checkout: Path) -> None:
    named = [read_lock(checkout, Environment(lock="uv.lock", install=(word,))) for word in (".[train]", ".")]
    assert [lock.extras for lock in named] == [("train",), ()]
    assert named[0].texts != named[1].texts
    assert set(named[0].texts) == {"uv.lock", "pyproject.toml", "packages in wheels", "extras"}


@pytest.mark.parametrize("name", ["uv.toml", "part/uv.toml", "pyproject.toml"])
def test_what_else_uv_reads_makes_another_environment(checkout: Path, name: str) -> None:
    """Settings say how packages are found and built: those of one commit must not do it for another."""
    (checkout / "part").mkdir()
    for moved in ("uv.lock", "pyproject.toml", "wheels"):
        (checkout / moved).rename(checkout / "part" / moved)
    before = read_lock(checkout, Environment(lock="part/uv.lock"))
    (checkout / name).write_text('[tool.uv]\nno-binary-package = ["tiny"]\n')
    assert read_lock(checkout, Environment(lock="part/uv.lock")).texts != before.texts


def test_other_packages_in_a_locked_folder_make_another_environment(checkout: Path) -> None:
    before = read_lock(checkout, Environment(lock="uv.lock"))
    build_wheel(checkout / "wheels", "tiny", "SIZE = 9")
    assert read_lock(checkout, Environment(lock="uv.lock")).texts != before.texts


def test_no_odd_name_of_a_registry_stops_the_rest(checkout: Path) -> None:
    text = (checkout / "uv.lock").read_text()
    odd = [f'registry = "{name}"\n' for name in ("a" * 300, "../wheels", "./wheels", ".//wheels")]
    (checkout / "uv.lock").write_text(text + "".join(f"# {line}" for line in odd))
    read = read_lock(checkout, Environment(lock="uv.lock"))
    assert [name for name in read.texts if name.startswith("packages")] == ["packages in .//wheels"]


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("uv.lock", "it needs uv, for example by pip install uv in the worker's environment"),
        ("conda-lock.yml", "it needs micromamba on the path of its worker"),
        ("gpu.conda-lock.yaml", "it needs micromamba on the path of its worker"),
        ("linux-64.lock", "it needs micromamba or mamba or conda on the path of its worker"),
    ],
)
def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch, name: str, needed: str) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/bin/python")
    with pytest.raises(BuildError, match=f"{name} can't be installed on this machine: {needed}"):
        find_program(LockFile(name, (), {}), {"PATH": "/nowhere"})


def test_a_program_of_condas_family_makes_the_folder(tmp_path: Path, checkout: Path) -> None:
    """By a stand-in that says how it was called, and has its parts beside it as conda and mamba have."""
    (checkout / "linux-64.lock").write_text("@EXPLICIT\n")
    program = tmp_path / "conda" / "bin" / "conda"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\n. "$(dirname "$0")/../conda-meta/parts"\n')
    program.chmod(0o755)
    parts = program.parent.parent / "conda-meta" / "parts"
    parts.parent.mkdir()
    parts.write_text('echo "$@"\nmkdir -p "$4/bin"\nln -s /usr/bin/python3 "$4/bin/python"\n')
    box = small_box("bubblewrap", tmp_path / "box", Sandbox(network="none", build_disk=400 * MIB))
    variables = {"PATH": str(program.parent)}
    runner = BuildRunner(tmp_path / "home", log := Log(), host_variables=variables, box=box)
    base = Environments(runner).base(checkout, Environment(lock="linux-64.lock"))
    assert base.python.is_symlink()
    assert f"create --yes --prefix {base.folders[0]} --file linux-64.lock" in log.finish()
