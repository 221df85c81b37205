"""The system check that every address has a rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.core import checks
from django.urls import URLPattern, URLResolver, get_resolver

from dashboard.access.rules import RULES, rule_of


@checks.register()
def check_rules(**_: Any) -> list[checks.CheckMessage]:
    names = {name for name, _ in named_routes(get_resolver().url_patterns)}
    hint = "Add a line to RULES in dashboard/access/rules.py."
    missing: list[checks.CheckMessage] = [
        checks.Error(f"No rule says who may use the address {name!r}.", hint=hint, id="paceline.E002")
        for name in sorted(names)
        if rule_of(name) is None
    ]
    stale: list[checks.CheckMessage] = [
        checks.Error(f"The rule of {name!r} is of no address.", hint="Remove it.", id="paceline.E003")
        for name in sorted(RULES.keys() - names)
    ]
    return missing + stale


def named_routes(
    patterns: Iterable[URLPattern | URLResolver], namespace: str = "", prefix: str = ""
) -> Iterator[tuple[str, str]]:
    """(name as `reverse` takes it, route) of all addresses; what has no name stands with its route."""
    for pattern in patterns:
        route = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from named_routes(pattern.url_patterns, inner, route)
        else:
            yield f"{namespace}{pattern.name or pattern.pattern}", route
