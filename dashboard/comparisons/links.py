"""Addresses of comparisons: of what somebody looks at, and one that shows the same later too."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

from dashboard.comparisons.comparing import Comparison
from dashboard.models import Project


def compare_address(project: Project, **fields: str) -> str:
    """The page with these of its fields; empty ones are left out."""
    written = {name: text for name, text in fields.items() if text}
    query = f"?{urlencode(written)}" if written else ""
    return f"{reverse('project-compare', args=[project.slug])}{query}"


def lasting_address(comparison: Comparison) -> str:
    """By hashes and runs, with the case that is shown: branches move on, then another case differs most."""
    chosen = comparison.chosen
    # Two runs have their case with them.
    two_runs = comparison.base.run and comparison.head.run
    case = chosen.pair.as_fields() if chosen and not two_runs else {}
    return compare_address(comparison.project, base=comparison.base.name, head=comparison.head.name, **case)
