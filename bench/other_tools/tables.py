"""Visits as a table: medians with intervals, and how many times as long as the site each tool takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from paceline.statistics import median_interval
from paceline.units import align_columns

from bench.other_tools.browsing import VisitPair

README = Path(__file__).resolve().parent.parent / "README.md"
PART = re.compile(r"(<!-- other tools:[^>]*-->\n).*?(<!-- end of other tools -->)", re.DOTALL)
SITE, CODESPEED, ASV = "Paceline", "codespeed", "asv"
HEADS = (
    *("commits", "tool", "first", "ratio", "again", "ratio", "may be moved"),
    *("requests", "sent", "server", ""),
)
# As many times as long as the site takes, at least, for the first visit.
TARGETS = {CODESPEED: 5.0, ASV: 1.0}


def format_visits(pairs: Sequence[VisitPair], server_ms: Mapping[tuple[int, str], float]) -> str:
    """`server_ms`: by commits and tool. Ratios are of one round's visits, and the median of the rounds."""
    rows = [list(HEADS)]
    for commits in sorted({pair.page.commits for pair in pairs}):
        by_tool = {
            tool: [pair for pair in pairs if (pair.page.commits, pair.page.tool) == (commits, tool)]
            for tool in (SITE, CODESPEED, ASV)
        }
        site = by_tool[SITE]
        for tool, visits in by_tool.items():
            if visits:
                rows.append(_format_tool(commits, tool, visits, site, server_ms[commits, tool]))
    return align_columns(rows)


def _format_tool(
    commits: int, tool: str, visits: Sequence[VisitPair], site: Sequence[VisitPair], server: float
) -> list[str]:
    first = [visit.first.drawn / own.first.drawn for visit, own in zip(visits, site, strict=True)]
    again = [visit.again.drawn / own.again.drawn for visit, own in zip(visits, site, strict=True)]
    ratios = ["", ""] if tool == SITE else [format_median(first, 2), format_median(again, 2)]
    return [
        f"{commits:,}",
        tool,
        format_median([visit.first.drawn for visit in visits]),
        ratios[0],
        format_median([visit.again.drawn for visit in visits]),
        ratios[1],
        format_median([visit.first.interactive for visit in visits]),
        str(visits[-1].first.requests),
        f"{visits[-1].first.received / 1000:,.0f} kB",
        f"{server:.0f}",
        "" if tool == SITE else judge_ratios(tool, first),
    ]


def format_median(values: Sequence[float], digits: int = 0) -> str:
    """Return the median with the 95 % interval of it."""
    interval = median_interval(values)
    ends = f" [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]" if interval else ""
    return f"{median(values):.{digits}f}{ends}"


def judge_ratios(tool: str, ratios: Sequence[float]) -> str:
    target = TARGETS[tool]
    wanted = f"at least {target:g} times" if target > 1 else "at least as fast"
    return f"{'reached' if median(ratios) >= target else 'MISSED'}: {wanted}"


def write_table(text: str) -> None:
    """Into the README of this room, between its marks."""
    filled = PART.sub(lambda found: f"{found[1]}```\n{text}\n```\n{found[2]}", README.read_text())
    README.write_text(filled)
