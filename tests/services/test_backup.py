"""The chapter on backing up and restoring, command by command as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from dashboard.services import embedded, service_addresses
from dashboard.services.processes import CHECKOUT
from dashboard.services.supervisor import Supervisor
from tests.services.tables import copy_tables
from tests.services_plugin import remove_home

CHAPTER = (CHECKOUT / "docs/operations.md").read_text().partition("## Back-up and restoring\n")[2]
BLOCKS = re.findall(r"```sh\n(.*?)```", CHAPTER.partition("\n##")[0], re.DOTALL)
FILL = """
from dashboard.models import Project
Project.objects.create(slug="kept", repository="/r", hook_secret="open sesame")
"""
# Nothing is left to migrate for who restored the same version, and the role may do it.
SHOW = """
from django.core.management import call_command
from dashboard.models import Project
print([(project.slug, project.hook_secret) for project in Project.objects.all()])
call_command("migrate", check_unapplied=True, skip_checks=True)
"""


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[list[Path]]:
    """Two checkouts, as far as the commands need one."""
    made = [tmp_path / "first", tmp_path / "second"]
    for folder in made:
        folder.mkdir()
        for name in ("dashboard", "templates", "trainers", "manage.py"):
            (folder / name).symlink_to(CHECKOUT / name)
        (folder / ".venv").symlink_to(sys.prefix)
    yield made
    for folder in made:
        remove_home(folder / ".paceline")


@contextmanager
def running_database(folder: Path) -> Iterator[psycopg.Connection]:
    """The checkout's embedded database, and a connection to it as the site's processes have."""
    supervisor = Supervisor(folder / "logs")
    try:
        embedded.start_embedded(supervisor, folder / ".paceline", queue=False, durable=False)
        url = service_addresses(folder / ".paceline").database_url
        with closing(psycopg.connect(url, autocommit=True)) as connected:
            yield connected
    finally:
        supervisor.stop()


def run_commands(folder: Path, commands: str) -> str:
    """What the shell's commands print in the checkout, which knows nothing of this test's database."""
    home = folder / ".paceline"
    given = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "SECRET_KEY"))}
    environment = {
        **given,
        "PACELINE_HOME": str(home),
        "DATABASE_URL": service_addresses(home).database_url,
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
    done = subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_python(folder: Path, code: str) -> str:
    (folder / "code.py").write_text(f"import django\ndjango.setup()\n{code}")
    return run_commands(folder, ".venv/bin/python code.py")


@pytest.mark.django_db
def test_a_restored_site_has_the_rows_and_reads_the_secrets(folders: list[Path]) -> None:
    first, second = folders
    back_up, place_key, restore = BLOCKS
    with running_database(first):
        copy_tables(first / ".paceline")
        run_python(first, FILL)
        run_commands(first, back_up)
    assert b"sesame" not in (first / "paceline.dump").read_bytes()
    for name in ("paceline.dump", "paceline.key"):
        (first / name).rename(second / name)
    run_commands(second, place_key)
    with running_database(second) as connected:
        connected.execute("CREATE TABLE of_the_fresh_checkout ()")
        run_commands(second, restore)
        assert run_python(second, SHOW) == "[('kept', 'open sesame')]\n"
        with psycopg.connect(service_addresses(second / ".paceline").database_url) as again:
            assert again.execute("SELECT to_regclass('of_the_fresh_checkout')").fetchone() == (None,)
