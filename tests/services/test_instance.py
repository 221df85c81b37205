from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from dashboard.services import ServiceError, embedded, instance, service_addresses
from dashboard.services.instance import AlreadyRunningError, lock_home, running_services
from dashboard.services.processes import CHECKOUT, Site
from dashboard.services.supervisor import Supervisor
from tests.services.programs import becomes_true
from tests.services.tables import copy_tables
from tests.services_plugin import remove_home

# For the tables of the tests' database, which `home` copies: without it none is made where these run alone.
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Path]:
    """Shared, since only its first start has a database to make.

    Its tables are there before: that a start makes them, tests/services/test_up.py says.
    """
    home = tmp_path_factory.mktemp("instance") / "home"
    supervisor = Supervisor(home / "logs")
    embedded.start_embedded(supervisor, home, queue=False, durable=False)
    copy_tables(home)
    supervisor.stop()
    yield home
    remove_home(home)


@pytest.fixture
def site(home: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site without the workers: what is shared here are the services below them."""
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.delenv("BROKER_URL")
    monkeypatch.setattr(instance, "missing_processes", lambda _: [])
    return Site(home=home, machine="gpu-1", pool="default")


def count_tables(site: Site) -> int:
    with psycopg.connect(service_addresses(site.home).database_url) as connection:
        query = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'dashboard_%'"
        return int(connection.execute(query).fetchone()[0])  # type: ignore[index]


def database_answers(site: Site) -> bool:
    try:
        return bool(psycopg.connect(service_addresses(site.home).database_url).close() is None)
    except psycopg.OperationalError:
        return False


def test_a_home_that_cannot_be_written_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sentence = r"^PACELINE_HOME is .*/file, which can't be written: File exists"
    with pytest.raises(ServiceError, match=sentence), lock_home(tmp_path / "file"):
        pass


def test_one_process_runs_the_services_of_a_home(tmp_path):
    with lock_home(tmp_path), pytest.raises(AlreadyRunningError, match=rf"\(process {os.getpid()}\)\.$"):
        lock_home(tmp_path).__enter__()
    with lock_home(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()} starting\n"


def test_a_killed_holder_holds_nothing(tmp_path):
    code = (
        f"import sys, time; sys.path.insert(0, {str(CHECKOUT)!r})\n"
        "from pathlib import Path; from dashboard.services.instance import lock_home\n"
        f"with lock_home(Path({str(tmp_path)!r})): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    holder.kill()
    holder.wait()
    with lock_home(tmp_path):
        assert (tmp_path / "lock").read_text().startswith(str(os.getpid()))


def test_services_end_after_the_block_and_a_second_one_inside_it_uses_them(site):
    second_done = threading.Event()

    def second() -> None:
        with running_services(site, str):
            assert count_tables(site) > 10
            second_done.set()

    with running_services(site, str):
        threading.Thread(target=second).start()
        assert second_done.wait(30)
        assert database_answers(site)
    assert not database_answers(site)


def test_services_wait_for_their_last_user(site):
    printed: list[str] = []
    with running_services(site, str, lambda _, line: printed.append(line)):
        user = (site.home / "users").open("a")
        fcntl.flock(user, fcntl.LOCK_SH)
        still_ran: list[bool] = []

        def leave() -> None:
            becomes_true(lambda: any("Another command still uses" in line for line in printed))
            still_ran.append(database_answers(site))
            user.close()

        leaving = threading.Thread(target=leave)
        leaving.start()
    leaving.join()
    assert still_ran == [True]
    assert not database_answers(site)


def test_a_given_database_that_is_away_is_told(site, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql:///paceline?host=/nowhere&user=paceline")
    with pytest.raises(ServiceError, match=r"^The database at DATABASE_URL can't be reached: .*/nowhere"):
        running_services(site, str).__enter__()


def test_a_given_address_starts_nothing(site, monkeypatch):
    with running_services(site, str):
        monkeypatch.setenv("DATABASE_URL", service_addresses(site.home).database_url)
        monkeypatch.setenv("BROKER_URL", service_addresses(site.home).broker_url)
        other = Site(home=site.home.with_name("other"), machine="gpu-2", pool="default")
        with running_services(other, str):
            assert not (other.home / "services").exists()
