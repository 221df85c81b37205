"""Ranks and DataLoaders of a document, and what is said of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from paceline import document

from dashboard.sentences.measurements import processes as sentences
from dashboard.training_processes.loaders import most_named, summarize_loaders
from dashboard.training_processes.ranks import summarize_ranks
from tests.dashboard.training_processes import documents

SCHEMA = Path(document.__file__).with_name("document.schema.json")


def test_a_step_is_computing_waiting_and_communicating() -> None:
    ranks = summarize_ranks({"ranks": documents.four_ranks(0.020)})
    assert ranks is not None
    for rank in ranks.ranks:
        parts = rank.computing + rank.waiting + rank.communicating
        assert parts == pytest.approx(rank.step_time)
    assert [rank.waiting for rank in ranks.ranks] == pytest.approx([0.016, 0.016, 0, 0.016])
    assert [rank.communicating for rank in ranks.ranks] == pytest.approx([0.001] * 4)


def test_repetitions_are_told_by_their_medians() -> None:
    rows = [
        documents.rank_row(0, {"backward": seconds}, repetition=index)
        for index, seconds in enumerate((0.010, 0.012, 0.090))
    ]
    ranks = summarize_ranks({"ranks": documents.ranks_member(rows)})
    assert ranks is not None
    assert ranks.ranks[0].computing == pytest.approx(0.012)


def test_a_kind_that_only_some_repetitions_took_is_not_longer_for_it() -> None:
    rows = [documents.rank_row(0, {"backward": 0.01}, repetition=index) for index in range(3)]
    rows[0]["collectives"].append({"kind": "barrier", "count": 1.0, "bytes": 0.0, "seconds": 1.0})
    ranks = summarize_ranks({"ranks": documents.ranks_member(rows)})
    assert ranks is not None
    assert {use.kind: use.seconds for use in ranks.ranks[0].collectives}["barrier"] == 0.0


def test_one_process_has_no_ranks() -> None:
    assert summarize_ranks({}) is None
    assert summarize_ranks({"ranks": {**documents.four_ranks(), "rows": []}}) is None


def test_the_rank_that_is_waited_for_is_named_with_where_and_who_waits() -> None:
    ranks = summarize_ranks({"ranks": documents.four_ranks(0.020)})
    assert ranks is not None
    assert sentences.describe_slowest(ranks) == (
        "Rank 2 is waited for: it comes last to 90 % of the collectives, 16 ms a step after the others. Its "
        "augment takes 16 ms longer than that of the others. Rank 0 waits 52 % of its time, most of it in "
        "all_reduce."
    )


def test_time_that_no_phase_covers_is_told_in_words() -> None:
    ranks = summarize_ranks({"ranks": {**documents.four_ranks(0.020), "phase": "(unattributed)"}})
    assert ranks is not None
    assert "What it does outside all phases takes 16 ms longer" in sentences.describe_slowest(ranks)


def test_every_reason_of_the_format_has_words() -> None:
    schema = json.loads(SCHEMA.read_text())
    (codes, _) = schema["properties"]["ranks"]["properties"]["reason"]["anyOf"]
    assert set(codes["enum"]) == set(sentences.REASONS)


@pytest.mark.parametrize("reason", sorted(sentences.REASONS))
def test_why_no_rank_is_named_is_said(reason: str) -> None:
    member = {**documents.four_ranks(), "reason": reason}
    ranks = summarize_ranks({"ranks": member})
    assert ranks is not None
    text = sentences.describe_slowest(ranks)
    assert text == f"Which rank is waited for isn't known: {sentences.REASONS[reason]}."


def test_a_loader_says_who_starves() -> None:
    (loader,) = summarize_loaders({"loaders": [documents.loader_row(0.008, (0.003, 0.030), 1)]})
    assert sentences.describe_loader(loader) == (
        "The loop starves: it waits 8 ms a step for batches. "
        "Worker 1 takes 30 ms for a batch, the others 3 ms."
    )
    received = replace(loader, batches=1, fetch_time=0.001, starved="workers", slowest=None)
    assert sentences.describe_loader(received).endswith(
        "loop, which takes longer than they do. Receiving batches that are ready takes it 8 ms a step."
    )


def test_loaders_of_ranks_are_apart_and_the_longest_wait_is_first() -> None:
    rows = [documents.loader_row(wait, (0.003,), rank=rank) for rank, wait in enumerate((0.001, 0.009))]
    assert [loader.rank for loader in summarize_loaders({"loaders": rows})] == [1, 0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [((1, 1, 2), 1), ((1, 2), None), ((None, None, 1), None), ((), None), ((0, 0), 0)],
)
def test_repetitions_that_disagree_name_nobody(values: tuple[int | None, ...], expected: int | None) -> None:
    assert most_named(values) == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"kind": "mark", "owner": "", "chosen": False}, "is one pass through paceline.steps"),
        (
            {"kind": "optimizer", "owner": "SGD", "chosen": False, "succeeded": "Adam"},
            "ends with the optimizer's step of SGD, which took over from Adam",
        ),
        (
            {"kind": "optimizer", "owner": "Adam", "chosen": False},
            "ends with the optimizer's step of Adam, which stepped first",
        ),
        (
            {"kind": "batch", "owner": "Tiles", "chosen": True},
            "ends with the batch of data of Tiles, as the manifest chose",
        ),
        (None, ""),
    ],
)
def test_what_ends_a_step_is_said_with_why(step: dict[str, object] | None, expected: str) -> None:
    assert sentences.describe_step(step) == expected
