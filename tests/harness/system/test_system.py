"""Processes and processors as /proc shows them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from paceline.system.processes import ancestor_pids, child_pids, list_process_stats, read_process_stat
from paceline.system.processor_ticks import read_machine_ticks, read_processor_ticks

# Each field behind the command is its number in proc_pid_stat(5), but for the state.
FIELDS = " ".join(["S", *map(str, range(4, 53))])
RENAMING = "import ctypes; ctypes.CDLL(None).prctl(15, b'a) R 7 (b', 0, 0, 0); print(flush=True); input()"


@pytest.mark.parametrize("command", ["python", "a (b) c", ") R 1 (", "(sd-pam)", "\xff\n"])
def test_each_field_is_read_behind_any_command(tmp_path: Path, command: str) -> None:
    (tmp_path / "77").mkdir()
    (tmp_path / "77/stat").write_bytes(f"77 ({command}) {FIELDS}\n".encode("latin-1"))
    stat = read_process_stat(77, str(tmp_path))
    assert stat is not None
    assert stat.command == command.encode("latin-1")
    assert (stat.parent, stat.ticks, stat.ticks_with_children) == (4, 14 + 15, 14 + 15 + 16 + 17)
    assert (stat.threads, stat.processor, stat.has_ended) == (20, 39, False)
    assert stat.seconds * os.sysconf("SC_CLK_TCK") == pytest.approx(14 + 15)
    assert stat.started_at * os.sysconf("SC_CLK_TCK") == pytest.approx(22)
    assert stat.resident_bytes == 24 * os.sysconf("SC_PAGE_SIZE")
    assert [(pid, stat.parent) for pid, stat in list_process_stats(str(tmp_path))] == [(77, 4)]


@pytest.mark.parametrize("fields", [0, 1, 2, 13, 36])
def test_a_line_cut_short_tells_nothing(tmp_path: Path, fields: int) -> None:
    (tmp_path / "77").mkdir()
    (tmp_path / "77/stat").write_text(f"77 (python) {' '.join(FIELDS.split()[:fields])}\n")
    assert read_process_stat(77, str(tmp_path)) is None
    assert list(list_process_stats(str(tmp_path))) == []
    assert ancestor_pids(77, str(tmp_path)) == [77]


def test_a_renamed_process_reads_as_psutil_reads_it() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", RENAMING], stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        process.stdout.readline()
        theirs = psutil.Process(process.pid)
        # Until it waits for its input it may be moved to another processor.
        while theirs.status() != psutil.STATUS_SLEEPING:
            time.sleep(0.01)
        stat = read_process_stat(process.pid)
        assert stat is not None
        assert stat.command == b"a) R 7 (b"
        assert (stat.parent, stat.threads, stat.processor) == (os.getpid(), 1, theirs.cpu_num())
        assert psutil.boot_time() + stat.started_at == pytest.approx(theirs.create_time(), abs=1)
        assert process.pid in child_pids(os.getpid())
        assert ancestor_pids(process.pid)[:2] == [process.pid, os.getpid()]
        process.communicate(b"\n")
    assert read_process_stat(process.pid) is None
    assert child_pids(process.pid) == []


def test_a_thread_reads_its_own() -> None:
    stat = read_process_stat("thread-self")
    assert stat is not None
    assert 0 <= stat.processor < (os.cpu_count() or 1)


def test_a_system_without_proc_tells_nothing(tmp_path: Path) -> None:
    none = str(tmp_path / "none")
    assert read_process_stat(1, none) is None
    assert list(list_process_stats(none)) == []
    assert (read_processor_ticks(none), read_machine_ticks(none)) == ({}, None)


def test_processors_and_all_of_them_are_told_apart(tmp_path: Path) -> None:
    rows = ["cpu  5 1 4 20 2 0 0 3 4 0", "cpu0 5 1 4 20 2 0 0 3 4 0", "cpu1 0 0 0 9 0", "intr 7 8", "ctxt 9"]
    (tmp_path / "stat").write_text("\n".join(rows))
    ticks = read_processor_ticks(str(tmp_path))
    assert list(ticks) == ["cpu0", "cpu1"]
    assert (ticks["cpu0"].busy, ticks["cpu0"].passed, ticks["cpu0"].stolen) == (13, 35, 3)
    assert (ticks["cpu1"].busy, ticks["cpu1"].passed, ticks["cpu1"].stolen) == (0, 9, 0)
    assert read_machine_ticks(str(tmp_path)) == ticks["cpu0"]
