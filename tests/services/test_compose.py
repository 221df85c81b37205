"""docker-compose.yml starts what `make up` starts."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

from dashboard.services.processes import CHECKOUT, Site, migration_program, process_commands

SITE = Site(home=Path("/var/lib/paceline"), machine="gpu-1", pool="default", host="0.0.0.0")  # noqa: S104


def described_commands() -> dict[str, list[str]]:
    """Service -> command, with the defaults of the variables. Commands are JSON, on one line each."""
    text = (CHECKOUT / "docker-compose.yml").read_text().partition("\nservices:\n")[2]
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
    commands: dict[str, list[str]] = {}
    for block in re.split(r"(?m)^  (?=\w+:$)", text):
        if command := re.search(r"(?m)^    command: (\[.*\])$", block):
            commands[block.partition(":")[0].strip()] = json.loads(command[1])
    return commands


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
