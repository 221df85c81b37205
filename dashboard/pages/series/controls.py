"""What can be chosen on a series page: how much, which branch, what beside it, on which axis; by links, and
by forms that keep the rest of the address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest

from dashboard.pages.series.phases import has_phases
from dashboard.pages.series.query import BASELINE, CHOICES, FIRST, MOST_BESIDE
from dashboard.pages.series.trend import SeriesTrend, is_comparable
from dashboard.sentences.series.baselines import baseline_label
from dashboard.sentences.series.trends import REFERENCE_PROBLEMS, line_label

MOST_OFFERED = 100


def control_context(request: HttpRequest, trend: SeriesTrend, branches: Sequence[str]) -> dict[str, Any]:
    """`branches`: those of the project that may be shown."""
    query = trend.query
    rows = trend.rows
    is_full = len(rows) == query.show and rows[0].position > 0
    return {
        "query": query,
        "is_compared": bool(query.relative or query.beside or query.branch),
        "show": query.show,
        "until": query.until,
        "choices": CHOICES,
        "older": rows[0].position - 1 if rows and is_full else None,
        "views": [("", "trend"), ("phases", "phases")] if has_phases(trend.series, trend.related) else [],
        "relative_to": _relative_choices(trend),
        "reference_problem": REFERENCE_PROBLEMS.get(trend.reference.problem, ""),
        "drawn_beside": [
            {"line": line, "without": _address_without(request, line.address)} for line in trend.lines
        ],
        "offered": offered_lines(trend, branches) if len(trend.lines) < MOST_BESIDE else [],
        "beside_fields": kept_fields(request),
        "relative_fields": kept_fields(request, "relative"),
        "against_fields": kept_fields(request, "against"),
        "zoom_is_empty": query.zoom is not None and not is_within(trend),
        "part": part_text(trend),
    }


def part_text(trend: SeriesTrend) -> str:
    """`positions 120 to 180`, where the address leaves a part of the line; else empty."""
    if not trend.query.zoom or len(trend.shown) == len(trend.rows):
        return ""
    return f"positions {trend.shown[0].position} to {trend.shown[-1].position}"


def is_within(trend: SeriesTrend) -> bool:
    """Whether some run lies in the part that the address names; else all are shown."""
    first, last = trend.query.zoom or (0, 0)
    return any(first <= row.position <= last for row in trend.shown)


def _relative_choices(trend: SeriesTrend) -> list[tuple[str, str]]:
    if trend.series.metric.has_sign or trend.series.metric.is_exponent:
        return []
    named = trend.query.relative if trend.query.relative not in ("", FIRST, BASELINE) else ""
    baseline = f"to the baseline, {baseline_label(trend.baseline.name)}"
    choices = [("", "absolute"), (FIRST, "to the first"), (BASELINE, baseline)]
    return [*choices, (named, f"to {named}")] if named else choices


def kept_fields(request: HttpRequest, *left_out: str) -> list[tuple[str, str]]:
    """The address's other fields, as hidden ones of a form; which page and which part start anew."""
    names = [name for name in request.GET if name not in ("page", "zoom", *left_out)]
    return [(name, value) for name in names for value in request.GET.getlist(name) if value]


def _address_without(request: HttpRequest, beside: str) -> str:
    fields = request.GET.copy()
    fields.setlist("beside", [value for value in fields.getlist("beside") if value.strip() != beside])
    return "?" + fields.urlencode()


def offered_lines(trend: SeriesTrend, branches: Sequence[str]) -> list[tuple[str, str]]:
    """(as the address names it, in words): other branches of this series, then other series."""
    series, chosen = trend.series, set(map(str, trend.query.beside))
    others_of_it = [(f"@{branch}", f"branch {branch}") for branch in branches if branch != trend.branch]
    others = [
        (str(other.pk), line_label(other, trend.branch, series, trend.branch))
        for other in trend.related
        if is_comparable(other, series) and other.pk != series.pk
    ]
    return [line for line in [*others_of_it, *others] if line[0] not in chosen][:MOST_OFFERED]
