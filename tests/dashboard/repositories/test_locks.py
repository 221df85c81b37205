from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dashboard.repositories import (
    RepositoryBusy,
    Stopped,
    Unreachable,
    hold_lock,
    locate_mirror,
    try_lock,
)
from dashboard.repositories.waiting_threads import waiting_thread


def test_only_one_holds_a_lock(tmp_path: Path) -> None:
    with try_lock(tmp_path / "lock") as first, try_lock(tmp_path / "lock") as second:
        assert first is not None
        assert second is None
    with try_lock(tmp_path / "lock") as third:
        assert third is not None


def test_waiting_for_a_lock_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with try_lock(path), pytest.raises(TimeoutError), hold_lock(path, 0.1, threading.Event()):
        pass


def test_who_waits_for_a_lock_can_be_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with try_lock(tmp_path / "lock"), pytest.raises(Stopped), hold_lock(tmp_path / "lock", 60, stop):
        pass


def test_some_threads_are_left_whatever_repositories_never_answer(tmp_path: Path) -> None:
    mirrors = [locate_mirror(tmp_path, name, f"/nowhere/{name}") for name in ("slow", "slower", "mine")]
    slow, slower, mine = (mirror.folder for mirror in mirrors)
    with waiting_thread(slow), waiting_thread(slow):
        with pytest.raises(RepositoryBusy):
            mirrors[0].fetch(time_limit=1)
        # For which nobody waits.
        with pytest.raises(Unreachable):
            mirrors[0].fetch()
        with waiting_thread(slower), pytest.raises(RepositoryBusy), waiting_thread(mine):
            pass
        with waiting_thread(mine):
            pass
