"""The interpreter that a commit is measured with: the worker's own, or one built from its requirements.

A built environment is kept under the key of its requirements; one without its mark does not exist.
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
from workers.host import processes, requirements
from workers.host.errors import BuildError, Stopped
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
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class CachedEnvironment:
    """A built environment, or what an interrupted build has left; `used_at` is a Unix time."""

    folder: Path
    complete: bool
    used_at: float


@dataclass(frozen=True)
class Environments:
    """The built environments under a home."""

    home: Path
    log: Log
    stop: threading.Event = field(default_factory=threading.Event)
    surroundings: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

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
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.execute([sys.executable, "-I", "-m", "venv", str(folder)], checkout)
        files = [word for name in names for word in ("-r", name)]
        pip = [str(folder / "bin" / "python"), "-I", "-m", "pip", "--no-input", "install"]
        self.execute([*pip, "--progress-bar", "off", *files], checkout)
        lend_instruments(site_packages(folder))
        draft = folder / f"{COMPLETION_MARK}.draft"
        draft.write_text(json.dumps({"requirements": texts, "python": sys.version, "built_at": time.time()}))
        draft.rename(folder / COMPLETION_MARK)
        self.log.add_notice(f"the environment was built in {time.monotonic() - started:.0f} s")

    def execute(self, command: list[str], checkout: Path) -> None:
        """Run one command of the build, its output into the run's log."""
        printed = Log()
        spec = processes.ProcessSpec(command, checkout, self.pip_environment(), time_limit=BUILD_SECONDS)
        result = processes.run_process_tree(spec, tee_output(printed.write, self.log.write), self.stop)
        if result.stopped:
            raise Stopped
        if result.timed_out:
            raise BuildError(f"The environment was not built within {BUILD_SECONDS} s.")
        if result.status != 0:
            raise BuildError(f"The environment can't be built: {pip_reason(printed)}")

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


def lend_instruments(packages: Path) -> None:
    """Give the environment the worker's instruments, unless the commit requires its own."""
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
