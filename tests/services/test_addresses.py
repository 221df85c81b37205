"""Where the services of a home are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.services.addresses import last_port, remember_port

PRINT_ADDRESS = "from dashboard import settings; print(settings.PACELINE_URL)"


def address_of_site(home: Path, **variables: str) -> str:
    """As a command in another shell sees it."""
    given = {name: value for name, value in os.environ.items() if name not in ("PORT", "PACELINE_URL")}
    environment = {**given, "PACELINE_HOME": str(home), **variables}
    command = [sys.executable, "-c", PRINT_ADDRESS]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def test_a_command_finds_the_port_of_the_site(tmp_path: Path) -> None:
    remember_port(tmp_path, 9321)
    assert address_of_site(tmp_path) == "http://127.0.0.1:9321"
    assert address_of_site(tmp_path, PORT="9322") == "http://127.0.0.1:9322"


@pytest.mark.parametrize("text", [None, "", "no port\n", "70000\n"])
def test_a_home_that_names_no_port_has_the_usual_one(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "port").write_text(text)
    assert last_port(tmp_path) == 8000
