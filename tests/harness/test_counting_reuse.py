"""Counters that are taken over from a commit whose counted code is the same; in doubt is counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paceline.document_building import counter_reuse
from paceline.manifest import load_manifest
from paceline.measurement import CountedCommit, MeasurementRequest
from paceline.protocol import case_runner
from paceline.watching import nvml

from tests.harness.conftest import Project

COMMIT = "a" * 40
SCRIPT = """
import json
import helper
import paceline
sizes = json.load(open("sizes.json"))
for number in paceline.steps(range(10**6)):
    helper.work(sizes["n"])
    paceline.count("games", 2)
"""
HELPER = "def work(n):\n    for k in range(n):\n        abs(k)\n"


class Checkout(Project):
    """A project of several files, and an earlier document beside its folder."""

    def create_files(self, **settings: object) -> None:
        chosen = {"warmup_steps": 2, "steps": 50, "repetitions": 1, "counting_steps": 10}
        self.write(SCRIPT, **(chosen | settings))
        (self.folder / "helper.py").write_text(HELPER)
        (self.folder / "other.py").write_text("unused = 1\n")
        (self.folder / "sizes.json").write_text('{"n": 5}')

    def count(self, before: dict[str, Any] | None = None, *options: str) -> dict[str, Any]:
        """A run whose document lies outside the checkout, given an earlier one."""
        out, given = self.folder.parent / "out.json", self.folder.parent / "before.json"
        given.write_text(json.dumps({"commit": COMMIT, "document": before or {}}))
        ended = self.call("run", "tiny", "--document", str(out), "--counted", str(given), *options)
        assert ended.returncode == 0, ended.stderr
        raw: dict[str, Any] = json.loads(out.read_text())
        return raw


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    folder = tmp_path / "checkout"
    folder.mkdir()
    made = Checkout(folder)
    made.create_files()
    return made


def find_calls(raw: dict[str, Any]) -> float:
    return float(next(row["value"] for row in raw["metrics"] if row["name"] == "function_calls"))


def test_a_commit_that_changes_nothing_counted_takes_the_counters_over(checkout: Checkout) -> None:
    first = checkout.count()
    assert first["counting"]["counted_at"] is None
    assert set(first["counting"]["files"]) >= {"tiny.py", "helper.py", "sizes.json"}
    assert "other.py" not in first["counting"]["files"]
    (checkout.folder / "other.py").write_text("unused = 2\n")
    (checkout.folder / "NOTES.md").write_text("nothing that runs\n")
    second = checkout.count(first)
    assert second["counting"] == {**first["counting"], "counted_at": COMMIT}
    assert (find_calls(second), second["profile"]) == (find_calls(first), first["profile"])
    assert not any(row["part"].startswith("counting") for row in second["costs"]["parts"])
    assert not any(row["name"] == "phase_memory" for row in second["metrics"])
    counts = [row for row in second["metrics"] if row["name"] == "count.games"]
    assert [row["exact"] for row in counts] == [True]


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "helper.py").write_text(HELPER + "\n# a comment is content\n"),
        lambda folder: (folder / "sizes.json").write_text('{"n": 7}'),
        lambda folder: (folder / "json.py").write_text(
            "from json.decoder import *\ndef load(f): return {'n': 9}\n"
        ),
        lambda folder: (folder / "other.py").unlink(),
    ],
    ids=["imported file", "data file", "a new file that shadows", "a file that is gone"],
)
def test_whatever_may_change_a_counter_is_counted(
    checkout: Checkout, change: Callable[[Path], object]
) -> None:
    first = checkout.count()
    change(checkout.folder)
    second = checkout.count(first)
    assert second["counting"]["counted_at"] is None
    assert any(row["part"].startswith("counting") for row in second["costs"]["parts"])


def test_another_protocol_or_environment_is_another_key(checkout: Checkout) -> None:
    first = checkout.count()
    checkout.create_files(seed=3)
    assert checkout.count(first)["counting"]["counted_at"] is None
    before = CountedCommit(COMMIT, first)
    assert not counter_reuse.has_same_inputs(before, "0" * 64, checkout.folder)
    assert not counter_reuse.has_same_inputs(before, "", checkout.folder)


@pytest.mark.parametrize(("succession", "keys"), [(False, 1), (True, 2)])
def test_the_warm_up_of_the_times_is_in_the_key_where_counting_has_it(
    checkout: Checkout, succession: bool, keys: int
) -> None:
    found = set()
    for warmup_steps in (2, 4):
        checkout.create_files(counting_warmup_steps=1, warmup_steps=warmup_steps)
        benchmark = load_manifest(checkout.folder / "paceline.toml").benchmarks["tiny"]
        request = MeasurementRequest(benchmark, benchmark.cases[0], checkout.folder, quick=False)
        runner = case_runner._CaseRunner(request, Path(), nvml.Devices(), 0.0, lambda *_: None)
        runner._succeeded_after = 1 if succession else None
        found.add(runner.find_counting_inputs({}).key)
    assert len(found) == keys


@pytest.mark.parametrize(
    ("after", "steps", "warmup_steps"), [(None, 1, 1), (5, 1, 18), (5, 40, 19), (18, 1, 19)]
)
def test_counting_behind_a_succession_takes_no_more_steps_than_the_times(
    checkout: Checkout, after: int | None, steps: int, warmup_steps: int
) -> None:
    checkout.create_files(counting_warmup_steps=1, warmup_steps=19, steps=steps, counting_steps=1)
    benchmark = load_manifest(checkout.folder / "paceline.toml").benchmarks["tiny"]
    request = MeasurementRequest(benchmark, benchmark.cases[0], checkout.folder, quick=False)
    runner = case_runner._CaseRunner(request, Path(), nvml.Devices(), 0.0, lambda *_: None)
    runner._succeeded_after = after
    assert runner._make_plan("counting").warmup_steps == warmup_steps
    assert runner._make_plan("timing").warmup_steps == 19


def test_one_counting_is_taken_over_once_a_second_gave_the_same(checkout: Checkout) -> None:
    first = checkout.count(None, "--quick")
    second = checkout.count(first, "--quick")
    third = checkout.count(second, "--quick")
    assert [run["counting"]["counted_at"] for run in (first, second, third)] == [None, None, COMMIT]
    assert [run["counting"]["repeats"] for run in (first, second, third)] == [False, True, True]


@pytest.mark.parametrize(
    ("code", "doubt"),
    [
        ("import subprocess; subprocess.run(['true'])", "processes"),
        ("import os\nif os.fork() == 0: os._exit(0)", "processes"),
        ("import multiprocessing.popen_spawn_posix", "processes"),
        ("import socket; socket.socket().connect_ex(('127.0.0.1', 9))", "network"),
        ("import sqlite3; sqlite3.connect(':memory:')", "database"),
    ],
)
def test_what_cannot_be_seen_is_a_doubt(checkout: Checkout, code: str, doubt: str) -> None:
    (checkout.folder / "helper.py").write_text(f"{code}\n{HELPER}")
    counting = checkout.count(None, "--quick")["counting"]
    assert (counting["doubts"], counting["files"]) == ([doubt], {})


def test_where_a_library_of_the_system_lies_is_no_doubt(checkout: Checkout) -> None:
    (checkout.folder / "helper.py").write_text(
        f"import ctypes.util\nassert ctypes.util.find_library('c')\n{HELPER}"
    )
    assert checkout.count(None, "--quick")["counting"]["doubts"] == []


def test_a_document_that_cannot_be_used_is_no_reason_to_fail(tmp_path: Path) -> None:
    for text in ("", "[]", '{"commit": "a"}', '{"commit": "a", "document": {"counting": 3}}'):
        path = tmp_path / "before.json"
        path.write_text(text)
        assert counter_reuse.read_counted_before(path) is None
    assert counter_reuse.read_counted_before(tmp_path / "none.json") is None


def test_inexact_counters_and_watched_memory_are_never_taken_over(measured: dict[str, Any]) -> None:
    before = CountedCommit(COMMIT, {**measured, "counting": {"repeats": False}})
    assert counter_reuse.has_reusable_counters(before, ["step_time"])
    assert not counter_reuse.has_reusable_counters(before, ["phase_memory:learn"])
    noisy = {**measured["metrics"][-1], "name": "function_calls", "kind": "counter", "exact": False}
    inexact = {**before.document, "metrics": [*measured["metrics"], noisy]}
    assert not counter_reuse.has_reusable_counters(CountedCommit(COMMIT, inexact), ["step_time"])
