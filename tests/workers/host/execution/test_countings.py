"""What a machine has counted: kept per commit and case, a few of each, and handed to the harness."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest

from dashboard.host_protocol import Lease, RunAssignment
from workers.host.execution.countings import MOST_OF_CASE, CountingStore

RUN = RunAssignment(
    lease=Lease(1, 1, UUID(int=1)),
    project="snakes",
    commit="b" * 40,
    benchmark="tiny",
    params={},
    case_key="size=1",
    manifest=None,
    machine="gpu-1",
    repetitions=3,
    time_limit=60,
    quick=False,
)
ORIGIN: dict[str, Any] = {
    "counted_at": None,
    "key": "k",
    "files": {"a.py": "x"},
    "doubts": [],
    "repeats": False,
}


def encode_document(**counting: Any) -> bytes:
    rows = [{"name": "function_calls", "kind": "counter"}, {"name": "step_time", "kind": "time"}]
    return json.dumps(
        {"metrics": rows, "profile": None, "counting": ORIGIN | counting, "phases": []}
    ).encode()


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(tmp_path, "gpu-1", "snakes")


def test_a_counting_is_found_by_commit_and_case(store: CountingStore) -> None:
    store.keep_counted(RUN, encode_document())
    following = replace(RUN, commit="c" * 40, counted_at=RUN.commit)
    found = store.find_counted(following)
    assert found is not None
    kept = json.loads(found.read_text())
    assert kept["commit"] == RUN.commit
    assert [row["name"] for row in kept["document"]["metrics"]] == ["function_calls"]
    assert store.find_counted(replace(following, case_key="size=2")) is None
    assert store.find_counted(replace(following, quick=True)) is None
    assert store.find_counted(replace(following, counted_at="")) is None


@pytest.mark.parametrize("counting", [{"counted_at": "a" * 40}, {"doubts": ["processes"]}])
def test_what_no_other_commit_may_take_over_is_not_kept(
    store: CountingStore, counting: dict[str, Any]
) -> None:
    store.keep_counted(RUN, encode_document(**counting))
    assert store.find_counted(replace(RUN, counted_at=RUN.commit)) is None


def test_a_strange_document_costs_nothing(store: CountingStore) -> None:
    for text in (b"", b"[]", b'{"counting": {"counted_at": null}}', b"null"):
        store.keep_counted(RUN, text)
    assert not store.folder.exists() or not list(store.folder.iterdir())


def test_what_a_crash_left_half_written_is_removed(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as crashing:
        crashing.setattr(Path, "rename", Mock(side_effect=SystemExit))
        with pytest.raises(SystemExit):
            store.keep_counted(RUN, encode_document())
    assert [file.suffix for file in store.folder.iterdir()] == [".draft"]
    store.keep_counted(replace(RUN, commit="c" * 40), encode_document())
    assert list(store.folder.iterdir()) == [store.path_of(RUN, "c" * 40)]


def test_only_the_newest_of_a_case_are_kept(store: CountingStore) -> None:
    commits = [f"{number:040x}" for number in range(MOST_OF_CASE + 3)]
    for commit in commits:
        store.keep_counted(replace(RUN, commit=commit), encode_document())
    found = [store.find_counted(replace(RUN, counted_at=commit)) is not None for commit in commits]
    assert found == [False] * 3 + [True] * MOST_OF_CASE
