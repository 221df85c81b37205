"""What the address of a series page asks for: which runs, on which axis, beside what."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import BadRequest
from django.http import HttpRequest

from dashboard.pages.paging import parse_whole_number
from dashboard.repositories import LONGEST_BRANCH

SHOWN, MOST_SHOWN = 200, 10_000
CHOICES = (50, 200, 1000, 10_000)
LARGEST_POSITION = 2**31 - 1
# More lines than these nobody tells apart.
MOST_BESIDE = 4
LONGEST_NAME = 200
FIRST, BASELINE = "first", "baseline"


@dataclass(frozen=True, slots=True)
class LineName:
    """Another line, as the address names it: `12`, `12@feature`, or `@feature` of the page's own series."""

    series: int | None
    branch: str

    def __str__(self) -> str:
        return f"{self.series or ''}{'@' + self.branch if self.branch else ''}"


@dataclass(frozen=True, slots=True)
class TrendQuery:
    """`branch` is empty for the project's; `relative` is empty, `first`, `baseline`, or a tag or commit;
    `zoom` holds the first and the last position of the part that is drawn."""

    show: int = SHOWN
    until: int | None = None
    zoom: tuple[int, int] | None = None
    branch: str = ""
    by_date: bool = False
    by_phase: bool = False
    relative: str = ""
    beside: tuple[LineName, ...] = ()


def read_trend_query(request: HttpRequest) -> TrendQuery:
    """BadRequest with a sentence that names the field where the address can't be read."""
    return TrendQuery(
        show=max(1, parse_whole_number(request, "show", SHOWN, MOST_SHOWN)),
        until=_read_position(request, "until"),
        zoom=_read_zoom(request),
        branch=_read_text(request, "branch", LONGEST_BRANCH),
        by_date=_read_choice(request, "x", ("commit", "date")) == "date",
        by_phase=_read_choice(request, "view", ("trend", "phases")) == "phases",
        relative=_read_text(request, "relative", LONGEST_NAME),
        beside=_read_beside(request),
    )


def _read_position(request: HttpRequest, name: str) -> int | None:
    return parse_whole_number(request, name, 0, LARGEST_POSITION) if request.GET.get(name) else None


def _read_zoom(request: HttpRequest) -> tuple[int, int] | None:
    raw = request.GET.get("zoom", "")
    if not raw:
        return None
    first, dash, last = raw.partition("-")
    numbers = [part for part in (first, last) if part.isascii() and part.isdigit() and len(part) < 11]
    if not dash or len(numbers) != 2:
        raise BadRequest("zoom must be two positions, such as 120-180.")
    ends = sorted(min(int(number), LARGEST_POSITION) for number in numbers)
    return ends[0], ends[1]


def _read_choice(request: HttpRequest, name: str, choices: tuple[str, ...]) -> str:
    raw = request.GET.get(name) or choices[0]
    if raw not in choices:
        raise BadRequest(f"{name} must be {' or '.join(choices)}.")
    return raw


def _read_text(request: HttpRequest, name: str, longest: int) -> str:
    return request.GET.get(name, "").strip()[:longest].replace("\0", "")


def _read_beside(request: HttpRequest) -> tuple[LineName, ...]:
    names = dict.fromkeys(_read_line_name(raw) for raw in request.GET.getlist("beside") if raw.strip())
    if len(names) > MOST_BESIDE:
        raise BadRequest(f"beside must name at most {MOST_BESIDE} other lines.")
    return tuple(names)


def _read_line_name(raw: str) -> LineName:
    series, _, branch = raw.strip().replace("\0", "").partition("@")
    is_number = series.isascii() and series.isdigit() and len(series) < 19
    if (series and not is_number) or not (series or branch):
        raise BadRequest("beside must be the number of a series, @BRANCH, or both, such as 12@feature.")
    return LineName(int(series) if series else None, branch[:LONGEST_BRANCH])
