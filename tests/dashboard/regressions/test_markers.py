from __future__ import annotations

from typing import Any

import pytest

from dashboard.regressions import diffs, markers

OLD: dict[str, Any] = {
    "python": "3.11.2",
    "torch": "2.12.0",
    "driver": None,
    "gpus": [],
    "packages": {"numpy": "2.3.0", "torch": "2.12.0"},
    "harness": "0.1.0",
    "machine": "bench-1",
}


def test_alike_environments_have_no_differences() -> None:
    assert markers.software(OLD, dict(OLD)) == markers.system(OLD, dict(OLD)) == []


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"torch": "2.13.0"}, "torch 2.12.0 -> 2.13.0"),
        ({"packages": {"numpy": "2.4.0"}}, "numpy 2.3.0 -> 2.4.0"),
        ({"packages": {"numpy": "2.3.0", "gymnasium": "1.0"}}, "gymnasium none -> 1.0"),
    ],
)
def test_software_is_what_a_commit_may_ask_for(changed: dict[str, Any], sentence: str) -> None:
    assert markers.software(OLD, OLD | changed) == [sentence]
    assert markers.system(OLD, OLD | changed) == []


def test_harness_and_gpus_are_the_systems() -> None:
    new = OLD | {"harness": "0.2.0", "gpus": [{"name": "H200", "memory_bytes": 1}]}
    assert markers.system(OLD, new) == ["GPUs none -> H200", "harness 0.1.0 -> 0.2.0"]
    assert markers.software(OLD, new) == []


def test_another_machine_of_the_pool_is_no_change_of_the_system() -> None:
    new = OLD | {"machine": "bench-2"}
    assert markers.system(OLD, new) == []
    assert markers.machine(OLD, new) == ["machine bench-1 -> bench-2"]


def test_what_is_not_known_is_no_difference() -> None:
    assert markers.system(OLD, OLD | {"driver": "550.2"}) == []
    assert markers.software({}, OLD) == []


@pytest.mark.parametrize(
    ("path", "may"),
    [
        ("requirements/base.txt", True),
        ("requirements-dev.txt", True),
        ("sub/uv.lock", True),
        ("replay.py", False),
    ],
)
def test_files_that_say_what_is_installed(path: str, may: bool) -> None:
    assert diffs.changes_environment([path, "README.md"]) == may
