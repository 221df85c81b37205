"""`manage.py up` as a person runs it: real processes, from the first line to the last."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command

from dashboard.management.commands.up import StopRequested, recorded_stop_signals
from dashboard.services import last_port, service_addresses
from dashboard.services.processes import CHECKOUT
from tests.services.programs import becomes_true
from tests.services_plugin import remove_home

PARTS = ("postgres", "redis", "web", "service", "fetch", "sweep", "beat", "host")


class Up:
    """A started `manage.py up`, whose output goes to a file."""

    def __init__(self, home: Path, port: int) -> None:
        self.home = home
        self.output = home.with_name(f"output-{time.monotonic_ns()}")
        given = {"DATABASE_URL", "BROKER_URL"}
        environment = {name: value for name, value in os.environ.items() if name not in given}
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--no-first-project"],
            cwd=CHECKOUT,
            env={**environment, "PACELINE_HOME": str(home), "PORT": str(port), "PYTHONUNBUFFERED": "1"},
            stdout=self.output.open("w"),
            stderr=subprocess.STDOUT,
        )

    @property
    def text(self) -> str:
        return self.output.read_text()

    def wait_until_up(self) -> Up:
        assert becomes_true(lambda: "Ctrl-C ends it" in self.text or self.process.poll() is not None, 120)
        assert self.process.poll() is None, self.text
        assert becomes_true(lambda: (self.home / "lock").read_text().endswith(" ready\n"), 120), self.text
        return self

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    yield home
    for pid in processes_of(home):
        # Only after a failure: each test ends what it has started.
        os.kill(pid, signal.SIGKILL)
    assert becomes_true(lambda: not processes_of(home))
    remove_home(home)


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def processes_of(home: Path) -> dict[int, str]:
    """Every process that works for this home: by its environment, or by a path in its command."""
    commands: dict[int, str] = {}
    marks = (
        f"PACELINE_HOME={home}".encode(),
        f"PACELINE_HOST_HOME={home}".encode(),
        str(service_addresses(home).socket_folder).encode(),
    )
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            if any(mark in command + (folder / "environ").read_bytes() for mark in marks):
                commands[int(folder.name)] = command.replace(b"\0", b" ").decode()
        except OSError:
            continue
    return commands


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        return False


def read_accounts(home: Path) -> list[tuple[str, str]]:
    with psycopg.connect(service_addresses(home).database_url) as connection:
        return connection.execute("SELECT username, password FROM auth_user").fetchall()


def test_from_the_first_start_to_the_second(home, port, settings, capsys):
    up = Up(home, port).wait_until_up()
    assert f"Paceline answers at http://127.0.0.1:{port}\n" in up.text
    (password,) = re.findall(r"Sign in as admin with the password (\S+)", up.text)
    ((name, password_hash),) = read_accounts(home)
    assert name == "admin"
    assert password not in password_hash
    assert becomes_true(lambda: is_ready(port), 60, pause=0.5), up.text
    assert last_port(home) == port
    settings.PACELINE_HOME = home
    with pytest.raises(SystemExit, match="1"):
        call_command("up")
    assert capsys.readouterr().err == f"Paceline runs already in {home} (process {up.process.pid}).\n"
    assert up.process.poll() is None
    check_that_nothing_outlives_kill_9(home, up)

    again = Up(home, port).wait_until_up()
    assert "password" not in again.text
    assert read_accounts(home) == [(name, password_hash)]
    assert again.end() == 0
    assert not processes_of(home)
    assert again.text.endswith("Stopping.\nEverything has ended; nothing is lost.\n")


def check_that_nothing_outlives_kill_9(home: Path, up: Up) -> None:
    assert len(processes_of(home)) > len(PARTS)
    up.end(signal.SIGKILL)
    assert becomes_true(lambda: not processes_of(home), 60), processes_of(home)


def test_a_busy_port_is_refused(home, settings, capsys):
    settings.PACELINE_HOME = home
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings.PACELINE_HOST, settings.PORT = taken.getsockname()
        with pytest.raises(SystemExit, match="1"):
            call_command("up")
    assert re.fullmatch(rf"Port {settings.PORT} on 127.0.0.1 can't be used .*\n", capsys.readouterr().err)


def test_an_end_in_the_middle_of_the_start_leaves_nothing(home, port):
    up = Up(home, port)
    assert becomes_true(lambda: "Starting the database" in up.text, 60)
    time.sleep(0.5)
    assert up.end(signal.SIGTERM) == 0
    assert becomes_true(lambda: not processes_of(home))


def test_a_signal_is_kept_where_what_is_raised_would_be_dropped():
    class Finalized:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with recorded_stop_signals() as stop:
        stop.check()
        Finalized()
        with pytest.raises(StopRequested):
            stop.check()
    assert signal.getsignal(signal.SIGTERM) == before
