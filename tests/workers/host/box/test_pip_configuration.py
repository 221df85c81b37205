"""pip's configuration of the whole machine holds for builds in a box too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.workers.host.boxes import KINDS, MIB, SMALL, small_box
from tests.workers.host.wheels import build_wheel
from workers.host.environments import pip_options
from workers.host.environments.build_runner import BuildRunner, BuildStep
from workers.host.errors import BuildError
from workers.host.logs import Log


def boxed_runner(kind: str, home: Path) -> BuildRunner:
    box = small_box(kind, home, type(SMALL)(network="none", build_disk=400 * MIB))
    return BuildRunner(home, Log(), box=box, host_variables={})


def install_constrained(runner: BuildRunner, folder: Path, constraint: str) -> Path:
    """Install the wheel tiny 1.0 where pip's configuration, as below /etc/xdg, names this constraint."""
    configuration = folder / "xdg" / "pip" / "pip.conf"
    configuration.parent.mkdir(parents=True)
    configuration.write_text(f"[global]\nconstraint = {folder}/constraints.txt\n")
    (folder / "constraints.txt").write_text(f"{constraint}\n")
    requirements = folder / "checkout" / "requirements.txt"
    requirements.parent.mkdir()
    requirements.write_text(build_wheel(requirements.parent / "wheels", "tiny", ""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pip_options, "CONFIGURATIONS", (configuration,))
        variables = {"XDG_CONFIG_DIRS": str(folder / "xdg")}
        step = BuildStep(runner.home / "environments" / "new", requirements.parent, variables=variables)
        runner.make_folders(step)
        # By the pip of the worker's own environment, which is shown in a box, and not all of whose packages
        # are to be looked at.
        target = step.folder / "installed"
        words = ["--no-warn-conflicts", "--target", str(target), "--requirement", str(requirements)]
        runner.run_pip(Path(sys.executable), words, step)
    return target


@pytest.mark.parametrize("kind", KINDS)
def test_a_constraint_of_the_machine_refuses_another_version(kind: str, tmp_path: Path) -> None:
    runner = boxed_runner(kind, tmp_path / "home")
    with pytest.raises(BuildError, match=r"\(constraint\) tiny==2.0"):
        install_constrained(runner, tmp_path, "tiny==2.0")


def test_what_fits_a_constraint_of_the_machine_is_installed(tmp_path: Path) -> None:
    runner = boxed_runner(KINDS[0], tmp_path / "home")
    assert (install_constrained(runner, tmp_path, "tiny==1.0") / "tiny.py").exists()
