"""A project by its name, or by one that it had before: what was written down under the old one goes on."""

from __future__ import annotations

from dashboard.models import FormerName, Project


def current_slug(name: str) -> str:
    """The name now of the project that was called `name` before; empty where none was."""
    return (
        FormerName.objects.filter(slug=name, project__removed_slug="")
        .values_list("project__slug", flat=True)
        .first()
        or ""
    )


def find_named_project(name: str) -> Project | None:
    """A project that has the name now comes before one that had it."""
    return (
        Project.objects.filter(slug=name).first()
        or Project.objects.filter(former_names__slug=name, removed_slug="").first()
    )
