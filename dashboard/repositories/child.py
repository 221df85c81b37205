"""One child process with all that it starts: fed, read, limited in time, and ended as a group."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from dashboard.repositories.errors import Stopped

# After SIGTERM git removes its lock files, and after that it is killed.
GRACE_SECONDS = 3.0
# How late the stop event is seen.
SLICE_SECONDS = 0.1
MOST_COMPLAINT_BYTES = 64 * 1024
CHUNK = 65536
# More than a pipe holds.
PIPE_CHUNKS = 20
PR_SET_PDEATHSIG = 1
# Loaded before any fork: between fork and exec nothing may be imported.
_libc = ctypes.CDLL(None, use_errno=True)

Output = Callable[[bytes], object]


@dataclass(frozen=True)
class ChildResult:
    """How the process ended, and the beginning of what it wrote to its standard error."""

    status: int
    complaint: bytes


def run_child(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    stdin: bytes,
    output: Output,
    time_limit: float,
    stop: threading.Event,
) -> ChildResult:
    """Run the command to its end; `output` is called with each piece of its standard output.

    Raises TimeoutError after `time_limit` seconds, Stopped where `stop` is set, OSError where it can't be
    started. However this ends, by an exception of `output` too, nothing of the group is left; and the command
    is asked to end should this process be killed.
    """
    until = time.monotonic() + time_limit
    launcher = _tying_launcher()
    with subprocess.Popen(
        [*launcher, str(os.getpid()), _find_program(command[0], environment), *command[1:]]
        if launcher
        else command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A session of its own, without a terminal to ask at: what git starts (ssh, helpers) ends with it.
        start_new_session=True,
        preexec_fn=None if launcher else _follow_parent(),
    ) as process:
        complaint = bytearray()
        descriptor = os.pidfd_open(process.pid)
        try:
            _exchange_data(process, descriptor, stdin, output, complaint, until, stop)
        finally:
            _end_group(process, descriptor)
            os.close(descriptor)
        return ChildResult(process.returncode, bytes(complaint))


def _exchange_data(
    process: subprocess.Popen[bytes],
    descriptor: int,
    stdin: bytes,
    output: Output,
    complaint: bytearray,
    until: float,
    stop: threading.Event,
) -> None:
    """Until the process has ended and its pipes are empty.

    A pipe may stay open for longer: what left the session (a shared ssh connection) may have inherited it.
    """
    feeder = cast("IO[bytes]", process.stdin)
    takers: dict[int, Output] = {
        cast("IO[bytes]", process.stdout).fileno(): output,
        cast("IO[bytes]", process.stderr).fileno(): _first_bytes(complaint),
    }
    unsent = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        for pipe in (*takers, feeder.fileno()):
            os.set_blocking(pipe, False)
        for pipe in (*takers, descriptor):
            selector.register(pipe, selectors.EVENT_READ)
        selector.register(feeder, selectors.EVENT_WRITE)
        ended = False
        while not ended:
            if stop.is_set():
                raise Stopped
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            ready = {key.fd for key, _ in selector.select(min(left, SLICE_SECONDS))}
            if not feeder.closed and feeder.fileno() in ready:
                unsent = _write_some(feeder.fileno(), unsent)
                if not unsent:
                    selector.unregister(feeder)
                    feeder.close()
            # What has ended prints no more: then what is left in the pipes is taken.
            ended = descriptor in ready
            for pipe in [pipe for pipe in takers if ended or pipe in ready]:
                if _read_some(pipe, takers[pipe], PIPE_CHUNKS if ended else 1):
                    selector.unregister(pipe)
                    del takers[pipe]


def _first_bytes(kept: bytearray) -> Output:
    return lambda data: kept.extend(data[: MOST_COMPLAINT_BYTES - len(kept)])


def _write_some(pipe: int, unsent: memoryview) -> memoryview:
    """What is left to send; nothing where nobody reads it."""
    try:
        return unsent[os.write(pipe, unsent[:CHUNK]) :]
    except BrokenPipeError:
        return unsent[:0]
    except BlockingIOError:
        return unsent


def _read_some(pipe: int, take: Output, chunks: int) -> bool:
    """Read so many chunks, if they are there; True at the end of the pipe."""
    for _ in range(chunks):
        try:
            data = os.read(pipe, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            return True
        take(data)
    return False


def _end_group(process: subprocess.Popen[bytes], descriptor: int) -> None:
    """End what is left of the group, whose number stays taken until the process is waited for."""
    with suppress(ProcessLookupError, PermissionError):
        if not _has_ended(descriptor, 0):
            os.killpg(process.pid, signal.SIGTERM)
            _has_ended(descriptor, GRACE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _has_ended(descriptor: int, patience: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(patience))


@functools.cache
def _tying_launcher() -> tuple[str, ...]:
    """What starts a command that ends with us, followed by our number and the command; empty without setpriv.

    A process that has to do something before it becomes the command is copied from this one first, page
    table by page table: with scipy and Django loaded that takes longer than most that git is asked.
    """
    setpriv, shell = shutil.which("setpriv", path=os.defpath), shutil.which("sh", path=os.defpath)
    if setpriv is None or shell is None:
        return ()
    tie = (setpriv, "--pdeathsig", "TERM", "--")
    # That of busybox knows no such option.
    known = subprocess.run(
        [*tie, shell, "-c", ":"], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return (*tie, shell, "-c", 'test "$PPID" = "$0" && exec "$@"') if known.returncode == 0 else ()


def _find_program(name: str, environment: Mapping[str, str]) -> str:
    """The file of a program; OSError where there is none, as when it is started without a shell."""
    found = shutil.which(name, path=environment.get("PATH", os.defpath))
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found


def _follow_parent() -> Callable[[], None]:
    """Runs in the child, before it becomes the command: what outlives us would hold or spoil the mirror."""
    parent = os.getpid()

    def follow() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return follow
