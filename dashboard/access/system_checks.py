"""The system check that every address, and every operation of the API, has a rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.core import checks
from django.urls import URLPattern, URLResolver, get_resolver

from dashboard.access.rules import OPERATION_RULES, RULES, Rule, rule_of


class NamedRoute(NamedTuple):
    """An address: its name as `reverse` takes it, and of the API's the methods that it takes."""

    name: str
    route: str
    methods: frozenset[str] = frozenset()

    @property
    def rules(self) -> dict[str, Rule | None]:
        """The rule of each of its operations: of `trigger`; of `GET api-runs` and `POST api-runs`."""
        if not self.methods:
            return {self.name: rule_of(self.name)}
        return {f"{method} {self.name}": rule_of(self.name, method) for method in sorted(self.methods)}


@checks.register()
def check_rules(**_: Any) -> list[checks.CheckMessage]:
    rules = {
        operation: rule
        for route in named_routes(get_resolver().url_patterns)
        for operation, rule in route.rules.items()
    }
    hint = "Add a line to RULES or OPERATION_RULES in dashboard/access/rules.py."
    missing: list[checks.CheckMessage] = [
        checks.Error(f"No rule says who may use the address {name!r}.", hint=hint, id="paceline.E002")
        for name, rule in sorted(rules.items())
        if rule is None
    ]
    stale: list[checks.CheckMessage] = [
        checks.Error(f"The rule of {name!r} is of no address.", hint="Remove it.", id="paceline.E003")
        for name in sorted(ruled_operations() - rules.keys())
    ]
    return missing + stale


def ruled_operations() -> set[str]:
    """The names of RULES, and `GET api-runs` and the like of OPERATION_RULES."""
    return RULES.keys() | {f"{method} {name}" for name, rules in OPERATION_RULES.items() for method in rules}


def named_routes(
    patterns: Iterable[URLPattern | URLResolver], namespace: str = "", prefix: str = ""
) -> Iterator[NamedRoute]:
    """All addresses; what has no name stands with its route."""
    for pattern in patterns:
        route = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from named_routes(pattern.url_patterns, inner, route)
        else:
            methods: frozenset[str] = getattr(pattern.callback, "methods", frozenset())
            yield NamedRoute(f"{namespace}{pattern.name or pattern.pattern}", route, methods)
