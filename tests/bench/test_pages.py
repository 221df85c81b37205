"""The figures of pages: what is timed, and what is written of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench.pages.__main__ import SIZES, plan_of_scale
from bench.pages.measuring import PageFigures
from bench.pages.requests import AnswerTimes, time_requests
from bench.pages.tables import CURVE, END, TABLE, format_curve, format_pages, write_figures


class CountingHandler(BaseHTTPRequestHandler):
    """Answers /page, and nothing else; notes how many requests were in flight at once."""

    gate = threading.Barrier(4, timeout=60)
    asked = 0

    def do_GET(self) -> None:
        if self.path == "/page":
            type(self).asked += 1
            # Passed only where four wait here together.
            self.gate.wait()
        self.send_response(200 if self.path == "/page" else 404)
        self.end_headers()
        self.wfile.write(b"x" * 100_000)

    def log_message(self, *_arguments: object) -> None:
        """Nothing into the tests' output."""


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), CountingHandler)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_as_many_requests_are_in_flight_as_were_asked_for(port: int) -> None:
    times = time_requests(port, "/page", 8, 4)
    assert (len(times.seconds), CountingHandler.asked) == (8, 8)
    assert times.received > 100_000


def test_an_answer_that_is_no_page_ends_it(port: int) -> None:
    with pytest.raises(RuntimeError, match="/nothing answered"):
        time_requests(port, "/nothing", 1, 1)


def page_figures(alone: float = 20.0, queries: int = 9) -> PageFigures:
    first = AnswerTimes([0.02, 0.03, 0.08], 9_000)
    again = AnswerTimes([0.004] * 19 + [0.2], 9_000)
    return PageFigures("/", first, again, 25.0, alone, queries, 52_000)


def test_json_has_the_worse_of_first_and_again() -> None:
    figures = page_figures()
    assert figures.as_json().keys() == {"p50_ms", "p95_ms", "alone_ms", "queries", "bytes"}
    assert figures.p50_ms == pytest.approx(30)
    assert figures.p95_ms == pytest.approx(75)
    assert figures.missed_targets == []


def test_a_missed_target_is_named() -> None:
    table = format_pages({"overview": page_figures(alone=55.0, queries=13)})
    assert table.splitlines()[-1].endswith("MISSED: alone 55 ms, 13 queries")


def test_the_curve_has_a_column_for_each_size() -> None:
    sizes = [f"{plan_of_scale(scale).points:,}" for scale in SIZES]
    table = format_curve(sizes, [{"overview": 1.0}] * 4, [{"overview": 2.0}] * 4)
    assert table.splitlines()[-1].split() == ["overview", *["1.0"] * 4, *["2.0"] * 4]
    for scale in SIZES:
        plan_of_scale(scale).check_sizes()


def test_the_table_is_written_beside_the_curve(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"head\n{TABLE}\nold\n{END}\nbetween\n{CURVE}\ncurve\n{END}\ntail\n")
    write_figures(page, TABLE, "new")
    assert page.read_text() == f"head\n{TABLE}\n```\nnew\n```\n{END}\nbetween\n{CURVE}\ncurve\n{END}\ntail\n"


def test_a_page_without_the_place_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("head\n")
    with pytest.raises(ValueError, match="has no"):
        write_figures(page, TABLE, "new")
    assert page.read_text() == "head\n"
