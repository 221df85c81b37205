"""docs/operations.md says what the code does."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

from dashboard import dispatch
from dashboard.services.processes import CHECKOUT, HOST_VARIABLES, Site, process_commands

TEXT = (CHECKOUT / "docs/operations.md").read_text()
READERS = ("dashboard/settings.py", "dashboard/accounts/openid_settings.py")


def variables_read() -> dict[str, object]:
    """Name -> default of each variable that the settings read; None where no plain value is the default."""
    defaults: dict[str, object] = {}
    for node in (node for file in READERS for node in ast.walk(ast.parse((CHECKOUT / file).read_text()))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id.startswith("read_")
        ):
            name, default = (*node.args, None, None)[:2]
            if isinstance(name, ast.Constant):
                defaults[name.value] = default.value if isinstance(default, ast.Constant) else None
                if node.func.id == "read_secret":
                    defaults[f"{name.value}_FILE"] = None
    return defaults


def test_every_variable_of_the_settings_is_described():
    assert sorted(variables_read()) == sorted(re.findall(r"(?m)^\| `([A-Z_]+)` \|", TEXT))


def test_plain_defaults_are_those_of_the_settings():
    plain = {name: str(value) for name, value in variables_read().items() if value is not None}
    described = dict(re.findall(r"(?m)^\| `([A-Z_]+)` \| `?([^|` ]*)", TEXT))
    assert len(plain) >= 8
    assert {name: described[name] for name in plain} == plain


def test_every_variable_of_a_host_is_described():
    described = set(re.findall(r"`(PACELINE_[A-Z_]+)`", (CHECKOUT / "docs/hosts.md").read_text()))
    assert {name for name in HOST_VARIABLES if name.startswith("PACELINE_")} <= described


def test_every_process_is_described(tmp_path):
    site = Site(home=tmp_path, machine="m", pool="p")
    assert set(process_commands(site)) | {"postgres", "redis"} == set(
        re.findall(r"(?m)^\| `([a-z]+)` \|", TEXT)
    )


def test_every_id_of_a_log_line_is_described():
    (row,) = re.findall(r"(?m)^\| ([a-z, ]+) \| the number of what the task works on", TEXT)
    assert set(row.split(", ")) == set(dispatch.SUBJECTS.values())


def test_the_database_can_be_reached_by_hand(settings):
    script = 'eval "$($0 -m dashboard.services)" && psql -Atc "select current_user"'
    done = subprocess.run(["sh", "-c", script, sys.executable], cwd=CHECKOUT, capture_output=True, text=True)
    assert done.stdout == "paceline\n", done.stderr
