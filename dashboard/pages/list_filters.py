"""What a list's address may filter by: each value is one that is known, or one sentence says so."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest

from dashboard.models import Commit, Machine, Project

LONGEST_TEXT = 200
MOST_WORDS = 8


class FilterError(ValueError):
    """A value that no list can be filtered by; the message is one sentence that names the field."""


def split_words(text: str) -> list[str]:
    return text[:LONGEST_TEXT].lower().replace("\x00", " ").split()[:MOST_WORDS]


def matches_words(text: str, words: str) -> bool:
    """Whether a text holds each of the words, in any order and case; no word matches all."""
    folded = text.lower()
    return all(word in folded for word in split_words(words))


def match_words(words: str, *fields: str) -> Q:
    """Rows of which each word stands in one of these fields."""
    found = Q()
    for word in split_words(words):
        anywhere = Q()
        for field in fields:
            anywhere |= Q(**{f"{field}__icontains": word})
        found &= anywhere
    return found


def read_choice(request: HttpRequest, name: str, choices: Collection[str]) -> str:
    """Empty where the address doesn't say. Raises FilterError."""
    value = request.GET.get(name, "").strip()
    if value and value not in choices:
        raise FilterError(f"{name} must be one of {', '.join(choices)}, not {_quote_value(value)}.")
    return value


def read_date(request: HttpRequest, name: str) -> date | None:
    """Raises FilterError."""
    value = request.GET.get(name, "").strip()
    if not value:
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise FilterError(f"{name} must be a date such as 2026-11-01, not {_quote_value(value)}.") from None


def _quote_value(value: str) -> str:
    return f"“{value[:60]}”"


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The filters that lists of runs and of regressions share, as they were asked for; empty: any.

    `since` and `until` are days, both included, in UTC.
    """

    case: str = ""
    machine: str = ""
    branch: str = ""
    since: date | None = None
    until: date | None = None

    def __bool__(self) -> bool:
        return bool(self.case or self.machine or self.branch or self.since or self.until)

    def match_period(self, field: str) -> Q:
        found = Q()
        if self.since:
            found &= Q(**{f"{field}__gte": _day_start(self.since)})
        if self.until:
            found &= Q(**{f"{field}__lt": _day_start(self.until + timedelta(days=1))})
        return found


def _day_start(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def read_list_filter(request: HttpRequest, project: Project | None) -> ListFilter:
    """Raises FilterError for a machine or a branch that isn't known, and for what is no date."""
    filters = ListFilter(
        case=request.GET.get("case", "").strip()[:LONGEST_TEXT].replace("\x00", " "),
        machine=request.GET.get("machine", "").strip().replace("\x00", " "),
        branch=request.GET.get("branch", "").strip().replace("\x00", " "),
        since=read_date(request, "since"),
        until=read_date(request, "until"),
    )
    if filters.since and filters.until and filters.since > filters.until:
        raise FilterError(f"since, {filters.since}, must not be after until, {filters.until}.")
    if filters.until and filters.until.year > 9000:
        raise FilterError("until must be a date before the year 9000.")
    if filters.machine and not Machine.objects.filter(name=filters.machine).exists():
        raise FilterError(f"machine must be the name of a machine, not {_quote_value(filters.machine)}.")
    if filters.branch and not _has_branch(filters.branch, project):
        raise FilterError(f"No commit of the branch {_quote_value(filters.branch)} is known.")
    return filters


def _has_branch(branch: str, project: Project | None) -> bool:
    """Where no project is named each of the visible ones may have it: an unknown one lists nothing."""
    if project is None:
        return True
    return Project.objects.filter(
        Exists(Commit.objects.filter(project=OuterRef("pk"), branch=branch)), pk=project.pk
    ).exists()
