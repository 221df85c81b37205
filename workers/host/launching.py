"""The measurement: the worker's harness, the commit's code, an environment built from nothing."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline import manifest

from workers.host import processes
from workers.host.environments import PATH
from workers.host.errors import BadDocumentError, CrashError, NoDocumentError, Stopped, TimeLimitError
from workers.host.logs import Log

# Which devices may be used, and where their libraries are, is the machine's affair.
PASSED_ON = (
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
    "LD_LIBRARY_PATH",
)
# Under these names the harness takes its side of two that take turns; the first one begins.
TURNS = ("first", "second")
# What the harness leaves out: the counting, the sweep, or both.
NO_COUNTING, NO_SWEEP, TIMED_ONLY = "--no-counting", "--no-sweep", "--timed-only"
LARGEST_PROGRESS = 4096
# How the harness marks its lines, and the end of those that it repeats.
HARNESS = "paceline: "
DASHES = "---"
# Bounds the memory of the worker; what a document may be is said where it is stored.
LARGEST_DOCUMENT = 64 * 1024 * 1024


@dataclass(frozen=True)
class Measurement:
    """One call of the harness. `time_limit` is in seconds and ends the whole tree."""

    benchmark: str
    params: Mapping[str, Any]
    repetitions: int
    quick: bool
    time_limit: float
    checkout: Path
    python: Path
    # One of the above: interleaved runs weigh one metric, the rest would only take time.
    without: str = ""
    # One of TURNS, in a folder that both sides are given: the steps take turns with the other side's.
    turns: Path | None = None
    # The machine's lock: see processes.Order.
    lock: int | None = None
    limits: processes.Limits = field(default_factory=processes.Limits)

    def command(self, scratch: Path) -> list[str]:
        """The harness's command line."""
        settings = [f"--set={name}={json.dumps(value)}" for name, value in self.params.items()]
        return [
            *(str(self.python), "-P", "-m", "paceline", "run", self.benchmark, *settings),
            *("--repetitions", str(self.repetitions), *(["--quick"] if self.quick else [])),
            *([self.without] if self.without else []),
            *([f"--turns={self.turns}"] if self.turns else []),
            *("--document", str(scratch / "document.json"), "--progress", str(scratch / "progress.json")),
            "--watch-stdin",
        ]


@dataclass(frozen=True)
class Progress:
    """What the harness says of itself: a share from 0 to 1 and a few words."""

    fraction: float
    text: str


def run_harness(measurement: Measurement, scratch: Path, log: Log, stop: threading.Event) -> bytes:
    """The document's bytes; else TimeLimitError, CrashError, NoDocumentError or BadDocumentError, or Stopped.

    `scratch` is an empty folder of this run alone; what is measured may write in it.
    """
    spec = processes.ProcessSpec(
        command=measurement.command(scratch),
        folder=measurement.checkout,
        environment=harness_environment(measurement.python, scratch, os.environ),
        time_limit=measurement.time_limit,
        limits=measurement.limits,
        lock=measurement.lock,
    )
    result = processes.run_process_tree(spec, log.write, stop)
    if result.stopped:
        raise Stopped
    if result.timed_out:
        raise TimeLimitError(
            f"The benchmark did not end within its time limit of {measurement.time_limit:g} s."
        )
    if result.status != 0:
        raise CrashError(crash_reason(result.status, log.last_lines()))
    return read_document(scratch)


def harness_environment(python: Path, scratch: Path, surroundings: Mapping[str, str]) -> dict[str, str]:
    """All that the measured processes see of this machine's environment."""
    for folder in ("home", "tmp"):
        (scratch / folder).mkdir()
    passed_on = {name: surroundings[name] for name in PASSED_ON if name in surroundings}
    return {
        "PATH": f"{python.parent}:{PATH}",
        "HOME": str(scratch / "home"),
        "TMPDIR": str(scratch / "tmp"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(harness_folder(scratch)),
        **passed_on,
    }


def harness_folder(scratch: Path) -> Path:
    """A folder to import the worker's harness from, and nothing else of the worker's."""
    package = Path(manifest.__file__).parent
    if package.parent.name != "site-packages":
        return package.parent
    (scratch / "harness").mkdir()
    (scratch / "harness" / package.name).symlink_to(package)
    return scratch / "harness"


def crash_reason(status: int, lines: list[str]) -> str:
    """One sentence from the exit status and the last lines of the log.

    The harness's own sentence stands last, after the end of what the benchmark printed and a line of dashes.
    """
    if lines and lines[-1].startswith(HARNESS):
        last_printed = lines[-3] if len(lines) > 2 and lines[-2] == DASHES else ""
        return f"{lines[-1].removeprefix(HARNESS)}{after_colon(last_printed)}"
    return f"The benchmark {describe_exit_status(status)}{after_colon(lines[-1] if lines else '')}"


def describe_exit_status(status: int) -> str:
    """Of an exit status as a shell counts it."""
    with contextlib.suppress(ValueError):
        return f"was ended by signal {status - 128} ({signal.Signals(status - 128).name})"
    return f"ended with exit status {status}"


def after_colon(line: str) -> str:
    return f": {line}" if line else "."


def read_document(scratch: Path) -> bytes:
    """What the harness renamed into place."""
    try:
        return read_untrusted_file(scratch / "document.json", LARGEST_DOCUMENT)
    except FileNotFoundError:
        raise NoDocumentError("The benchmark ended without an error, but left no document.") from None
    except OSError as error:
        raise BadDocumentError(f"The document can't be read: {error.strerror or error}.") from error


def read_progress(scratch: Path) -> Progress | None:
    """The newest progress; None where there is none, or none that can be read."""
    try:
        written = json.loads(read_untrusted_file(scratch / "progress.json", LARGEST_PROGRESS))
        fraction, text = float(written["fraction"]), str(written["text"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not math.isfinite(fraction):
        return None
    return Progress(min(1.0, max(0.0, fraction)), text.replace("\0", "")[:200])


def read_untrusted_file(path: Path, limit: int) -> bytes:
    """The bytes of a plain file that measured code may have put there: no link, no pipe, at most `limit`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path.name} is not a plain file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"{path.name} is larger than {limit} bytes")
    return data


@contextlib.contextmanager
def scratch_folder(home: Path, machine: str) -> Iterator[Path]:
    """An empty folder for one run. Enter it under the machine's lock: what dead runs left is removed.

    In the system's temporary folder, since the path of a unix socket below it must stay short.
    """
    key = hashlib.sha256(f"{home.resolve()} {machine}".encode()).hexdigest()[:10]
    top = Path(tempfile.gettempdir()) / f"paceline-run-{os.getuid()}-{key}"
    top.mkdir(mode=0o700, exist_ok=True)
    owner = top.lstat()
    if not stat.S_ISDIR(owner.st_mode) or owner.st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "it belongs to somebody else", str(top))
    for left in top.iterdir():
        shutil.rmtree(left, ignore_errors=True)
    try:
        yield Path(tempfile.mkdtemp(dir=top))
    finally:
        shutil.rmtree(top, ignore_errors=True)
