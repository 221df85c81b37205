"""Long lists, a page at a time; which page is in the URL."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

from django.core.exceptions import BadRequest
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from dashboard.pages.form_fields import MOST_DIGITS, parse_key
from dashboard.postgresql.compiled_queries import CompiledQuery
from dashboard.querysets.deferred_joins import read_with_details

ROWS_PER_PAGE = 40
# So many rows can be paged through, and no more are counted: what is older is found by a filter.
MOST_ROWS = 4000
LARGEST_PAGE = 10**MOST_DIGITS
LONGEST_SHOWN = 40


class RequestedPage(Page):  # type: ignore[type-arg]
    """A page of a list; `missing` is the number that was asked for where the list has no such page."""

    missing = 0


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts MOST_ROWS rows at most, however long the list is."""

    def _get_page(self, *arguments: Any, **named: Any) -> RequestedPage:
        return RequestedPage(*arguments, **named)

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        if isinstance(rows, QuerySet):
            return min(_narrow_rows(rows)[: MOST_ROWS + 1].count(), MOST_ROWS)
        return len(rows)

    @property
    def is_cut(self) -> bool:
        """True where there may be more than can be paged through."""
        rows = self.object_list
        return self.count == MOST_ROWS and (isinstance(rows, QuerySet) or len(rows) < self.count)


def _narrow_rows(rows: QuerySet[Any]) -> QuerySet[Any]:
    """To be counted: neither sorted nor with what is worked out for each row that is shown."""
    query = rows.query
    if query.combinator or query.distinct or query.group_by is not None or query.is_sliced:
        return rows
    return rows.order_by().values("pk")


def requested_page(
    request: HttpRequest,
    items: QuerySet[Any] | list[Any],
    size: int,
    name: str = "page",
    *,
    details: CompiledQuery[Any] | None = None,
    first: list[Any] | None = None,
) -> Page[Any]:
    """The page that the URL's `name` asks for; a number beyond the end gives the last page, which says so.
    BadRequest where it is no number of a page.

    A list that fits on its first page is read once and not counted. `details`: what is read of the rows
    shown, by their keys, where `items` only say which there are. `first`: the first `size + 1` of them, where
    they have been read.
    """
    number = read_page_number(request, name)
    if isinstance(items, QuerySet) and not items.query.is_sliced and is_first_page(request, name):
        first = first if first is not None else list(_read_details(items[: size + 1], details))
        if len(first) <= size:
            return BoundedPaginator(first, size).get_page(1)
        page = BoundedPaginator(items, size).get_page(1)
        page.object_list = first[:size]
        return page
    page = cast("RequestedPage", BoundedPaginator(items, size).get_page(number))
    page.missing = number if number > page.paginator.num_pages else 0
    page.object_list = _read_details(page.object_list, details)
    return page


def read_page_number(request: HttpRequest, name: str = "page") -> int:
    """From 1 on; BadRequest where it is none."""
    raw = request.GET.get(name, "")
    number = parse_key(raw) if raw else 1
    # Longer ones are beyond any page.
    if not number and not (raw.isascii() and raw.isdigit() and len(raw) > MOST_DIGITS):
        raise BadRequest(f"{name} must be a whole number from 1 on, not “{raw[:LONGEST_SHOWN]}”.")
    return number or LARGEST_PAGE


def is_first_page(request: HttpRequest, name: str = "page") -> bool:
    return request.GET.get(name) in (None, "", "1")


def first_page(first: list[Any], count: int, size: int) -> Page[Any]:
    """The first page of a list of which the first `size + 1` rows have been read, and which has `count`."""
    paginator = BoundedPaginator(first, size)
    paginator.count = min(count, MOST_ROWS)
    page = paginator.get_page(1)
    page.object_list = first[:size]
    return page


def _read_details(rows: Any, details: CompiledQuery[Any] | None) -> Any:
    if details is None or not isinstance(rows, QuerySet):
        return rows
    return read_with_details(details, rows)


def parse_whole_number(request: HttpRequest, name: str, default: int, most: int) -> int:
    """A number in the URL, at least 0 and at most `most`; BadRequest where it is no number."""
    raw = request.GET.get(name, "")
    if not raw:
        return default
    # Longer ones are beyond any row, and Python refuses to read the longest.
    if not (raw.isascii() and raw.isdigit() and len(raw) < 19):
        raise BadRequest(f"{name} must be a whole number.")
    return min(int(raw), most)
