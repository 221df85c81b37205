"""Wrong arguments end with status 1 and one sentence."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError

from tests.dashboard.commands.conftest import Manage

pytestmark = pytest.mark.django_db(transaction=True)
COMMANDS = ("add_project", "trigger", "install_hook", "import_results")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_explains(manage_here: Manage, command: str) -> None:
    done = manage_here(command, "--help")
    assert done.returncode == 0
    assert "SLUG" in done.stdout
    assert len(done.stdout.split()) > 100


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_argument_is_named(manage_here: Manage, command: str) -> None:
    done = manage_here(command)
    assert done.returncode == 1
    assert done.stderr.strip().startswith("The following arguments are required: SLUG")
    assert done.stderr.count("\n") == 1


def test_two_options_that_exclude_each_other_are_refused(manage_here: Manage) -> None:
    done = manage_here("trigger", "snakes", "--last", "2", "--commit", "main")
    assert done.returncode == 1
    assert "not allowed with argument" in done.stderr


@pytest.mark.parametrize("command", ["trigger", "install_hook"])
def test_an_unknown_project_is_answered_with_what_to_do(manage_here: Manage, command: str) -> None:
    done = manage_here(command, "snakes")
    assert done.returncode == 1
    assert "begin with manage.py add_project" in done.stderr


def test_a_database_that_is_away_is_one_sentence_without_pages_and_statistics(
    manage: Manage, tmp_path: Path
) -> None:
    """Not even to be checked: all that answers at an address takes longer to import than the command."""
    away = f"postgresql:///x?host={tmp_path}"
    done = manage("trigger", "snakes", DATABASE_URL=away, PYTHONPROFILEIMPORTTIME="1")
    lines = done.stderr.splitlines()
    (sentence,) = [line for line in lines if not line.startswith("import time:")]
    assert done.returncode == 1
    assert "start it with `make up`" in sentence
    imported = {line.rpartition("|")[2].strip() for line in lines}
    assert "dashboard.triggers" in imported
    assert imported.isdisjoint({"dashboard.urls", "dashboard.pages", "dashboard.api.urls", "scipy.special"})


def test_only_a_missing_database_is_told_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OperationalError("said by the driver") from cause

    monkeypatch.setattr("dashboard.management.commands.redetect.Command.perform", fail)
    cause: Exception = psycopg.OperationalError("number of parameters must be between 0 and 65535")
    with pytest.raises(OperationalError):
        call_command("redetect", "snakes")
    cause = psycopg.errors.CannotConnectNow()
    with pytest.raises(CommandError, match="The database can't be reached: start it"):
        call_command("redetect", "snakes")
