"""The interpreter that a commit is measured with: the worker's own, or one built from its requirements.

A built environment is kept under the key of its requirements; one without its mark does not exist. In a box a
build writes into its environment's folder alone, and pip is told by options how packages are reached.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dashboard.repositories import hold_lock
from workers.host import pip_options, processes, requirements
from workers.host.box import NO_BOX, Box, BoxView
from workers.host.errors import BuildError, Stopped
from workers.host.folders import remove_tree
from workers.host.logs import Log

BUILD_SECONDS = 3600
# Written last. Nothing is renamed, since the scripts of an environment hold the path it was built at.
COMPLETION_MARK = "paceline-environment.json"
# What the harness reads memory and devices with, beside the standard library.
INSTRUMENTS = ("psutil", "pynvml")
PASSED_ON = (
    *("http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("REQUESTS_CA_BUNDLE", "CUDA_HOME", "LD_LIBRARY_PATH"),
)
# A build's own home and temporary files, on disk: the wheels of GPU libraries are large.
BUILD_FOLDER = "build"
MOST_FILES = 2_000_000
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class CachedEnvironment:
    """A built environment, or what an interrupted build has left; `used_at` is a Unix time."""

    folder: Path
    complete: bool
    used_at: float


@dataclass(frozen=True)
class Build:
    """The folder of an environment that is being built, and the checkout whose requirements it installs."""

    folder: Path
    checkout: Path


@dataclass(frozen=True)
class Environments:
    """The built environments under a home."""

    home: Path
    log: Log
    stop: threading.Event = field(default_factory=threading.Event)
    surroundings: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    box: Box = NO_BOX

    def python(self, checkout: Path, names: Sequence[str]) -> Path:
        """The interpreter for the commit in `checkout`; `names` are its requirements files, if any.

        Raises BuildError with pip's reason, Stopped where the run is no longer ours.
        """
        if not names:
            return Path(sys.executable)
        texts = requirements.read_requirements(checkout, names)
        folder = self.home / "environments" / requirements.environment_key(texts)[:32]
        try:
            with hold_lock(folder.with_suffix(".lock"), BUILD_SECONDS, self.stop):
                if not (folder / COMPLETION_MARK).exists():
                    self.build(folder, checkout, names, texts)
                # Its age of use. Under the lock: who removes old ones looks at it there.
                os.utime(folder / COMPLETION_MARK)
        except TimeoutError as error:
            raise BuildError(f"The environment is being built by another worker: {error}.") from error
        return folder / "bin" / "python"

    def build(self, folder: Path, checkout: Path, names: Sequence[str], texts: dict[str, str]) -> None:
        """Make the environment anew, and mark it once it is complete."""
        started = time.monotonic()
        self.log.add_notice(f"building the environment of {', '.join(texts)}")
        remove_tree(folder)
        for name in ("home", "tmp"):
            (folder / BUILD_FOLDER / name).mkdir(parents=True)
            self.box.hand_over(folder / BUILD_FOLDER / name)
        self.box.let_read(checkout, renewed=True)
        build = Build(folder, checkout)
        self.execute([sys.executable, "-I", "-m", "venv", str(folder)], build)
        files = [word for name in names for word in ("-r", name)]
        options = pip_options.index_options(self.surroundings) if self.box.encloses else ()
        isolated = ["--isolated"] if self.box.encloses else []
        pip = [str(folder / "bin" / "python"), "-I", "-m", "pip", *isolated, "--no-input", "install"]
        self.execute([*pip, "--progress-bar", "off", *options, *files], build)
        remove_tree(folder / BUILD_FOLDER)
        lend_instruments(site_packages(folder))
        mark = {"requirements": texts, "python": sys.version, "built_at": time.time()}
        write_mark(folder / COMPLETION_MARK, json.dumps(mark))
        self.log.add_notice(f"the environment was built in {time.monotonic() - started:.0f} s")

    def execute(self, command: list[str], build: Build) -> None:
        """Run one command of the build, its output into the run's log."""
        printed = Log()
        environment = self.build_environment(build)
        with self.box.wrap_command(command, build.checkout, self.view(build), environment) as boxed:
            spec = processes.ProcessSpec(
                boxed.command, build.checkout, environment, BUILD_SECONDS, folder_limit=self.limit(build)
            )
            result = processes.run_process_tree(spec, tee_output(printed.write, self.log.write), self.stop)
            out_of_memory = boxed.group.out_of_memory()
        if result.stopped:
            raise Stopped
        if result.timed_out:
            raise BuildError(f"The environment was not built within {BUILD_SECONDS} s.")
        if result.exceeded:
            raise BuildError("The environment takes more disk than a build may use.")
        if result.status != 0 and out_of_memory:
            raise BuildError("The environment's build needed more memory than it may use.")
        if result.status != 0:
            raise BuildError(f"The environment can't be built: {pip_reason(printed)}")

    def view(self, build: Build) -> BoxView:
        """What a build sees: its checkout, packages that lie on this machine, and its own folder."""
        return BoxView(
            read_only=[build.checkout, *pip_options.local_sources(self.surroundings)],
            writable=[build.folder],
            network=self.box.sandbox.network != "none",
            ports=pip_options.index_ports(self.surroundings),
        )

    def limit(self, build: Build) -> processes.FolderLimit | None:
        """The space of a build in a box."""
        if not self.box.encloses:
            return None
        return processes.FolderLimit(build.folder, self.box.sandbox.build_disk, MOST_FILES)

    def build_environment(self, build: Build) -> dict[str, str]:
        """The variables of a build's commands."""
        if not self.box.encloses:
            return self.pip_environment()
        passed_on = {name: value for name, value in self.surroundings.items() if name in PASSED_ON}
        pip_options.refuse_credentials(passed_on)
        own = build.folder / BUILD_FOLDER
        return {
            "PATH": PATH,
            "HOME": str(own / "home"),
            "TMPDIR": str(own / "tmp"),
            "LANG": "C.UTF-8",
            **passed_on,
        }

    def pip_environment(self) -> dict[str, str]:
        """All that pip and the builds it starts see of this process: how packages are reached."""
        cache = self.home / "environments" / "home"
        cache.mkdir(parents=True, exist_ok=True)
        passed_on = {
            name: value
            for name, value in self.surroundings.items()
            if name in PASSED_ON or name.startswith("PIP_")
        }
        return {"PATH": PATH, "HOME": str(cache), "LANG": "C.UTF-8", **passed_on}


def list_environments(home: Path) -> list[CachedEnvironment]:
    """The environments under `home`, longest unused first."""
    folders = [path for path in (home / "environments").glob("*") if path.is_dir() and path.name != "home"]
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


def lend_instruments(packages: Path) -> None:
    """Give the environment the worker's instruments, unless the commit requires its own; BuildError."""
    folder = packages.parents[2]
    if packages.resolve() != folder.resolve() / packages.relative_to(folder):
        raise BuildError("The environment can't be used: a package has put a link in place of its folders.")
    for name in INSTRUMENTS:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None or any(packages.glob(f"{name}*")):
            continue
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            left_out = shutil.ignore_patterns("__pycache__", "tests")
            shutil.copytree(origin.parent, packages / name, ignore=left_out)
        else:
            shutil.copy(origin, packages / origin.name)


def tee_output(first: Callable[[bytes], None], second: Callable[[bytes], None]) -> Callable[[bytes], None]:
    def write(data: bytes) -> None:
        first(data)
        second(data)

    return write


def pip_reason(printed: Log) -> str:
    """pip's last line, without the word before it."""
    return printed.last_line().removeprefix("ERROR: ") or "pip gave no reason"
