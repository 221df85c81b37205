"""The projects whose quiet hours are now: nothing of theirs is started."""

from __future__ import annotations

from typing import Any

from dashboard.models import Project
from dashboard.postgresql.compiled_queries import CompiledQuery

_QUIET_PROJECTS: CompiledQuery[Any] = CompiledQuery(
    lambda: Project.objects.filter(Project.IS_QUIET).order_by().values_list("pk", flat=True)
)


def quiet_projects() -> list[int]:
    """Their keys, by the database's clock."""
    return _QUIET_PROJECTS.read_rows()
