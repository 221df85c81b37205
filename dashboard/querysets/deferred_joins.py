"""Deferred joins: the rows of a list are chosen before anything is joined to them.

A list shows a few rows of many, each with what a dozen joins bring. Asked in one breath, PostgreSQL joins
what belongs to every row that fits, sorts, and throws nearly all of it away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter

Row = TypeVar("Row", bound=Model)
# What lists name no part of: psycopg hands it over for each row, and Django decodes it each time.
PROJECT_DETAILS = ("manifest", "manifest_policy", "risk")
PAIR_DETAILS = ("phases", "typical_phases", "steps", "others", "sweeps")
MACHINE_DETAILS = ("fingerprint", "box")


def is_among(rows: QuerySet[Any]) -> Q:
    """The rows whose key is that of one of these; `rows` may be a union."""
    return Q(pk__in_array=rows.values("pk"))


def compose_details(rows: Callable[[], QuerySet[Row]]) -> CompiledQuery[Row]:
    """What `read_with_details` reads of rows: as `rows()` lists them."""
    return CompiledQuery(lambda *order: rows().filter(pk__in_array=Parameter("keys")).order_by(*order))


def read_with_details(details: CompiledQuery[Row], rows: QuerySet[Row]) -> list[Row]:
    """These rows, in their order, each with what `details` reads of those whose keys are its `keys`.

    `rows` say which there are: filtered, sorted, cut. The shape of `details` is the order.
    """
    order = tuple(rows.query.order_by) or tuple(rows.model._meta.ordering or ())
    return details.read_rows(*order, keys=rows.values("pk"))
