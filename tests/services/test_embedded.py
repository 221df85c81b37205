from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import redis

from dashboard.services import ServiceError, binaries, embedded, service_addresses
from dashboard.services.processes import CHECKOUT
from dashboard.services.supervisor import Supervisor
from tests.services.programs import becomes_true, is_alive
from tests.services_plugin import remove_home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    yield home
    remove_home(home)


@contextmanager
def running_embedded(home: Path, *, durable: bool = False) -> Iterator[Supervisor]:
    supervisor = Supervisor(home / "logs")
    try:
        embedded.start_embedded(supervisor, home, durable=durable)
        yield supervisor
    finally:
        supervisor.stop()


@dataclass(frozen=True)
class Made:
    """A home whose database was made where an interrupted initdb had left its draft.

    And what was seen of its services, which hold a table and a key with the name `kept`, and have ended.
    """

    home: Path
    user: str
    socket_folder_mode: int
    # Of each service.
    owners: Mapping[str, int]
    inodes: Mapping[str, set[str]]
    # Of all sockets of TCP on this machine meanwhile.
    tcp_inodes: set[str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    home = tmp_path_factory.mktemp("made") / "home"
    folder, _ = embedded.data_folder(home)
    (folder / "postgres.draft").mkdir(parents=True)
    (folder / "postgres.draft" / "PG_VERSION").write_text("18\n")
    with running_embedded(home) as supervisor:
        pids = {name: supervisor.pid(name) for name in ("postgres", "redis")}
        tables = [Path(f"/proc/net/{table}").read_text().splitlines()[1:] for table in ("tcp", "tcp6")]
        ((user,),) = run_query(home, "SELECT current_user")
        run_query(home, "CREATE TABLE kept AS SELECT 42 AS value")
        queue_client(home).set("kept", "42")
        found = Made(
            home,
            str(user),
            stat.S_IMODE(service_addresses(home).socket_folder.stat().st_mode),
            {name: Path(f"/proc/{pid}").stat().st_uid for name, pid in pids.items()},
            {name: socket_inodes(pid) for name, pid in pids.items()},
            {line.split()[9] for table in tables for line in table},
        )
    yield found
    remove_home(home)


def socket_inodes(pid: int) -> set[str]:
    links = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        # A connection that was closed just now may be closed there a moment later.
        with suppress(FileNotFoundError):
            links.append(str(link.readlink()))
    return {link[8:-1] for link in links if link.startswith("socket:")}


def run_query(home: Path, text: str) -> list[tuple[object, ...]]:
    with psycopg.connect(service_addresses(home).database_url, autocommit=True) as connection:
        cursor = connection.execute(text)
        return cursor.fetchall() if cursor.description else []


def queue_client(home: Path) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(service_addresses(home).broker_socket))


def test_addresses_are_short_and_the_same_in_each_process(tmp_path):
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    code = "import sys; from dashboard import services; print(services.service_addresses(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(deep)]
    other = subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True, text=True)
    assert other.stdout == f"{service_addresses(deep)}\n" != f"{service_addresses(tmp_path)}\n"
    assert len(str(service_addresses(deep).socket_folder / ".s.PGSQL.5432.lock")) < 100


def test_an_interrupted_initdb_is_made_again(made):
    assert made.user == "paceline"


def test_data_outlive_an_orderly_end_and_a_pid_file_that_names_somebody_else_is_no_obstacle(made):
    (made.home / "services/postgres/postmaster.pid").write_text(f"{os.getpid()}\n/elsewhere\n")
    with running_embedded(made.home):
        assert_kept(made.home)


def assert_kept(home: Path) -> None:
    assert run_query(home, "SELECT value FROM kept") == [(42,)]
    assert queue_client(home).get("kept") == b"42"


def test_data_outlive_kill_9_of_both(made):
    with running_embedded(made.home, durable=True) as supervisor:
        run_query(made.home, "CREATE TABLE IF NOT EXISTS killed AS SELECT 43 AS value")
        queue_client(made.home).set("killed", "43")
        pids = [supervisor.pid("postgres"), supervisor.pid("redis")]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        supervisor.watch(until=lambda: both_answer(made.home))
        assert [supervisor.pid("postgres"), supervisor.pid("redis")] != pids
        assert run_query(made.home, "SELECT value FROM killed") == [(43,)]
        assert queue_client(made.home).get("killed") == b"43"


def both_answer(home: Path) -> bool:
    try:
        return bool(run_query(home, "SELECT 1") and queue_client(home).ping())
    except (psycopg.OperationalError, redis.ConnectionError):
        return False


def test_a_killed_supervisor_leaves_nothing_and_starts_again(made):
    code = f"""
import sys, time
sys.path.insert(0, {str(CHECKOUT)!r})
from pathlib import Path
from dashboard.services import embedded
from dashboard.services.supervisor import Supervisor
home = Path({str(made.home)!r})
supervisor = Supervisor(home / "logs")
embedded.start_embedded(supervisor, home)
print(supervisor.pid("postgres"), supervisor.pid("redis"), flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()]
    run_query(made.home, "CREATE TABLE IF NOT EXISTS left_over AS SELECT 44 AS value")
    process.kill()
    process.wait()
    with running_embedded(made.home):
        assert run_query(made.home, "SELECT value FROM left_over") == [(44,)]
    assert len(pids) == 2
    assert becomes_true(lambda: not any(is_alive(pid) for pid in pids))


def test_sockets_are_private_and_nothing_listens_on_tcp(made):
    assert made.socket_folder_mode == 0o700
    for inodes in made.inodes.values():
        assert inodes
        assert not inodes & made.tcp_inodes


def test_a_socket_folder_of_somebody_else_is_refused(home):
    folder = service_addresses(home).socket_folder
    folder.symlink_to("/tmp")  # noqa: S108 - the attack
    try:
        with pytest.raises(ServiceError, match=f"^{folder} belongs to somebody else"):
            embedded.start_embedded(Supervisor(home / "logs"), home)
    finally:
        folder.unlink()


def test_another_major_version_is_refused(home):
    folder, _ = embedded.data_folder(home)
    (folder / "postgres").mkdir()
    (folder / "postgres/PG_VERSION").write_text("17\n")
    with pytest.raises(ServiceError, match="was made by PostgreSQL 17, and this is 18"):
        embedded.start_embedded(Supervisor(home / "logs"), home)


@pytest.mark.skipif(os.getuid() != 0, reason="only root has to keep the data elsewhere")
def test_as_root_the_data_belong_to_an_unprivileged_account(made):
    assert (made.home / "services").is_symlink()
    assert 0 not in made.owners.values()


@pytest.mark.skipif(os.getuid() != 0, reason="only root has to keep the data elsewhere")
def test_as_root_a_strict_umask_is_no_obstacle(home, monkeypatch):
    system = Path("/var/tmp") / f"paceline-{time.time_ns()}"  # noqa: S108 - where others can reach it
    monkeypatch.setattr(binaries, "SYSTEM_FOLDER", system / "paceline")
    before = os.umask(0o077)
    try:
        with running_embedded(home):
            assert run_query(home, "SELECT current_user") == [("paceline",)]
    finally:
        os.umask(before)
        shutil.rmtree(system)


@pytest.mark.skipif(os.getuid() != 0, reason="only root has to keep the data elsewhere")
def test_a_copied_home_does_not_share_the_database(made, tmp_path):
    shutil.copytree(made.home, tmp_path / "copy", symlinks=True)
    with pytest.raises(ServiceError, match="is a copy of"):
        embedded.data_folder(tmp_path / "copy")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_as_an_ordinary_user_everything_lies_in_the_home(tmp_path_factory):
    code = f"""
import sys
sys.path.insert(0, {str(CHECKOUT)!r})
from pathlib import Path
from dashboard.services import embedded
from dashboard.services.supervisor import Supervisor
home = Path(sys.argv[1])
supervisor = Supervisor(home / "logs")
embedded.start_embedded(supervisor, home, durable=False)
supervisor.stop()
print(sorted(path.name for path in (home / "services").iterdir()), (home / "services").is_symlink())
"""
    home = Path("/var/tmp") / f"paceline-nobody-{time.time_ns()}"  # noqa: S108 - of the other user
    home.mkdir(mode=0o700)
    os.chown(home, 65534, 65534)
    done = subprocess.run(
        [sys.executable, "-c", code, home],
        user=65534,
        group=65534,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    shutil.rmtree(home)
    assert done.stdout == "['home', 'postgres', 'redis'] False\n", done.stderr
