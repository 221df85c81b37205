"""The measurement: the worker's harness, the commit's code, an environment built from nothing."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paceline import document

from workers.host.box.box import NO_BOX, Box, BoxedCommand, BoxView
from workers.host.environments.build_runner import PATH
from workers.host.errors import (
    BadDocumentError,
    CrashError,
    MeasuringError,
    NoDocumentError,
    Stopped,
    TimeLimitError,
)
from workers.host.folders import read_untrusted_file, remove_tree
from workers.host.logs import Log
from workers.host.processes import process_tree

# Which devices may be used, and where their libraries are, is the machine's affair.
PASSED_ON = (
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
    "LD_LIBRARY_PATH",
)
# Under these names the harness takes its side of two that take turns; the first one begins.
TURNS = ("first", "second")
# A module at its top, whose folder is that of the package.
HARNESS_PACKAGE = Path(document.__file__).parent
# What the harness leaves out: the counting, the sweep, or both.
NO_COUNTING, NO_SWEEP, TIMED_ONLY = "--no-counting", "--no-sweep", "--timed-only"
LARGEST_PROGRESS = 4096
# The harness keeps a handful of files beside its document.
MOST_KEPT_FILES = 10_000
# Seconds by which two clocks of one machine may differ.
CLOCK_TOLERANCE = 1.0
# How the harness marks its lines, and the end of those that it repeats.
HARNESS = "paceline: "
DASHES = "---"
ENDED_WELL = "--- it ended without an error"
TIMED_OUT = "--- its time limit was over"
# Seconds in which the harness may end by itself when the time limit is over: it knows how far it was.
REPORT_SECONDS = 10.0
LARGEST_DOCUMENT = document.SIZE_LIMIT


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
    # Instead of the manifest's; None leaves it.
    seed: int | None = None
    # Of Python's hashes alone; None leaves the seed.
    hash_seed: int | None = None
    # One of TURNS, in a folder that both sides are given: the steps take turns with the other side's.
    turns: Path | None = None
    # What was counted before; it lies in the scratch folder.
    counted: Path | None = None
    # The machine's lock: see process_tree.ProcessSpec.
    lock: int | None = None
    limits: process_tree.Limits = field(default_factory=process_tree.Limits)
    # What is seen beside the interpreter's environment: that which lies below it, data.
    folders: Sequence[Path] = ()
    # Of the files that the site keeps beside the code; empty where there are none.
    kept_files: str = ""

    def command(self, scratch: Path) -> list[str]:
        """The harness's command line."""
        settings = [f"--set={name}={json.dumps(value)}" for name, value in self.params.items()]
        return [
            *(str(self.python), "-P", "-m", "paceline", "run", self.benchmark, *settings, "--exact"),
            *("--repetitions", str(self.repetitions), *(["--quick"] if self.quick else [])),
            *([self.without] if self.without else []),
            *([] if self.seed is None else [f"--seed={self.seed}"]),
            *([] if self.hash_seed is None else [f"--hash-seed={self.hash_seed}"]),
            *([f"--turns={self.turns}"] if self.turns else []),
            *([f"--counted={self.counted}"] if self.counted else []),
            *("--document", str(scratch / "document.json"), "--progress", str(scratch / "progress.json")),
            *("--prepared", "--watch-stdin"),
        ]


@dataclass(frozen=True)
class Progress:
    """What the harness says of itself: a share from 0 to 1 and a few words."""

    fraction: float
    text: str


def run_harness(
    measurement: Measurement, scratch: Path, log: Log, stop: threading.Event, box: Box = NO_BOX
) -> bytes:
    """The document's bytes; else TimeLimitError, CrashError, NoDocumentError or BadDocumentError, or Stopped.

    `scratch` is an empty folder of this run alone; what is measured may write in it.
    """
    started = time.monotonic()
    environment = harness_environment(measurement.python, scratch, os.environ)
    if measurement.kept_files:
        environment["PACELINE_KEPT_FILES"] = measurement.kept_files
    if box.encloses and not box.layers:
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    view = measurement_view(measurement, scratch, box)
    with box.wrap_command(measurement.command(scratch), measurement.checkout, view, environment) as boxed:
        result = process_tree.run_process_tree(
            measurement_spec(measurement, boxed, scratch, environment, box), log.write, stop
        )
        out_of_memory = boxed.group.out_of_memory()
    if result.stopped:
        raise Stopped
    if result.timed_out:
        raise TimeLimitError(
            f"The benchmark did not end within its time limit of {measurement.time_limit:g} s."
        )
    if result.status != 0:
        exceeded = "memory" if out_of_memory else result.exceeded
        lines = log.last_lines()
        kind = CrashError if exceeded else failure_kind(lines)
        raise kind(limit_reason(exceeded, box) or crash_reason(result.status, lines))
    data = read_document(scratch)
    check_clock(data, time.monotonic() - started)
    return data


def check_clock(data: bytes, elapsed: float) -> None:
    """BadDocumentError where the measured windows took longer than there was time, in seconds.

    The harness shares its box with the code that it measures, which may have written the document.
    """
    try:
        measured = sum(float(repetition["seconds"]) for repetition in json.loads(data)["repetitions"])
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        # The site says what is wrong with it.
        return
    if measured > elapsed + CLOCK_TOLERANCE:
        raise BadDocumentError(
            f"repetitions: {measured:.3g} s by the document, but all of it took {elapsed:.3g} s."
        )


def measurement_spec(
    measurement: Measurement, boxed: BoxedCommand, scratch: Path, environment: Mapping[str, str], box: Box
) -> process_tree.ProcessSpec:
    """What to start, with the limits of the box where there is one."""
    spec = process_tree.ProcessSpec(
        command=boxed.command,
        folder=measurement.checkout,
        environment=environment,
        time_limit=measurement.time_limit + REPORT_SECONDS,
        limits=measurement.limits,
        lock=measurement.lock,
    )
    if not box.encloses:
        return spec
    kept = process_tree.FolderLimit(scratch, box.sandbox.kept_disk, MOST_KEPT_FILES)
    return replace(spec, output_limit=box.sandbox.output, folder_limit=kept)


def measurement_view(measurement: Measurement, scratch: Path, box: Box) -> BoxView:
    """What the harness sees of this machine's files. The pipes of TURNS are made here, for both sides."""
    pipes = [measurement.turns.with_name(name) for name in TURNS] if measurement.turns else []
    if box.encloses:
        for pipe in pipes:
            with contextlib.suppress(FileExistsError):
                os.mkfifo(pipe, 0o600)
    package = HARNESS_PACKAGE
    imported = package if package.parent.name == "site-packages" else package.parent
    box.let_read(measurement.checkout, renewed=True)
    for folder in (measurement.python.parent.parent, imported, *measurement.folders):
        box.let_read(folder)
    linked = [scratch / "harness"] if (scratch / "harness").exists() else []
    return BoxView(
        read_only=[measurement.python.parent.parent, imported, *linked, *measurement.folders],
        writable=[scratch, *pipes],
        private=[scratch / "home", scratch / "tmp"],
        layered=measurement.checkout,
        network=box.sandbox.network == "all",
    )


def limit_reason(exceeded: str, box: Box) -> str:
    """One sentence for a limit of the box; empty where none was exceeded."""
    sandbox = box.sandbox
    return {
        "memory": f"The benchmark needed more memory than the {format_size(sandbox.memory)} that it may use.",
        "output": f"The benchmark printed more than {format_size(sandbox.output)}.",
        "folder": f"The benchmark wrote more than {format_size(sandbox.kept_disk)} or {MOST_KEPT_FILES} "
        "files into the folder of its document.",
    }.get(exceeded, "")


def format_size(size: int) -> str:
    """Bytes in the largest binary unit of which there is at least one."""
    power = min(4, max(0, size.bit_length() - 1) // 10)
    return f"{size / 1024**power:.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def harness_environment(python: Path, scratch: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """All that the measured processes see of this machine's environment."""
    for folder in ("home", "tmp"):
        (scratch / folder).mkdir()
    passed_on = {name: environ[name] for name in PASSED_ON if name in environ}
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
    package = HARNESS_PACKAGE
    if package.parent.name != "site-packages":
        return package.parent
    (scratch / "harness").mkdir()
    (scratch / "harness" / package.name).symlink_to(package)
    return scratch / "harness"


def failure_kind(lines: list[str]) -> type[MeasuringError]:
    """Of a harness that failed, by how it marks the end of what it repeats."""
    kinds = {ENDED_WELL: NoDocumentError, TIMED_OUT: TimeLimitError}
    return next((kinds[line] for line in lines[-2:-1] if line in kinds), CrashError)


def crash_reason(status: int, lines: list[str]) -> str:
    """One sentence from the exit status and the last lines of the log.

    The harness's own sentence stands last. Where the benchmark ended with an error, what it printed last
    stands before it, with a line of dashes between.
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
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    if not math.isfinite(fraction):
        return None
    return Progress(min(1.0, max(0.0, fraction)), text.replace("\0", "")[:200])


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
        remove_tree(left)
    try:
        yield Path(tempfile.mkdtemp(dir=top))
    finally:
        remove_tree(top)
