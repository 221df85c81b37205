"""The policy in the manifest of a project's newest commit, read from its fetched mirror."""

from __future__ import annotations

from paceline.manifest import FILE_NAME, ManifestError, parse_manifest
from paceline.manifest.policy import read_policy_table

from dashboard import repositories
from dashboard.models import Project
from dashboard.policy.project_policy import keep_manifest_policy
from dashboard.repositories import RepositoryError


def follow_manifest_policy(project: Project) -> None:
    """Keep what it says now. While it can't be read, as in a broken manifest, what it said last holds."""
    if project.manifest:
        keep_manifest_policy(project, read_policy_table(project.manifest))
        return
    mirror = project.mirror
    try:
        newest = repositories.resolve_revision(mirror, "HEAD")
        if newest == project.manifest_policy_commit:
            return
        text = repositories.read_manifests(mirror, [newest]).get(newest, "")
        if isinstance(text, ManifestError):
            return
        if text:
            parse_manifest(text, FILE_NAME)
    except (RepositoryError, ManifestError):
        return
    keep_manifest_policy(project, read_policy_table(text), newest)
