"""Whole trees: started, limited, and ended with everything that they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from dashboard.repositories import try_lock
from tests.workers.waiting import wait_until
from workers.host.processes import process_tree, reaper
from workers.host.processes.process_tree import Limits, ProcessResult, ProcessSpec

REPOSITORY = Path(__file__).resolve().parents[3]
# A child that leaves the session and a grandchild whose parent has gone: both must be found.
FAMILY = """
import os, subprocess, sys, time
sleep = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
children = [subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)]
middle = "import subprocess; print(subprocess.Popen(%r, start_new_session=True, stdout=-3).pid)" % sleep
orphan = subprocess.check_output([sys.executable, "-I", "-S", "-c", middle], text=True)
print(os.getpid(), *(child.pid for child in children), orphan, flush=True)
"""

DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"


def python_spec(code: str, folder: Path, **more: object) -> ProcessSpec:
    command = [sys.executable, "-I", "-S", "-c", code]
    return ProcessSpec(command, folder, {"PATH": "/usr/bin:/bin"}, 60, grace=0.5, **more)  # type: ignore[arg-type]


def run_tree(what: ProcessSpec, stop: threading.Event | None = None) -> tuple[ProcessResult, str]:
    printed = bytearray()
    return process_tree.run_process_tree(what, printed.extend, stop or threading.Event()), printed.decode()


def run_tree_over_its_limit(what: ProcessSpec) -> tuple[ProcessResult, str]:
    """Its time limit is over once it has printed, however slow this machine is."""
    printed = bytearray()
    clock = SimpleNamespace(monotonic=lambda: what.time_limit + 1 if printed else 0.0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(process_tree, "time", clock)
        ended = process_tree.run_process_tree(what, printed.extend, threading.Event())
    return ended, printed.decode()


def alive_processes(printed: str) -> list[int]:
    assert printed.split(), "the family has not printed its process ids"
    return [pid for pid in map(int, printed.split()) if psutil.pid_exists(pid)]


@pytest.mark.parametrize("status", [0, 3])
def test_the_exit_status_is_the_roots(tmp_path: Path, status: int) -> None:
    assert run_tree(python_spec(f"import sys; sys.exit({status})", tmp_path))[0] == ProcessResult(status)


def test_a_signal_is_told_as_a_shell_tells_it(tmp_path: Path) -> None:
    assert run_tree(python_spec("import os; os.kill(os.getpid(), 9)", tmp_path))[0].status == 128 + 9


def test_output_of_both_streams_is_taken_in_order(tmp_path: Path) -> None:
    assert run_tree(python_spec("import os; os.write(1, b'a'); os.write(2, b'b')", tmp_path))[1] == "ab"


def test_only_the_given_environment_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql:///secret")
    printed = run_tree(python_spec("import os; print(sorted(os.environ))", tmp_path))[1]
    assert "DATABASE_URL" not in printed
    assert "PATH" in printed


def test_a_command_that_is_missing_is_named(tmp_path: Path) -> None:
    ended, printed = run_tree(ProcessSpec(["/no/such/python"], tmp_path, {}, 30))
    assert ended.status == 127
    assert "/no/such/python could not be started: No such file or directory" in printed


def test_what_is_left_behind_is_ended(tmp_path: Path) -> None:
    ended, printed = run_tree(python_spec(FAMILY, tmp_path))
    family, _, notice = printed.partition("[paceline]")
    assert ended == ProcessResult(0)
    assert alive_processes(family) == []
    assert "left behind" in notice


def test_the_time_limit_ends_the_whole_tree(tmp_path: Path) -> None:
    ended, printed = run_tree_over_its_limit(python_spec(FAMILY + "time.sleep(600)", tmp_path))
    assert ended.timed_out
    assert alive_processes(printed) == []


def test_a_tree_that_ignores_the_polite_signal_is_killed(tmp_path: Path) -> None:
    ended, _ = run_tree_over_its_limit(python_spec(DEAF, tmp_path))
    assert ended == ProcessResult(128 + 9, timed_out=True)


def test_the_stop_ends_the_whole_tree(tmp_path: Path) -> None:
    stop, printed = threading.Event(), bytearray()

    def output(data: bytes) -> None:
        printed.extend(data)
        stop.set()

    ended = process_tree.run_process_tree(python_spec(FAMILY + "time.sleep(600)", tmp_path), output, stop)
    assert ended.stopped
    assert alive_processes(printed.decode()) == []


def test_a_process_that_cannot_be_signalled_protects_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    signalled = []

    def refuse(process: int, _number: int) -> None:
        signalled.append(process)
        raise PermissionError

    monkeypatch.setattr(reaper, "list_descendants", lambda _root: [7, 8])
    monkeypatch.setattr(reaper.os, "kill", refuse)
    tree = object.__new__(reaper.ProcessReaper)
    assert tree.signal_all(signal.SIGTERM) == len(signalled) == 2


def test_a_core_file_is_never_written_and_files_are_limited(tmp_path: Path) -> None:
    code = "import resource as r; print(r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_NOFILE))"
    assert run_tree(python_spec(code, tmp_path, limits=Limits(open_files=64)))[1].strip() == "(0, 0) (64, 64)"


def test_memory_is_limited_where_an_operator_wants_it(tmp_path: Path) -> None:
    hungry = python_spec("bytearray(10**9)", tmp_path, limits=Limits(data=200_000_000))
    ended, printed = run_tree(hungry)
    assert ended.status == 1
    assert "MemoryError" in printed


def test_where_memory_runs_out_the_tree_is_ended_first(tmp_path: Path) -> None:
    assert (
        run_tree(python_spec("print(open('/proc/self/oom_score_adj').read())", tmp_path))[1].strip() == "500"
    )


def test_a_tree_that_prints_too_much_is_ended(tmp_path: Path) -> None:
    endless = "import os\nwhile True: os.write(1, b'x' * 4096)"
    ended, printed = run_tree(python_spec(endless, tmp_path, output_limit=100_000))
    assert (ended.exceeded, ended.timed_out) == ("output", False)
    assert len(printed) <= 100_000


def test_a_tree_that_fills_its_folder_is_ended(tmp_path: Path) -> None:
    code = "import time; open('large', 'wb').write(bytes(10**6)); time.sleep(600)"
    limit = process_tree.FolderLimit(tmp_path, 500_000, 100)
    assert run_tree(python_spec(code, tmp_path, folder_limit=limit))[0].exceeded == "folder"


def start_launcher(lock: Path, code: str) -> subprocess.Popen[bytes]:
    """A process of its own that runs the code as a tree and has printed its first line."""
    command = [sys.executable, "-m", "tests.workers.host.launcher", str(lock), code]
    started = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE)
    assert started.stdout
    assert started.stdout.readline()
    return started


@pytest.mark.parametrize("victim", ["worker", "reaper"])
def test_nothing_outlives_a_killed_worker_or_reaper(tmp_path: Path, victim: str) -> None:
    worker = start_launcher(tmp_path / "lock", "import time; print(1, flush=True); time.sleep(600)")
    tree = [child.pid for child in psutil.Process(worker.pid).children(recursive=True)]
    assert len(tree) == 2
    os.kill(worker.pid if victim == "worker" else tree[0], signal.SIGKILL)
    worker.communicate()
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in tree))


def test_the_lock_is_held_until_the_tree_of_a_killed_worker_is_gone(tmp_path: Path) -> None:
    worker = start_launcher(tmp_path / "lock", DEAF)
    worker.kill()
    killed_at = time.monotonic()
    worker.communicate()
    wait_until(lambda: is_free(tmp_path / "lock"))
    assert time.monotonic() - killed_at > 0.9


def is_free(path: Path) -> bool:
    with try_lock(path) as held:
        return held is not None
