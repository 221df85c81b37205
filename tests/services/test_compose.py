"""docker-compose.yml starts what `make up` starts."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from dashboard.services import accounts, binaries, embedded, service_addresses
from dashboard.services.processes import CHECKOUT, Site, migration_program, process_commands
from dashboard.services.supervisor import Supervisor
from tests.services.programs import becomes_true
from tests.services_plugin import remove_home

COMPOSE = (CHECKOUT / "docker-compose.yml").read_text()
SITE = Site(home=Path("/var/lib/paceline"), machine="gpu-1", pool="default", host="0.0.0.0")  # noqa: S104


def described_commands() -> dict[str, list[str]]:
    """Service -> command, with the defaults of the variables. Commands are JSON, on one line each."""
    return {
        name: json.loads(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", settings["command"]))
        for name, settings in described_services().items()
        if "command" in settings
    }


def described_services() -> dict[str, dict[str, str]]:
    """Service -> setting -> what the file says of it, with the parts that it shares with others."""
    parts = split_blocks(COMPOSE, 0)
    shared: dict[str, dict[str, str]] = {}
    for name, text in parts.items():
        if name.startswith("x-"):
            shared[name.removeprefix("x-")] = merge_shared(split_blocks(text, 2), shared)
    services = split_blocks(parts["services"], 2)
    return {name: merge_shared(split_blocks(text, 4), shared) for name, text in services.items()}


def split_blocks(text: str, indent: int) -> dict[str, str]:
    """The keys that stand `indent` spaces deep, with what stands behind and below each; no comments."""
    text = re.sub(r"(?m)^ *#.*\n", "", text)
    found = re.split(rf"(?m)^ {{{indent}}}(?=[\w<-])(?!- )", text)[1:]
    return {block.partition(":")[0]: block.partition(":")[2].strip(" ").rstrip() for block in found}


def merge_shared(settings: dict[str, str], shared: dict[str, dict[str, str]]) -> dict[str, str]:
    """With those of the block that `<<` names."""
    named = settings.pop("<<", "").strip("* ")
    return {**shared.get(named, {}), **settings}


def read_probe(name: str) -> str:
    """The shell's line of a service's health check."""
    (line,) = re.findall(r'test: \["CMD-SHELL", (".*")\]', described_services()[name]["healthcheck"])
    return str(json.loads(line)).replace("$$", "$")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    yield home
    remove_home(home)


def test_every_process_has_its_command():
    expected = {name: ["python", "-m", *command] for name, command in process_commands(SITE).items()}
    assert {name: described_commands()[name] for name in expected} == expected


def test_the_tables_are_made_the_same_way():
    assert described_commands()["migrate"] == ["python", *migration_program(SITE).argv[1:]]


def test_nothing_else_is_described():
    assert set(described_commands()) - set(process_commands(SITE)) == {"redis", "migrate"}


def test_the_image_serves_the_same_port_by_itself():
    (line,) = re.findall(r"(?m)^CMD (.*)$", (CHECKOUT / "Dockerfile").read_text())
    assert process_commands(SITE)["web"][:4] == json.loads(line)[2:]


def test_the_image_installs_what_the_environment_does_save_embedded_and_dev():
    (line,) = re.findall(r"(?m)^RUN (pip install .*)$", (CHECKOUT / "Dockerfile").read_text())
    assert shlex.split(line)[-4:] == ["-e", "trainers/harness", "-e", ".[site,host,torch]"]


def test_the_image_gets_optional_components_where_they_are_asked_for():
    (line,) = re.findall(r"(?m)^RUN (if .*)$", (CHECKOUT / "Dockerfile").read_text())
    done = subprocess.run(
        ["sh", "-c", line.replace("pip install", "echo")],
        env={"COMPONENTS": "emulator,service"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("-e .[emulator,service]\n")


def test_every_service_is_described_in_whole():
    described = described_services()
    assert set(described) == {*process_commands(SITE), "postgres", "redis", "migrate"}
    assert described["service"]["build"] == "."
    assert described["web"]["restart"] == "unless-stopped"
    assert described["migrate"]["restart"] == '"no"'


@pytest.mark.parametrize("name", described_services())
def test_every_service_is_confined(name: str):
    settings = described_services()[name]
    assert settings["cap_drop"] == "[ALL]"
    assert settings["security_opt"].startswith('["no-new-privileges:true"')
    # A box is made of namespaces.
    assert ("unconfined" in settings["security_opt"]) is (name == "host")
    assert int(settings["pids_limit"]) <= 8192
    assert re.search(r"\d+g\b", settings["mem_limit"])
    # What is measured writes into its temporary folder as much as it likes.
    assert settings["read_only"] == ("false" if name == "host" else "true")
    # The image of the database starts as root, to give its account the data folder.
    assert ("cap_add" in settings) is (name == "postgres")


@pytest.mark.parametrize("name", sorted(set(described_services()) - {"migrate"}))
def test_every_service_that_stays_has_a_health_check(name: str):
    settings = described_services()[name]
    assert "test: [" in settings["healthcheck"]
    assert "disable" not in settings["healthcheck"]


@pytest.mark.parametrize("name", [*process_commands(SITE)])
def test_every_process_waits_for_the_migrations(name: str):
    waits = described_services()[name]["depends_on"]
    assert re.search(r"migrate:\s+condition: service_completed_successfully", waits)


def test_loaders_of_measured_code_share_memory():
    assert described_services()["host"]["shm_size"] == "8g"


def test_no_password_has_a_default():
    named = re.findall(r"\$\{(\w*PASSWORD)(.*?)\}", COMPOSE)
    assert set(named) == {("POSTGRES_PASSWORD", ":?set it in .env"), ("REDIS_PASSWORD", ":?set it in .env")}
    shown = (CHECKOUT / "docs/operations.md").read_text()
    assert all(f'echo "{name}=' in shown for name, _ in named)


@pytest.mark.parametrize(("age", "status"), [(0, 0), (90, 1), (None, 1)])
def test_the_probe_of_a_worker_is_the_age_of_its_file(tmp_path: Path, age: float | None, status: int):
    environment = described_services()["sweep"]["environment"]
    (touched,) = re.findall(r'PACELINE_HEARTBEAT_FILE: "(.*)"', environment)
    line = read_probe("sweep")
    assert touched in line
    file = tmp_path / "heartbeat"
    if age is not None:
        file.touch()
        os.utime(file, (file.stat().st_atime, file.stat().st_mtime - age))
    line = line.replace(touched, str(file))
    assert subprocess.run(["sh", "-c", line], capture_output=True, check=False).returncode == status


def test_the_queue_asks_for_its_password(home: Path):
    server = binaries.find_binaries(accounts.account_of_uid(os.getuid())).redis_server
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [word.replace("$$", "$") for word in described_commands()["redis"]]
    home.mkdir()
    started = subprocess.Popen(
        [*command[:-1], command[-1].replace("redis-server -", f"redis-server - --port {port}")],
        cwd=home,
        env={"PATH": f"{server.parent}:/usr/bin:/bin", "REDIS_PASSWORD": "open-sesame"},
        stdout=subprocess.DEVNULL,
    )
    try:
        assert becomes_true(lambda: ask_queue(port, "open-sesame") == "PONG")
        assert "authenticat" in ask_queue(port, None)
        assert b"sesame" not in Path(f"/proc/{started.pid}/cmdline").read_bytes()
    finally:
        started.terminate()
        started.wait(60)


def ask_queue(port: int, password: str | None) -> str:
    try:
        return "PONG" if redis.Redis(port=port, password=password).ping() else ""
    except redis.RedisError as error:
        return str(error)


def test_the_role_of_the_site_is_no_superuser(home: Path):
    """The script that the image runs, on a server that has nothing but its superuser."""
    supervisor = Supervisor(home / "logs")
    sockets = service_addresses(home).socket_folder
    programs = binaries.find_binaries(accounts.account_of_uid(os.getuid())).postgres
    try:
        embedded.start_embedded(supervisor, home, queue=False, durable=False)
        superuser = f"host={sockets} user=postgres dbname=postgres"
        with psycopg.connect(superuser, autocommit=True) as connection:
            connection.execute("DROP DATABASE paceline")
            connection.execute("DROP OWNED BY paceline")
            connection.execute("DROP ROLE paceline")
        subprocess.run(
            [CHECKOUT / "deploy/postgres/10-site-role.sh"],
            env={
                "PATH": f"{programs}:/usr/bin:/bin",
                "PGHOST": str(sockets),
                "POSTGRES_USER": "postgres",
                "POSTGRES_PASSWORD": "it's $ecret",
            },
            check=True,
        )
        with psycopg.connect(superuser) as connection:
            roles = connection.execute(
                "SELECT rolname, rolsuper OR rolcreatedb OR rolcreaterole, rolpassword IS NULL"
                " FROM pg_authid WHERE rolname IN ('paceline', 'postgres')"
            ).fetchall()
        assert sorted(roles) == [("paceline", False, False), ("postgres", True, True)]
        with psycopg.connect(f"host={sockets} user=paceline dbname=paceline") as connection:
            connection.execute("CREATE TABLE public.made (id int)")
            connection.execute("SET LOCAL session_replication_role = replica")
    finally:
        supervisor.stop()
