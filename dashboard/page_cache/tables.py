"""Which tables pages show, whose project a row is of, and which columns no page shows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from django.apps import apps
from django.db.models import ForeignKey, Model

from dashboard.models import Project

APPS = ("dashboard", "auth")
# What no cached page shows; a page that does must not be cached.
UNSHOWN_TABLES = frozenset(
    {
        "dashboard_revision",
        "dashboard_throttle",
        # Of the pages on which a project is added or its repository changed.
        "dashboard_repositorytest",
        "dashboard_forgedelivery",
    }
)
# Rewritten all the time. A moment at which somebody was last seen counts only where it ends a silence: pages
# say for how long, as they say how long ago a repository was read, and are made again after a minute by
# themselves.
UNSHOWN_COLUMNS: dict[str, frozenset[str]] = {
    "dashboard_run": frozenset({"lease_until", "lease"}),
    "dashboard_experiment": frozenset({"lease_until", "lease"}),
    "dashboard_machine": frozenset({"seen_at"}),
    "dashboard_project": frozenset({"repository_read_at"}),
    "dashboard_heartbeat": frozenset({"seen_at"}),
    "dashboard_apitoken": frozenset({"last_used_at"}),
    "auth_user": frozenset({"last_login"}),
}
SEEN_COLUMN, SILENCE = "seen_at", "30 seconds"


@dataclass(frozen=True, slots=True)
class Join:
    """From the column `source` to the row of `table` whose `key` it holds."""

    source: str
    table: str
    key: str


@dataclass(frozen=True, slots=True)
class ShownTable:
    """`joins` lead from a row to the one whose `project_column` names the project; empty: it is of none."""

    name: str
    joins: tuple[Join, ...]
    project_column: str


def list_shown_tables() -> list[ShownTable]:
    models = [
        model
        for label in APPS
        for model in apps.get_app_config(label).get_models(include_auto_created=True)
        if model._meta.db_table not in UNSHOWN_TABLES and model._meta.managed
    ]
    return [_describe_table(model) for model in models]


def _describe_table(model: type[Model]) -> ShownTable:
    """With the shortest way to the project, of those that are never empty first."""
    name = model._meta.db_table
    if model is Project:
        return ShownTable(name, (), "id")
    waiting: deque[tuple[type[Model], tuple[Join, ...]]] = deque([(model, ())])
    seen = {model}
    while waiting:
        current, joins = waiting.popleft()
        keys = [field for field in current._meta.concrete_fields if isinstance(field, ForeignKey)]
        for field in sorted(keys, key=lambda field: field.null):
            target: type[Model] = field.related_model
            if target is Project:
                return ShownTable(name, joins, field.column)
            if target not in seen:
                seen.add(target)
                join = Join(field.column, target._meta.db_table, str(target._meta.pk.column))
                waiting.append((target, (*joins, join)))
    return ShownTable(name, (), "")
