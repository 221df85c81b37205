"""Figures as text: a table of the pages, and the curve over the sizes of history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from paceline.units import align_columns

from bench.pages.measuring import PageFigures

README = Path(__file__).resolve().parent / "README.md"
# Before each text that is written into the page; it ends at the next END.
TABLE = "<!-- figures: make bench-pages WRITE=1 -->"
CURVE = "<!-- curve: make bench-pages CURVE=1 WRITE=1 -->"
END = "<!-- end of figures -->"
HEADS = (
    "page",
    "cold",
    "alone",
    "first p50",
    "first p95",
    "again p50",
    "again p95",
    "queries",
    "bytes",
    "sent",
    "",
)


def format_pages(figures: Mapping[str, PageFigures]) -> str:
    rows = [
        [
            name,
            *(
                f"{value:.1f}"
                for value in (
                    page.cold_ms,
                    page.alone_ms,
                    page.first.p50,
                    page.first.p95,
                    page.again.p50,
                    page.again.p95,
                )
            ),
            str(page.queries),
            f"{page.size:,}",
            f"{page.again.received:,}",
            "" if not page.missed_targets else "MISSED: " + ", ".join(page.missed_targets),
        ]
        for name, page in figures.items()
    ]
    return align_columns([list(HEADS), *rows])


def format_curve(
    sizes: Sequence[str], alone: Sequence[Mapping[str, float]], p95: Sequence[Mapping[str, float]]
) -> str:
    """By page the milliseconds alone and of p95 in flight, at each size."""
    heads = ["page", *(f"alone, {size}" for size in sizes), *(f"p95, {size}" for size in sizes)]
    rows = [
        [name, *(f"{values[name]:.1f}" for values in alone), *(f"{values[name]:.1f}" for values in p95)]
        for name in alone[0]
    ]
    return align_columns([heads, *rows])


def write_figures(page: Path, begin: str, text: str) -> None:
    """Put `text` between the marker `begin` and the END after it. ValueError where the page lacks them."""
    head, _, rest = page.read_text().partition(begin)
    _, end, tail = rest.partition(END)
    if not end:
        raise ValueError(f"{page} has no {begin} with {END} after it.")
    page.write_text(f"{head}{begin}\n```\n{text}\n```\n{END}{tail}")
