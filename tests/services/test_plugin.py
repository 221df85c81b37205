import os
import subprocess
import sys
from pathlib import Path

import redis
from django.db import connection

from dashboard.services import service_addresses

ROOT = Path(__file__).parents[2]
# Else it would look at all tests whether their asserts are rewritten, and import what no test here needs.
LEAN = ["--assert=plain", "-p", "no:schemathesis", "-p", "no:hypothesispytest", "-p", "no_services"]
NO_SERVICES = """
from dashboard.services import ServiceError, embedded


def fail(*_, **__):
    raise ServiceError("redis didn't start: no room")


embedded.start_embedded = fail
"""


def test_the_database_is_the_embedded_one(db, settings):
    with connection.cursor() as cursor:
        cursor.execute("SELECT version(), inet_server_addr()")
        version, address = cursor.fetchone()
    assert connection.settings_dict["HOST"] == str(service_addresses(settings.PACELINE_HOME).socket_folder)
    assert version.startswith("PostgreSQL 18")
    assert address is None


def test_the_queue_is_the_embedded_one(settings):
    client = redis.Redis(unix_socket_path=str(service_addresses(settings.PACELINE_HOME).broker_socket))
    assert client.ping()


def test_several_processes_say_why_a_service_did_not_start(tmp_path):
    (tmp_path / "no_services.py").write_text(NO_SERVICES)
    own = {
        name: value for name, value in os.environ.items() if name not in ("BROKER_URL", "PYTEST_XDIST_WORKER")
    }
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *LEAN, "-n", "1", Path(__file__).relative_to(ROOT)],
        cwd=ROOT,
        env=own | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [own.get("PYTHONPATH")])])},
        capture_output=True,
        text=True,
    )
    assert ended.returncode != 0
    assert "ERROR: redis didn't start: no room" in ended.stderr.splitlines()
