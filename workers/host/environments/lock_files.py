"""Environments of lock files: by uv, or by a program of conda's family, where the host has it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from paceline.manifest.environment_table import Environment, parse_install
from paceline.manifest.preparation import content_digest, read_file_states

from workers.host.checkout.worktree import read_text_inside
from workers.host.environments.build_runner import BUILD_FOLDER, BuildRunner, BuildStep
from workers.host.environments.requirements import ADDRESS
from workers.host.errors import BuildError, CheckoutError

CONDA_PROGRAMS = ("micromamba", "mamba", "conda")
# The format that conda-lock writes, by the end of the name, as in `gpu.conda-lock.yml`; the others list the
# addresses of packages, which every program reads.
UNIFIED_NAMES = ("conda-lock.yml", "conda-lock.yaml")
UNIFIED_PROGRAMS = ("micromamba",)
REGISTRY = re.compile(r'\bregistry = "([^"\n]+)"')


@dataclass(frozen=True)
class LockFile:
    """A lock file of the checkout: `texts` are what decides what is installed, `extras` are uv's."""

    name: str
    extras: tuple[str, ...]
    texts: dict[str, str]

    @property
    def is_uv(self) -> bool:
        return PurePosixPath(self.name).name == "uv.lock"

    @property
    def programs(self) -> tuple[str, ...]:
        """What can build it, the best first."""
        if self.is_uv:
            return ("uv",)
        return UNIFIED_PROGRAMS if self.name.endswith(UNIFIED_NAMES) else CONDA_PROGRAMS


def read_lock(checkout: Path, environment: Environment) -> LockFile:
    """The lock file that the manifest names, with the extras of the packages beside it."""
    name = environment.lock
    folder = PurePosixPath(name).parent
    targets = [parse_install(word) for word in environment.install]
    extras = [
        extra for target in targets if PurePosixPath(target.folder) == folder for extra in target.extras
    ]
    is_uv = PurePosixPath(name).name == "uv.lock"
    names = [name, str(folder / "pyproject.toml"), *settings_files(checkout, folder)] if is_uv else [name]
    try:
        texts = {each: read_text_inside(checkout, each, "The lock file") for each in names}
    except CheckoutError as error:
        raise BuildError(str(error)) from error
    if is_uv:
        texts |= hash_registries(checkout, folder, texts[name])
    return LockFile(name, tuple(extras), {**texts, "extras": " ".join(extras)})


def settings_files(checkout: Path, folder: PurePosixPath) -> list[str]:
    """Where uv may read how packages are found and built, as far as it is there; of the folders above too."""
    named = [str(each / name) for each in (folder, *folder.parents) for name in ("uv.toml", "pyproject.toml")]
    return [name for name in named if (checkout / name).is_file()]


def hash_registries(checkout: Path, folder: PurePosixPath, text: str) -> dict[str, str]:
    """The checkout's own folders that a uv.lock takes packages from, whose hashes it may not hold."""
    found: dict[str, str] = {}
    read: set[Path] = set()
    for place in sorted(set(REGISTRY.findall(text))):
        path = checkout / folder / place
        if ADDRESS.match(place) or not os.path.isdir(path):  # noqa: PTH112 - raises nothing
            continue
        # Once: a lock may name it ten thousand times, each time spelled in another way.
        if (real := path.resolve()).is_relative_to(checkout.resolve()) and real not in read:
            read.add(real)
            found[f"packages in {place}"] = content_digest(path, read_file_states(path))
    return found


def find_program(lock: LockFile, host_variables: Mapping[str, str]) -> Path:
    """The program that builds it: beside the worker's interpreter, or on its path; BuildError names it."""
    path = f"{Path(sys.executable).parent}:{host_variables.get('PATH', '')}"
    for name in lock.programs:
        if found := shutil.which(name, path=path):
            return Path(found)
    if lock.is_uv:
        needed = "uv, for example by pip install uv in the worker's environment"
    else:
        needed = f"{' or '.join(lock.programs)} on the path of its worker"
    raise BuildError(f"{lock.name} can't be installed on this machine: it needs {needed}.")


def program_folder(program: Path) -> Path:
    """What it needs of this machine: its folder, or the whole environment that conda or mamba came with."""
    folder = program.resolve().parent
    return folder.parent if (folder.parent / "conda-meta").is_dir() else folder


def build_environment(lock: LockFile, program: Path, step: BuildStep, runner: BuildRunner) -> None:
    """Fill the step's folder."""
    seen = (*step.seen, program_folder(program))
    if lock.is_uv:
        build_by_uv(lock, program, step, runner, seen)
        return
    own = step.folder / BUILD_FOLDER
    variables = {
        "MAMBA_ROOT_PREFIX": str(own / "home" / "mamba"),
        "CONDA_PKGS_DIRS": str(own / "home" / "pkgs"),
    }
    conda = BuildStep(step.folder, step.checkout, None, seen, (program.parent,), variables)
    command = [str(program), "create", "--yes", "--prefix", str(step.folder), "--file", lock.name]
    runner.execute(command, conda)
    if not (step.folder / "bin" / "python").exists():
        raise BuildError(f"The environment of {lock.name} has no Python.")


def build_by_uv(
    lock: LockFile, program: Path, step: BuildStep, runner: BuildRunner, seen: tuple[Path, ...]
) -> None:
    """Install what is locked, but none of the checkout's own packages."""
    runner.make_environment(step)
    own = step.folder / BUILD_FOLDER
    variables = {
        "UV_PROJECT_ENVIRONMENT": str(step.folder),
        "UV_CACHE_DIR": str(own / "home" / "uv"),
        "UV_PYTHON": str(step.folder / "bin" / "python"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy",
        "UV_NO_PROGRESS": "1",
    }
    extras = [word for extra in lock.extras for word in ("--extra", extra)]
    # pip, which stands in the environment already, installs the commit's own packages: --inexact leaves it.
    wanted = ["--frozen", "--inexact", "--no-dev", "--no-install-project", "--no-install-workspace"]
    command = [str(program), "sync", *wanted, "--no-install-local", *extras]
    folder = str(PurePosixPath(lock.name).parent)
    uv = BuildStep(step.folder, step.checkout, None, seen, (program.parent,), variables)
    runner.execute([*command, "--project", folder], uv)
