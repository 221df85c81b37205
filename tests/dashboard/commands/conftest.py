from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import execute_from_command_line
from django.db import connection

from dashboard import services
from dashboard.management.commands import experiment, trigger

ROOT = Path(__file__).resolve().parents[3]
ServeBy = Callable[[Callable[[], object]], None]
Manage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def manage(site_environment: dict[str, str]) -> Manage:
    """`manage.py` as a person calls it, on this test's database."""

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**site_environment, "COLUMNS": "100", **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return call


@pytest.fixture
def manage_here(
    transactional_db: None,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    settings: LazySettings,
) -> Manage:
    """As `manage`, in this process: the same arguments, parsers, outputs and status, without a start."""
    monkeypatch.setenv("COLUMNS", "100")
    # Else handlers of all later tests would write to this one's stderr, which is closed by then.
    settings.LOGGING_CONFIG = None

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        status: object = 0
        try:
            execute_from_command_line(["manage.py", *arguments])
        except SystemExit as end:
            status = end.code or 0
        printed = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, int(str(status)), printed.out, printed.err)

    return call


@contextmanager
def working_thread(work: Callable[[], object]) -> Iterator[None]:
    """A thread that does this work again and again, as a worker would, while the block lasts."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(0.05):
            work()
        connection.close()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture
def serve_by(monkeypatch: pytest.MonkeyPatch) -> ServeBy:
    """The services that a command starts do this work, and no other; the command looks often."""
    for command in (experiment, trigger):
        monkeypatch.setattr(command, "POLL_SECONDS", 0.05)

    def serve(work: Callable[[], object]) -> None:
        monkeypatch.setattr(services, "running_services", lambda *_: working_thread(work))

    return serve
