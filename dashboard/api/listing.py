"""Lists of the API: filtered, and read a page at a time from where the last one ended.

A page is found by the values that its rows are ordered by, not by its number: the thousandth costs as much as
the first, and nothing is seen twice when rows come in between.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

import orjson
from django.core.exceptions import FieldError, ValidationError
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from pydantic import BaseModel, Field

from dashboard.postgresql.compiled_queries import CompiledQuery
from dashboard.problem_details import ApiError
from dashboard.querysets.deferred_joins import read_with_details

DEFAULT_LIMIT, MOST_ITEMS = 50, 200
LONGEST_CURSOR = 1000

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")


class PageQuery(BaseModel):
    """What each list takes beside its filters."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MOST_ITEMS, description="How many at most.")
    after: str = Field(
        "", max_length=LONGEST_CURSOR, description="Where the page begins: from `next` of the one before it."
    )


class ListedPage(BaseModel):
    """A page of a list."""

    next: str | None = Field(description="The address of the next page; null: this is the last one.")


def read_page(
    request: HttpRequest,
    query: PageQuery,
    rows: QuerySet[Row],
    order: Sequence[str],
    describe: Callable[[Row], Item],
    details: CompiledQuery[Row] | None = None,
) -> dict[str, Any]:
    """The members of a ListedPage. `order`: columns that tell rows apart, all rising or all falling (`-`).

    `details`: what is read of the rows listed, by their keys, where `rows` only say which there are.
    """
    falling = order[0].startswith("-")
    columns = [name.lstrip("-") for name in order]
    found = rows.order_by(*order)
    if query.after:
        found = _rows_behind(found, columns, read_cursor(query.after, len(columns)), falling=falling)
    found = found[: query.limit + 1]
    listed = list(found) if details is None else read_with_details(details, found)
    shown = listed[: query.limit]
    following = next_address(request, shown[-1], columns) if len(listed) > len(shown) else None
    return {"items": [describe(row) for row in shown], "next": following}


def _rows_behind(
    rows: QuerySet[Row], columns: Sequence[str], values: Sequence[Any], *, falling: bool
) -> QuerySet[Row]:
    comparison = "lt" if falling else "gt"
    behind = Q()
    for index, (column, value) in enumerate(zip(columns, values, strict=True)):
        same = dict(zip(columns[:index], values[:index], strict=True))
        behind |= Q(**same, **{f"{column}__{comparison}": value})
    try:
        return rows.filter(behind)
    except (TypeError, ValueError, FieldError, ValidationError):
        raise _refused_cursor() from None


def next_address(request: HttpRequest, row: Model, columns: Sequence[str]) -> str:
    query = request.GET.copy()
    query["after"] = write_cursor([getattr(row, column) for column in columns])
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")


def write_cursor(values: Sequence[Any]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(list(values))).decode().rstrip("=")


def read_cursor(cursor: str, count: int) -> list[Any]:
    """What `write_cursor` has written; ApiError for anything else."""
    try:
        values = orjson.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
    except (binascii.Error, ValueError):
        raise _refused_cursor() from None
    # A NUL would reach Postgres, which has no text for it.
    known = isinstance(values, list) and len(values) == count
    if not known or any(not isinstance(value, str | int) or "\0" in str(value) for value in values):
        raise _refused_cursor()
    return list(values)


def _refused_cursor() -> ApiError:
    sentence = "after: take it from `next` of the page before, as it stands there."
    return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, "after")
