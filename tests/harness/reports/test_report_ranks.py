"""What the terminal says of several ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from paceline.document import Document, read_document
from paceline.document_rows import RankResults
from paceline.phase_names import UNATTRIBUTED
from paceline.reports.report import format_document
from paceline.reports.report_ranks import describe_loader, describe_slowest_rank, ranks_table

GOLDEN = Path(__file__).parents[2] / "golden" / "paceline.document-1-complete.json"


@pytest.fixture
def measured() -> Document:
    return read_document(GOLDEN.read_text())


@pytest.fixture
def ranks(measured: Document) -> RankResults:
    assert measured.ranks is not None
    return replace(measured.ranks, slowest=1, reason=None, phase="backward", excess=0.2)


def test_a_report_says_whose_times_it_shows(measured: Document) -> None:
    told = "times and phases are those of the rank with the longest step, counters those of rank 0"
    assert told in format_document(measured)
    assert told not in format_document(replace(measured, ranks=None))


def test_the_rank_that_is_waited_for_is_told(ranks: RankResults) -> None:
    assert describe_slowest_rank(ranks) == (
        "Rank 1 is waited for: it comes last to 90% of the collectives; it takes 200 ms a step longer in "
        "backward than the others; rank 0 waits 10% of its time, most of it in all_reduce."
    )


def test_time_that_no_phase_covers_is_told_in_words(ranks: RankResults) -> None:
    told = describe_slowest_rank(replace(ranks, phase=UNATTRIBUTED))
    assert "it takes 200 ms a step longer outside all phases than the others" in told


def test_what_is_not_known_is_told_as_such(ranks: RankResults) -> None:
    unknown = replace(ranks, slowest=None, reason="repetitions_disagree")
    assert describe_slowest_rank(unknown) == (
        "Which rank is waited for isn't known: the repetitions disagree."
    )


def test_of_collectives_on_a_device_no_time_is_told(measured: Document, ranks: RankResults) -> None:
    rows = tuple(
        replace(row, own_time=None, waits=None, last=None, overlap=None, peak_memory=None)
        for row in ranks.rows
    )
    on_device = replace(ranks, rows=rows, slowest=None, reason="device_collectives")
    _, first, *_ = ranks_table(replace(measured, ranks=on_device)).splitlines()
    # Its number and its step are known.
    assert first.split()[3:] == ["?"] * 6


@pytest.mark.parametrize(
    ("wait", "told"), [(0.002, "."), (0.009, ", which takes 9 ms a step to receive what lies ready.")]
)
def test_batches_that_lie_ready_may_take_long_to_receive(measured: Document, wait: float, told: str) -> None:
    loader = replace(measured.loaders[0], batches=2, fetch_time=0.002, starved="workers", slowest=None)
    assert describe_loader(replace(loader, wait_time=wait)).endswith(f"its workers wait for the loop{told}")
