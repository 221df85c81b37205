"""Checks as their list, their page and the API read them."""

from __future__ import annotations

from django.db.models import QuerySet

from dashboard.models import Check
from dashboard.querysets.deferred_joins import PROJECT_DETAILS, compose_details


def checks_with_related() -> QuerySet[Check]:
    """With all that a line about a check names."""
    return Check.objects.select_related(
        "project", "pull_request", "base_commit", "head_commit", "requested_by"
    )


CHECKS_OF_KEYS = compose_details(
    lambda: checks_with_related().defer(*(f"project__{name}" for name in PROJECT_DETAILS))
)
