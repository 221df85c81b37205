"""The chart beside those of other tools: what they are given, and how visits are told."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest

from bench.other_tools.asv_site import describe_index, graph_path, localize_libraries
from bench.other_tools.browsing import ChartPage, Visit, VisitPair
from bench.other_tools.codespeed_site import dump_commits
from bench.other_tools.history import MeasuredCommit
from bench.other_tools.tables import ASV, CODESPEED, HEADS, PART, README, SITE, format_visits

START = datetime(2026, 1, 1, tzinfo=UTC)
COMMITS = [
    MeasuredCommit(f"{number:040x}", f"Change {number}", START + timedelta(hours=number), 0.5, 0.4, 0.8)
    for number in range(3)
]


def test_libraries_of_other_hosts_come_from_the_page_s_own() -> None:
    page = '<script src="https://code.jquery.com/jquery-3.3.1.min.js" integrity="x" crossorigin="y"></script>'
    assert localize_libraries(page) == '<script src="lib/jquery-3.3.1.min.js"></script>'
    own = '<script src="asv.js"></script>'
    assert localize_libraries(own) == own


def test_an_unknown_library_is_named() -> None:
    with pytest.raises(ValueError, match=r"new\.min\.js"):
        localize_libraries('<script src="https://example.com/a/new.min.js"></script>')


def test_the_index_has_every_commit_and_leads_to_the_graph() -> None:
    index = describe_index(COMMITS)
    assert json.loads(json.dumps(index))["revision_to_hash"]["2"] == COMMITS[2].hash
    assert graph_path().as_posix().startswith("graphs/arch-x86_64/branch-main/")
    assert graph_path().name == "step_time.json"


def test_codespeed_gets_the_same_values() -> None:
    first, *_ = json.loads(dump_commits(COMMITS))
    assert (first["value"], first["std_dev"]) == (0.5, pytest.approx(0.1))
    assert datetime.fromisoformat(first["date"]).tzinfo is None


def visit_pairs(tool: str, drawn: list[float]) -> list[VisitPair]:
    page = ChartPage(tool, 200, "/", "svg")
    return [VisitPair(page, Visit(ms, ms, 12, 4_000), Visit(ms / 2, ms / 2, 2, 400)) for ms in drawn]


def test_ratios_are_those_of_one_round() -> None:
    pairs = [
        *visit_pairs(SITE, [100, 200, 100]),
        *visit_pairs(CODESPEED, [600, 1200, 600]),
        *visit_pairs(ASV, [90, 180, 90]),
    ]
    _, site, codespeed, asv = format_visits(pairs, defaultdict(float)).splitlines()
    assert "100 [100, 200]" in site
    assert "6.00 [6.00, 6.00]" in codespeed
    assert codespeed.endswith("reached: at least 5 times")
    assert asv.endswith("MISSED: at least as fast")


def test_the_written_table_has_each_tool_at_each_size() -> None:
    found = PART.search(README.read_text())
    assert found
    lines = [line for line in found.group(0).splitlines() if line]
    heads = next(line for line in lines if line.startswith("commits"))
    assert heads.split("  ")[0] == HEADS[0]
    assert sum(f"  {SITE} " in line for line in lines) == sum(f" {ASV} " in line for line in lines) == 3
