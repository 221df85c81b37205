"""The environment that a commit shares with others: the worker's own, or one built from what it requires.

It is kept under the key of its content: the packages of its requirements files or its lock file, and those
that its own packages depend on. Over it lies the commit's own layer (`own_code`). One without its mark does
not exist.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from paceline.manifest.environment_table import Environment, parse_install

from dashboard.repositories import hold_lock
from workers.host.environments import lock_files, own_dependencies, requirements
from workers.host.environments.build_runner import BUILD_FOLDER, BUILD_SECONDS, BuildRunner, BuildStep
from workers.host.environments.requirements import Requirements
from workers.host.errors import BuildError
from workers.host.folders import remove_tree

# Written last. Nothing is renamed, since the scripts of an environment hold the path it was built at.
COMPLETION_MARK = "paceline-environment.json"
# What the harness reads memory and devices with, beside the standard library.
HARNESS_DEPENDENCIES = ("psutil", "pynvml")
# Under this name the dependencies of the commit's own packages count among the requirements' texts.
BUILT = "the environment was built"
OWN_DEPENDENCIES = "dependencies of the commit's own packages"

Builder = Callable[[BuildStep], None]


@dataclass(frozen=True)
class CachedEnvironment:
    """A built environment, or what an interrupted build has left; `used_at` is a Unix time."""

    folder: Path
    complete: bool
    used_at: float


@dataclass(frozen=True)
class BuiltEnvironment:
    """An interpreter with its packages; `folders` hold them, without those of the worker itself.

    `base_key` says what it shares with other commits.
    """

    python: Path
    folders: tuple[Path, ...] = ()
    base_key: str = ""


@dataclass(frozen=True)
class Environments:
    """The base environments under a home."""

    runner: BuildRunner

    @property
    def home(self) -> Path:
        return self.runner.home

    def base(self, checkout: Path, environment: Environment | None) -> BuiltEnvironment:
        """What commits share: found by its content, or built; the worker's own where nothing is required.

        Raises BuildError with the reason, Stopped where the run is no longer ours.
        """
        if environment is None:
            return own_environment()
        if environment.lock:
            return self.locked_base(checkout, environment)
        required = requirements.read_requirements(checkout, environment.requirements)
        own = self.dependencies(checkout, environment, required)
        if own:
            required = replace(required, texts={**required.texts, OWN_DEPENDENCIES: "\n".join(own)})
        return self.required_base(checkout, required)

    def required_base(self, checkout: Path, required: Requirements) -> BuiltEnvironment:
        """The environment with these requirements; the worker's own where there are none."""
        if not required.texts:
            return own_environment()
        key = required.key()

        def build(step: BuildStep) -> None:
            files = write_requirements(step.folder / BUILD_FOLDER, required)
            self.runner.make_environment(step)
            self.runner.run_pip(step.folder / "bin" / "python", files, step)

        return self.find_or_build(key, checkout, ", ".join(required.texts), build, required.texts)

    def tools(self, checkout: Path) -> BuiltEnvironment:
        """An environment with nothing but pip."""
        key = requirements.environment_key({"": "pip alone"})

        def build(step: BuildStep) -> None:
            self.runner.make_environment(step)

        return self.find_or_build(key, checkout, "pip", build, {})

    def dependencies(self, checkout: Path, environment: Environment, required: Requirements) -> list[str]:
        """What the commit's own packages depend on, as requirements."""
        found: list[str] = []
        for word in (*environment.install, *required.local):
            target = parse_install(word)
            known = own_dependencies.declared_dependencies(checkout, target)
            if known is None:
                # What a setup.py imports comes from the requirements, where pip builds it without isolation.
                named = replace(required, local=())
                base = self.tools(checkout) if target.is_isolated else self.required_base(checkout, named)
                known = own_dependencies.ask_pip(checkout, word, base.python, base.folders, self.runner)
            found += known
        return list(dict.fromkeys(found))

    def locked_base(self, checkout: Path, environment: Environment) -> BuiltEnvironment:
        """The environment of a lock file."""
        lock = lock_files.read_lock(checkout, environment)
        program = lock_files.find_program(lock, self.runner.host_variables)

        def build(step: BuildStep) -> None:
            lock_files.build_environment(lock, program, step, self.runner)

        key = requirements.environment_key(lock.texts)
        return self.find_or_build(key, checkout, environment.lock, build, lock.texts)

    def find_or_build(
        self, key: str, checkout: Path, name: str, build: Builder, texts: dict[str, str]
    ) -> BuiltEnvironment:
        """The environment with this key; `build` makes it where there is none."""
        folder = self.home / "environments" / key[:32]

        def build_whole() -> None:
            step = BuildStep(folder, checkout)
            self.runner.make_folders(step)
            build(step)
            remove_tree(folder / BUILD_FOLDER)
            if site_packages(folder).is_dir():
                copy_harness_dependencies(site_packages(folder))
            mark = {"requirements": texts, "python": sys.version, "built_at": time.time()}
            write_mark(folder / COMPLETION_MARK, json.dumps(mark))

        build_once(folder, f"building the environment of {name}", self.runner, build_whole)
        return BuiltEnvironment(folder / "bin" / "python", (folder,), key)


def own_environment() -> BuiltEnvironment:
    """The worker's own, known by when a package was last installed or removed."""
    changed = Path(sysconfig.get_path("purelib")).stat().st_mtime_ns
    return BuiltEnvironment(Path(sys.executable), (), f"{sys.executable} {changed}")


def build_once(
    folder: Path, notice: str, runner: BuildRunner, build: Callable[[], None], done: str = BUILT
) -> None:
    """Have a folder built unless it is complete, and note that it is used. What fails leaves nothing."""
    try:
        with hold_lock(folder.with_suffix(".lock"), BUILD_SECONDS, runner.stop):
            if not (folder / COMPLETION_MARK).exists():
                started = time.monotonic()
                runner.log.add_notice(notice)
                remove_tree(folder)
                try:
                    build()
                except BuildError:
                    remove_tree(folder)
                    raise
                runner.log.add_notice(f"{done} in {time.monotonic() - started:.0f} s")
            # Its age of use. Under the lock: who removes old ones looks at it there.
            os.utime(folder / COMPLETION_MARK)
    except TimeoutError as error:
        raise BuildError(f"The environment is being built by another worker: {error}.") from error


def write_requirements(folder: Path, required: Requirements) -> list[str]:
    """pip's words for the requirements. Files that were changed are written below the folder."""
    words = [word for name in required.names for word in ("-r", name)]
    if required.local:
        for name, text in required.texts.items():
            if name != OWN_DEPENDENCIES:
                path = folder / "requirements" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        words = [word for name in required.names for word in ("-r", str(folder / "requirements" / name))]
    if OWN_DEPENDENCIES in required.texts:
        path = folder / "own-dependencies.txt"
        path.write_text(required.texts[OWN_DEPENDENCIES])
        words += ["-r", str(path)]
    return words


def list_environments(home: Path, kind: str = "environments") -> list[CachedEnvironment]:
    """The environments under `home`, or its prepared data, longest unused first."""
    folders = [path for path in (home / kind).glob("*") if path.is_dir() and path.name != "home"]
    return sorted(
        (inspect_environment(folder) for folder in folders), key=lambda environment: environment.used_at
    )


def inspect_environment(folder: Path) -> CachedEnvironment:
    """Whether a folder's environment is complete, and when it was last used."""
    mark = folder / COMPLETION_MARK
    complete = mark.exists()
    return CachedEnvironment(folder, complete, (mark if complete else folder).stat().st_mtime)


def site_packages(folder: Path) -> Path:
    """Where the environment's packages lie."""
    return folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def write_mark(mark: Path, text: str) -> None:
    """Write a file in whole or not at all, through no link that a build may have put in its place."""
    draft = mark.with_name(f"{mark.name}.draft")
    for path in (mark, draft):
        remove_tree(path)
        path.unlink(missing_ok=True)
    with draft.open("x") as file:
        file.write(text)
    draft.rename(mark)


def copy_harness_dependencies(packages: Path) -> None:
    """Give the environment the worker's psutil and pynvml, unless the commit requires its own; BuildError."""
    folder = packages.parents[2]
    if packages.resolve() != folder.resolve() / packages.relative_to(folder):
        raise BuildError("The environment can't be used: a package has put a link in place of its folders.")
    for name in HARNESS_DEPENDENCIES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None or any(packages.glob(f"{name}*")):
            continue
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            left_out = shutil.ignore_patterns("__pycache__", "tests")
            shutil.copytree(origin.parent, packages / name, ignore=left_out)
        else:
            shutil.copy(origin, packages / origin.name)
        copy_package_record(name, packages)


def copy_package_record(module: str, packages: Path) -> None:
    """Give what was copied its package's record: what no record describes would have every commit counted."""
    for name in importlib.metadata.packages_distributions().get(module, ()):
        for file in importlib.metadata.files(name) or ():
            if file.name == "RECORD":
                folder = Path(str(file.locate())).parent
                target = packages / folder.name
                # A build may have put links there: what is copied over these would be anywhere.
                remove_tree(target)
                target.unlink(missing_ok=True)
                shutil.copytree(folder, target)
