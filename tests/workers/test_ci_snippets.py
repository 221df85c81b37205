"""The snippets of docs/ci.md: YAML, and commands that exist with the options that they are given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from paceline.__main__ import _build_parser

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "ci.md").read_text()
SNIPPETS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def find_scripts(value: Any) -> Iterator[str]:
    """The shell commands of a workflow or a pipeline."""
    if isinstance(value, dict):
        yield from (text for name in ("run", "script") for text in read_lines(value.get(name)))
        yield from (text for inner in value.values() for text in find_scripts(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in find_scripts(inner))


def read_lines(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value) if isinstance(value, list) else []


@pytest.mark.parametrize("snippet", SNIPPETS, ids=["github", "gitlab"])
def test_a_snippet_calls_what_there_is(snippet: str) -> None:
    scripts = list(dict.fromkeys(find_scripts(yaml.safe_load(snippet))))
    (command,) = [text for text in scripts if text.startswith("paceline ")]
    assert any(text.startswith("pip install") for text in scripts)
    read = _build_parser().parse_args(shlex.split(command)[1:])
    assert (read.base.startswith("$"), read.head.startswith("$")) == (True, True)


def test_every_command_of_the_page_can_be_typed() -> None:
    commands = re.findall(r"^    (paceline .+)$", TEXT, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        assert _build_parser().parse_args(shlex.split(command)[1:])
