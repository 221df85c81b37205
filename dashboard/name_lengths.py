"""How long names from outside may be: as long as the columns that keep them."""

from __future__ import annotations

from django.db.models import Field, Model

from dashboard.models import Case, Metric, Pool, Series


def column_length(model: type[Model], column: str) -> int:
    """How many characters a column of text takes."""
    field = model._meta.get_field(column)
    return field.max_length or 0 if isinstance(field, Field) else 0


LONGEST_BENCHMARK = column_length(Case, "benchmark")
LONGEST_KEY = column_length(Case, "key")
LONGEST_METRIC = column_length(Metric, "name")
LONGEST_PHASE = column_length(Series, "phase")
LONGEST_POOL = column_length(Pool, "name")
LONGEST_UNIT = column_length(Metric, "unit")
