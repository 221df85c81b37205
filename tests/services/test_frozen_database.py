"""A PostgreSQL that stands still, as one does whose machine swaps, is paused, or is gone from the network."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from django.db import InterfaceError, OperationalError
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait
from pytest_django.plugin import DjangoDbBlocker

from dashboard.environment_variables import database_settings
from dashboard.postgresql import database_waits
from dashboard.postgresql.backend.base import DatabaseWrapper, LimitedConnection
from dashboard.postgresql.database_waits import MOST_PATIENT, WAITS, DatabaseSilent, DatabaseWaits
from dashboard.services import embedded, service_addresses
from dashboard.services.processes import CHECKOUT, Site, process_commands
from dashboard.services.supervisor import Supervisor
from tests.services.programs import becomes_true
from tests.services_plugin import remove_home

REQUESTS = 6


class Server:
    """A PostgreSQL of its own, without tables."""

    def __init__(self, home: Path, supervisor: Supervisor) -> None:
        self.home = home
        self._main = psutil.Process(supervisor.pid("postgres"))
        self.url = service_addresses(home).database_url

    def wrapper(self) -> DatabaseWrapper:
        entry = {**database_settings(self.url), "TIME_ZONE": None, "AUTOCOMMIT": True}
        return DatabaseWrapper(entry, alias="frozen")

    def connect(self) -> DatabaseWrapper:
        connection = self.wrapper()
        connection.inc_thread_sharing()
        run_statement(connection)
        return connection

    @contextmanager
    def frozen(self) -> Iterator[None]:
        stopped = [self._main]
        self._main.suspend()
        try:
            # Nothing begins there any more, though the process of a closed connection may just end.
            for process in self._main.children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    process.suspend()
                    stopped.append(process)
            yield
        finally:
            for process in stopped:
                with suppress(psutil.NoSuchProcess):
                    process.resume()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("frozen") / "home"
    supervisor = Supervisor(home / "logs")
    try:
        embedded.start_embedded(supervisor, home, durable=False)
        yield Server(home, supervisor)
    finally:
        supervisor.stop()
        remove_home(home)


@pytest.fixture(autouse=True)
def unblocked(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """What is asked here is another server than the one of the tests."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def connection(server: Server) -> Iterator[DatabaseWrapper]:
    connection = server.connect()
    yield connection
    connection.close()


def run_statement(connection: DatabaseWrapper, statement: str = "SELECT 1") -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_a_statement_is_given_up_and_the_next_one_answered(
    server: Server, connection: DatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WAITS, "limit", 0.3)
    with server.frozen(), pytest.raises(OperationalError) as told:
        run_statement(connection)
    assert isinstance(told.value.__cause__, DatabaseSilent)
    connection.close_if_unusable_or_obsolete()
    run_statement(connection)


def test_a_commit_is_given_up_too(
    server: Server, connection: DatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WAITS, "limit", 0.3)
    connection.set_autocommit(False)
    run_statement(connection)
    with server.frozen(), pytest.raises(OperationalError):
        connection.commit()
    with pytest.raises((OperationalError, InterfaceError)):
        run_statement(connection)


def test_a_connection_is_given_up(server: Server) -> None:
    connection = server.connect()
    connection.close()
    connection.settings_dict["OPTIONS"] |= {"connect_timeout": "2"}
    with server.frozen(), pytest.raises(OperationalError, match="timeout expired"):
        run_statement(connection)
    run_statement(connection)
    connection.close()


@pytest.mark.parametrize("silence_seconds", [5.0, 0.1])
def test_a_slow_statement_ends_at_the_server_too(
    server: Server, connection: DatabaseWrapper, monkeypatch: pytest.MonkeyPatch, silence_seconds: float
) -> None:
    """Also where nobody else has asked anything meanwhile: by then the server counts as silent."""
    other = server.connect()
    monkeypatch.setattr(database_waits, "SILENCE_SECONDS", silence_seconds)
    monkeypatch.setattr(WAITS, "limit", 0.3)
    with pytest.raises(OperationalError):
        run_statement(connection, "SELECT pg_sleep(600)")

    def running() -> int:
        with other.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'")
            return int(cursor.fetchone()[0])

    assert becomes_true(lambda: running() == 0, 60)
    other.close()


def test_without_a_limit_a_statement_goes_on_with_the_server(
    server: Server, connection: DatabaseWrapper
) -> None:
    asked = threading.Event()

    def run_in_thread() -> None:
        asked.set()
        run_statement(connection)

    with ThreadPoolExecutor(1) as threads:
        with server.frozen():
            answer = threads.submit(run_in_thread)
            assert asked.wait(60)
            assert not wait([answer], 1.0).done
        answer.result(60)


def test_a_statement_that_sends_rows_is_not_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WAITS, "limit", 5.0)
    now = 0.0
    monkeypatch.setattr(database_waits.time, "monotonic", lambda: now)
    with WAITS.counted() as watched:
        steps = WAITS.watch(await_without_end(), watched)
        next(steps)
        for now in (4.0, 8.0, 12.0):  # noqa: B007 - the clock reads it
            steps.send(Ready.R)
        now = 18.0
        with pytest.raises(DatabaseSilent):
            steps.send(Ready.NONE)


def await_without_end() -> PQGen[None]:
    while True:
        yield Wait.R


def test_of_many_that_wait_some_are_patient_and_the_others_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WAITS, "limit", 600.0)
    monkeypatch.setattr(database_waits, "SILENCE_SECONDS", 0.2)
    cancelled: list[object] = []
    monkeypatch.setattr(LimitedConnection, "cancel_safe", lambda *_, **__: cancelled.append(True))
    connections = [server.connect() for _ in range(REQUESTS)]
    with ThreadPoolExecutor(REQUESTS) as threads:
        with server.frozen():
            answers = [threads.submit(run_statement, connection) for connection in connections]
            refused = wait_for(answers, REQUESTS - MOST_PATIENT)
            assert {type(answer.exception().__cause__) for answer in refused} == {DatabaseSilent}
            assert not cancelled, "their threads are needed"
            # By now it is known to be silent: nobody else waits at all.
            with pytest.raises(OperationalError) as told:
                server.wrapper().ensure_connection()
            assert isinstance(told.value.__cause__, DatabaseSilent)
        for answer in set(answers) - refused:
            answer.result(60)
    for connection in connections:
        connection.close()


def test_what_asks_the_server_nothing_is_no_answer_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As to begin a transaction, or to end one of a connection that was given up."""
    waits, now = DatabaseWaits(), 0.0
    monkeypatch.setattr(database_waits.time, "monotonic", lambda: now)
    with ExitStack() as stack:
        for _ in range(MOST_PATIENT - 1):
            stack.enter_context(waits.counted())
        now = 2 * database_waits.SILENCE_SECONDS
        with waits.counted():
            pass
        stack.enter_context(waits.counted())
        with pytest.raises(DatabaseSilent), waits.counted():
            pass


def test_a_server_that_is_asked_nothing_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, now = DatabaseWaits(), 0.0
    monkeypatch.setattr(database_waits.time, "monotonic", lambda: now)
    with waits.counted():
        pass
    now = 2 * database_waits.SILENCE_SECONDS
    with ExitStack() as stack:
        waiting = [stack.enter_context(waits.counted()) for _ in range(MOST_PATIENT + 1)]
        assert {wait.is_answered for wait in waiting} == {None}, "none was refused"


def wait_for(answers: list[Future[None]], count: int) -> set[Future[None]]:
    """The first so many; no more of them."""
    done: set[Future[None]] = set()
    while len(done) < count:
        found = wait(set(answers) - done, 60, FIRST_COMPLETED).done
        assert found
        done |= found
    assert not wait(set(answers) - done, 1.0, FIRST_COMPLETED).done
    return done


@contextmanager
def running_web_server(server: Server, wait_seconds: int) -> Iterator[int]:
    """As the site's own, but for one process; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    site = Site(home=server.home, machine="here", pool="default", web_port=port)
    command = process_commands(site)["web"]
    command[command.index("--workers") + 1] = "1"
    assert int(command[command.index("--threads") + 1]) == MOST_PATIENT + 1
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=CHECKOUT,
        env={
            **os.environ,
            **site.environment,
            "DATABASE_URL": server.url,
            "PACELINE_DATABASE_WAIT_SECONDS": str(wait_seconds),
        },
    )
    try:
        assert becomes_true(lambda: is_listening(port), 60)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def get_page(port: int, address: str) -> tuple[int, str | None]:
    """Status and Retry-After."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", address)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("Retry-After")
    finally:
        connection.close()


def test_the_web_server_says_that_it_lives_while_requests_wait(server: Server) -> None:
    with running_web_server(server, 600) as port, ThreadPoolExecutor(REQUESTS) as threads:
        # Without tables a page is a failure, told by a database that answers.
        assert get_page(port, "/")[0] == 500
        with server.frozen():
            pages = [threads.submit(get_page, port, f"/search/?q={number}") for number in range(REQUESTS)]
            refused = wait_for_refusals(pages)
            assert {page.result() for page in refused} == {(503, "10")}
            assert get_page(port, "/healthz") == (200, None)
            assert any(not page.done() for page in pages)
        assert {page.result()[0] for page in set(pages) - refused} == {500}
        assert becomes_true(lambda: get_page(port, "/")[0] == 500, 60)


def wait_for_refusals(pages: list[Future[tuple[int, str | None]]]) -> set[Future[tuple[int, str | None]]]:
    """Those answered while others go on waiting."""
    done: set[Future[tuple[int, str | None]]] = set()
    while found := wait(
        set(pages) - done, 60 if len(done) < REQUESTS - MOST_PATIENT else 1, FIRST_COMPLETED
    ).done:
        done |= found
    return done
