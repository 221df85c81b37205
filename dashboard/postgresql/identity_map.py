"""An identity map: one object for each related row of what a query lists, however often it is named there.

Fifty regressions of a project name the same project, cases and metrics: to make those fifty times takes
longer than PostgreSQL takes to find them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class IdentityMap:
    """Stands for a model where rows become objects, for one answer: of one key there is one object."""

    def __init__(self, model: Any) -> None:
        self._meta = model._meta
        self._model = model
        self._made: dict[Any, Any] = {}
        self._key_at: int | None = None

    def from_db(self, database: str, names: Sequence[str], values: Sequence[Any]) -> Any:
        if self._key_at is None:
            self._key_at = names.index(self._meta.pk.attname)
        key = values[self._key_at]
        if key not in self._made:
            self._made[key] = self._model.from_db(database, names, values)
        return self._made[key]


def map_identities(described: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """`described` is what a compiler says of a query's classes (`klass_info`); returns it for one answer."""
    if described is None:
        return None
    related = [
        {**shared, "model": IdentityMap(shared["model"])}
        for shared in map(map_identities, described.get("related_klass_infos", ()))
        if shared is not None
    ]
    return {**described, "related_klass_infos": related}
