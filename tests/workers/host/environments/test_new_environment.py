"""An environment as `python -m venv` makes one, with the pip of the wheel that came with Python."""

from __future__ import annotations

import ensurepip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workers.host.environments import new_environment
from workers.host.environments.build_runner import BuildRunner, BuildStep
from workers.host.logs import Log


def output_of(*command: str | Path) -> str:
    return subprocess.check_output(command, text=True, stderr=subprocess.STDOUT)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its path is longer than the first line of a script may be."""
    folder = tmp_path_factory.mktemp("home") / ("long" * 40)
    BuildRunner(folder.parent, Log()).make_environment(BuildStep(folder, folder.parent))
    return folder


def test_it_has_all_that_ensurepip_installs(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where the wheels aren't found.
    monkeypatch.setattr(new_environment, "find_wheels", list)
    new_environment.make_environment(tmp_path / "usual")

    def files(folder: Path) -> set[str]:
        found = {str(path.relative_to(folder)) for path in folder.rglob("*")}
        # It says that a person asked for a package.
        return {name for name in found if not name.endswith("REQUESTED")}

    # Their versions too: a package's record lies in a folder that has it in its name.
    assert files(made) == files(tmp_path / "usual")


def test_pip_is_the_one_that_came_with_python(made: Path) -> None:
    told = output_of(made / "bin" / "pip", "--version")
    assert told.startswith(f"pip {ensurepip.version()} from {made}/lib/")
    for name in ("pip3", f"pip{sys.version_info[0]}.{sys.version_info[1]}"):
        assert (made / "bin" / name).read_bytes() == (made / "bin" / "pip").read_bytes()
        assert os.access(made / "bin" / name, os.X_OK)


def test_pip_is_removed_with_its_scripts(made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "copy", symlinks=True)
    output_of(folder / "bin" / "python", "-m", "pip", "uninstall", "--yes", "pip")
    assert not list(folder.glob("bin/pip*"))
    assert not list(folder.glob("lib/python3.*/site-packages/pip*"))


@pytest.mark.parametrize("folder", ["short", "with a space", "long" * 40])
def test_a_script_starts_its_interpreter(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    python, script = tmp_path / folder / "python", tmp_path / "script"
    python.symlink_to(sys.executable)
    script.write_text(f"#!{new_environment.script_interpreter(python)}\nimport sys\nprint(sys.executable)\n")
    script.chmod(0o755)
    assert output_of(script) == f"{python}\n"
