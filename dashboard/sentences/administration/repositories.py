"""Where a project's code is, without what only its owner may see."""

from __future__ import annotations

from dashboard.models import Project
from dashboard.repositories import hide_password


def repository_location(project: Project) -> str:
    """Where the code is, without the name and password that a URL may carry."""
    return hide_password(project.repository)


def repository_name(project: Project) -> str:
    """As `repository_location`; of a folder of the site's machine its name alone."""
    location = repository_location(project)
    if not location.startswith(("/", "file:")):
        return location
    return f"{location.rstrip('/').rpartition('/')[2]}, a folder of the site's machine"
