"""Python processes that have PyTorch imported when they begin, forked where a test would start new ones.

To import torch takes two seconds of a processor, its compiler three more, and most scripts that tests start
run for a tenth of that. One process imports it once, computes nothing and starts no thread; each process that
a test asks for is forked from it and begins as a new one would: with its own arguments, folder, variables,
files and path. It is a child of the process that asked for it, and what it starts of this Python in turn is
forked too, but for what a measured script starts.

Another one has imported the harness alone, for what is measured without PyTorch.

Not for what depends on a new interpreter: seeds of hashes, imports, the collector's state, variables that
libraries read when they are loaded.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import inspect
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import paceline
from paceline.measured import ending

THREADS = "OMP_NUM_THREADS"
# With these hashes the prepared process begins, as measured ones do; with others one is started as ever.
HASHES, HASH_SEED = "PYTHONHASHSEED", "0"
# A measured script starts its own processes as it does anywhere else.
MEASURED, MEASURED_FILE = "paceline.measured.child", "/paceline/measured/child.py"
# What the harness imports, in its own process and in the measured one.
PRELOADED = (
    "paceline.__main__",
    MEASURED,
    "paceline.measured.rank_launcher",
    "paceline.watching.calibration",
)
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
ADOPT_ORPHANS = 36  # prctl's PR_SET_CHILD_SUBREAPER

StartedPopen = subprocess.Popen
execute_child = StartedPopen._execute_child  # type: ignore[attr-defined]


class PreparedPopen(StartedPopen):  # type: ignore[type-arg]
    """A child that is forked where its command starts this Python, with torch; started as ever otherwise."""

    with_torch = True

    def _execute_child(self, *given: Any) -> None:
        told = inspect.signature(execute_child).bind(self, *given).arguments
        begin = read_command(told["args"], told["executable"] or told["args"][0])
        if sys.platform != "linux":
            begin = None
        variables = dict(os.environ if told["env"] is None else told["env"])
        is_other = variables.get(HASHES, HASH_SEED) != HASH_SEED or (prepared.path and has_threads())
        if begin is None or is_other or told["shell"] or told["preexec_fn"] or told["pass_fds"]:
            execute_child(self, *given)
            return
        sys.audit("subprocess.Popen", told["args"][0], told["args"], told["cwd"], told["env"])
        start = {
            "begin": begin,
            "command": [os.fspath(word) for word in told["args"]],
            "folder": os.fspath(told["cwd"] or Path.cwd()),
            "variables": variables,
            "own_session": told["start_new_session"],
        }
        wanted = (told["p2cread"], told["c2pwrite"], told["errwrite"])
        files = [number if number != -1 else standard for standard, number in enumerate(wanted)]
        if prepared.path:
            self.pid = fork_here(start, files)
        else:
            self.pid = preparing_process(self.with_torch).fork(start, files)
        self._child_created = True
        self._close_pipe_fds(*(told[end] for end in PIPES))  # type: ignore[attr-defined]


class PreparedWithoutTorch(PreparedPopen):
    """What has imported the harness alone."""

    with_torch = False


def read_command(command: object, executable: object) -> list[Any] | None:
    """How such a command of this Python begins: its options, `-c`, `-m` or a script, and the arguments."""
    if not isinstance(command, list | tuple) or os.fspath(executable) != sys.executable:
        return None
    words = [os.fspath(word) for word in command[1:]]
    options = []
    while words and words[0] in ("-P", "-u", "-B"):
        options.append(words.pop(0))
    if not words or (words[0].startswith("-") and words[0] not in ("-c", "-m")):
        return None
    kind = words.pop(0) if words[0].startswith("-") else "script"
    return [options, kind, *words]


def run_prepared(
    command: Sequence[str | Path], *, with_torch: bool = True, **options: Any
) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` with text, of a prepared process."""
    with prepared_starts(with_torch=with_torch):
        return subprocess.run([str(word) for word in command], text=True, **options)


@contextmanager
def prepared_starts(*, with_torch: bool = True) -> Iterator[None]:
    """What `subprocess` starts of this Python meanwhile is prepared."""
    subprocess.Popen = PreparedPopen if with_torch else PreparedWithoutTorch  # type: ignore[misc]
    try:
        yield
    finally:
        subprocess.Popen = StartedPopen  # type: ignore[misc]


# The process that has imported torch


class PreparingProcess:
    """It forks whatever it is asked for, and ends with this process, which holds its socket's other end."""

    def __init__(self, *, with_torch: bool) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for size in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            self.socket.setsockopt(socket.SOL_SOCKET, size, 2**20)
        harness = str(Path(paceline.__file__).parents[1])
        root = str(Path(__file__).parents[1])
        # None of what it loads may start a thread: none would be there in what is forked.
        alone = dict.fromkeys((THREADS, "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        variables = {**os.environ, **alone, HASHES: HASH_SEED}
        variables.pop("PYTHONPATH", None)
        code = f"import sys; sys.path[:0] = [{root!r}, {harness!r}]\n"
        code += "from tests import prepared_python\n"
        code += f"prepared_python.serve_forks({theirs.fileno()}, {with_torch})"
        command = [sys.executable, "-P", "-c", code]
        self.process = StartedPopen(command, env=variables, pass_fds=[theirs.fileno()])
        theirs.close()

    def fork(self, start: Mapping[str, Any], files: Sequence[int]) -> int:
        """Fork a child of this process, which becomes the parent of the orphan that it is at first."""
        control = ctypes.CDLL(None).prctl
        control(ADOPT_ORPHANS, 1)
        try:
            socket.send_fds(self.socket, [json.dumps(start).encode()], files)
            return int(self.socket.recv(32))
        finally:
            control(ADOPT_ORPHANS, 0)


@functools.cache
def preparing_process(with_torch: bool) -> PreparingProcess:
    return PreparingProcess(with_torch=with_torch)


def serve_forks(descriptor: int, with_torch: bool) -> None:
    """Import torch, or the harness alone, and fork what is asked for, until nobody can ask any more."""
    begun = list(sys.path[2:])
    for name in (*(["torch", "torch._dynamo"] if with_torch else []), *PRELOADED):
        __import__(name)
    sys.path[:] = begun
    assert not has_threads()
    gc.collect()
    gc.freeze()
    prepared.path = begun
    asked = socket.socket(fileno=descriptor)
    while True:
        told, files, _, _ = socket.recv_fds(asked, 2**20, 3)
        if not told:
            return
        ours, theirs = os.pipe()
        between = os.fork()
        if between:
            os.waitpid(between, 0)
            asked.send(os.read(ours, 32))
            for end in (ours, theirs, *files):
                os.close(end)
            continue
        parent = os.getpid()
        child = os.fork()
        if child:
            os.write(theirs, str(child).encode())
            os._exit(0)
        # Until the one between has ended, it is the parent.
        while os.getppid() == parent:
            time.sleep(0.0002)
        run_as_new_process(json.loads(told), files)


class Prepared:
    """Where a process that was forked from the prepared one looks for modules; nothing in any other."""

    path: list[str] | None = None


prepared = Prepared()


def has_threads() -> bool:
    """Threads of libraries too: none of them would be there in what is forked."""
    return len(list(Path("/proc/self/task").iterdir())) > 1


def fork_here(start: Mapping[str, Any], files: Sequence[int]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        gc.freeze()
        # What lies in folders of its parent's is its parent's to remove.
        for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
            finalizer.atexit = False
        run_as_new_process(start, files)
    return child


# What is forked


def run_as_new_process(start: Mapping[str, Any], files: Sequence[int]) -> NoReturn:
    """Be a new process of Python that runs such a command; never returns."""
    try:
        if start["own_session"]:
            os.setsid()
        restore_signals()
        take_files(files)
        os.chdir(start["folder"])
        os.environ.clear()
        os.environ.update(start["variables"])
        options, kind, *words = start["begin"]
        open_standard_files(unbuffered="-u" in options or bool(os.environ.get("PYTHONUNBUFFERED")))
        sys.orig_argv = list(start["command"])
        sys.excepthook = sys.__excepthook__
        seed_and_limit()
        is_measured = words[0] == MEASURED or words[0].endswith(MEASURED_FILE)
        subprocess.Popen = StartedPopen if is_measured else PreparedPopen  # type: ignore[misc]
        sys.path[:] = [
            *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)),
            *(prepared.path or ()),
        ]
        status = end_with(functools.partial(run_main, kind, words, safe="-P" in options))
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        ending.flush_files()
    except BaseException:  # noqa: BLE001  # nothing may go on behind it
        traceback.print_exc()
        status = 1
    os._exit(status)


def restore_signals() -> None:
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def take_files(files: Sequence[int]) -> None:
    """The standard files, and none of those that the parent had open."""
    moved = [os.dup(number) for number in files]
    for standard, number in enumerate(moved):
        os.dup2(number, standard)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def open_standard_files(*, unbuffered: bool) -> None:
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(os.fdopen(0, "rb", closefd=False))
    for standard, name in ((1, "stdout"), (2, "stderr")):
        raw = os.fdopen(standard, "wb", buffering=0 if unbuffered else -1, closefd=False)
        errors = "backslashreplace" if name == "stderr" else "strict"
        wrapped = io.TextIOWrapper(
            raw,  # type: ignore[arg-type]
            encoding="utf-8",
            errors=errors,
            line_buffering=standard == 2,
            write_through=unbuffered,
        )
        setattr(sys, name, wrapped)
        setattr(sys, f"__{name}__", wrapped)


def seed_and_limit() -> None:
    if "torch" not in sys.modules:
        return
    import numpy as np
    import torch

    np.random.seed()  # as it is in a new process
    threads = os.environ.get(THREADS)
    if threads and int(threads) != torch.get_num_threads():
        torch.set_num_threads(int(threads))


def run_main(kind: str, words: Sequence[str], *, safe: bool) -> None:
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    first, *arguments = words
    sys.argv = [first, *arguments]
    if kind == "-m":
        if not safe:
            sys.path.insert(0, str(Path.cwd()))
        # It may have been imported: it runs anew, as __main__.
        for name in (first, f"{first}.__main__"):
            if not hasattr(sys.modules.get(name), "__path__"):
                sys.modules.pop(name, None)
        runpy._run_module_as_main(first)  # type: ignore[attr-defined]
    elif kind == "-c":
        sys.argv[0] = "-c"
        if not safe:
            sys.path.insert(0, "")
        exec(compile(first, "<string>", "exec", dont_inherit=True), vars(main))  # noqa: S102
    else:
        script = Path(first)
        if not safe:
            sys.path.insert(0, str(script.resolve().parent))
        main.__file__ = first
        exec(compile(script.read_bytes(), first, "exec", dont_inherit=True), vars(main))  # noqa: S102


def end_with(work: Any) -> int:
    """Do it; the status that Python would end with."""
    try:
        work()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
        return 1
    except KeyboardInterrupt:
        ending.flush_files()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException as error:  # noqa: BLE001  # the end of a process
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0
