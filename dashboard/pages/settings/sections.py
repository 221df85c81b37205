"""The sections of a project's settings: each is an address of its own, and a tab of the shell around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from dashboard.access import visitor_of
from dashboard.access.rules import is_offered
from dashboard.models import Project


@dataclass(frozen=True, slots=True)
class Section:
    """`view_name`: of its page, whose template extends `project_settings.html` by the block `section`."""

    view_name: str
    label: str


# A new section needs a line here, its address, and its rule in dashboard/access/rules.py.
SECTIONS = (
    Section("project-settings", "General"),
    Section("project-measuring", "Measuring"),
    Section("project-policy", "Policy"),
    Section("project-retention", "Retention"),
    Section("project-manifest", "Manifest"),
    Section("project-forge", "Forge"),
    Section("project-hook", "Git hook"),
    Section("project-members", "Members"),
    Section("project-tokens", "Tokens"),
    Section("project-channels", "Channels"),
    Section("project-sharing", "Sharing"),
    Section("project-audit", "Audit log"),
    Section("project-removal", "Remove"),
)


def settings_context(request: HttpRequest, slug: str, section: str) -> dict[str, Any]:
    """The project, and the tabs of the sections that this visitor may open."""
    project = get_object_or_404(Project, slug=slug)
    visitor = visitor_of(request)
    offered = [entry for entry in SECTIONS if is_offered(visitor, entry.view_name, project)]
    return {"project": project, "tab": "settings", "sections": offered, "section": section}
