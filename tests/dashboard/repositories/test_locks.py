from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dashboard.repositories import Stopped, hold_lock, try_lock


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
