"""deploy/paceline-host.service: what systemd starts on a host that measures."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.processes import CHECKOUT

UNIT = CHECKOUT / "deploy/paceline-host.service"
# Each of them takes something away that what is measured needs; the unit says what.
HARMFUL = {
    *("PrivateDevices", "DeviceAllow", "DevicePolicy", "ProtectClock", "RestrictNamespaces"),
    *("SystemCallFilter", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc", "ProcSubset"),
    *("MemoryDenyWriteExecute", "PrivateUsers"),
}


def read_unit() -> dict[str, list[str]]:
    """Setting -> its values; a setting may stand there several times."""
    settings: dict[str, list[str]] = defaultdict(list)
    for line in UNIT.read_text().splitlines():
        if line and not line.startswith(("#", "[")):
            name, _, value = line.partition("=")
            settings[name].append(value)
    return settings


def test_the_hosts_own_command_is_started_without_root() -> None:
    unit = read_unit()
    assert unit["ExecStart"] == ["/opt/paceline/.venv/bin/python -m workers.host run"]
    assert unit["WorkingDirectory"] == ["/opt/paceline"]
    assert unit["User"] == unit["Group"] == ["paceline-host"]
    assert unit["Restart"] == ["on-failure"]
    # Started by root, and allowed to fail.
    assert all(command.startswith("-+/usr/bin/nvidia-") for command in unit["ExecStartPre"])


def test_its_home_is_the_only_folder_that_it_writes_to() -> None:
    unit = read_unit()
    assert unit["ProtectSystem"] == ["strict"]
    (state,) = unit["StateDirectory"]
    assert unit["Environment"] == [f"PACELINE_HOST_HOME=/var/lib/{state}"]
    assert "ReadWritePaths" not in unit


def test_one_signal_ends_the_agent_and_a_kill_the_rest() -> None:
    unit = read_unit()
    assert (unit["KillMode"], unit["KillSignal"], unit["OOMPolicy"]) == (["mixed"], ["SIGTERM"], ["continue"])
    assert int(unit["TimeoutStopSec"][0]) > 30


def test_namespaces_and_devices_are_left_to_what_is_measured() -> None:
    unit = read_unit()
    assert not HARMFUL & set(unit)
    assert "AF_NETLINK" in unit["RestrictAddressFamilies"][0]


def test_every_line_is_understood(tmp_path: Path) -> None:
    lines = [line for line in UNIT.read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"\[(Unit|Service|Install)\]|[A-Z][A-Za-z]+=.*", line) for line in lines)
    if shutil.which("systemd-analyze") is None:
        # A container without systemd: nobody could ask it.
        return
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/paceline/.venv/bin/python", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # Its exit status is 0 for a line that it ignores.
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_documentation_sets_up_what_the_unit_names() -> None:
    text = (CHECKOUT / "docs/workers.md").read_text()
    unit = read_unit()
    assert re.search(rf"useradd --system .*{unit['User'][0]}\n", text)
    for named in ("/opt/paceline", unit["EnvironmentFile"][0].removeprefix("-"), UNIT.name):
        assert named in text
