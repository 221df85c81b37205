"""Registering a repository as a project."""

from __future__ import annotations

import math
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from paceline import manifest as manifests
from paceline.manifest import ManifestError

from dashboard.access import Actor, AuditAction, record_action
from dashboard.models import Project
from dashboard.policy.newest_manifest import follow_manifest_policy
from dashboard.projects.kept_files import KeptFileError, keep_files, read_folder, read_kept_files
from dashboard.projects.names import find_named_project
from dashboard.projects.repository_location import ProjectError, absolute_address
from dashboard.repositories import RepositoryError, split_credentials

# The numbers of a project that people may set: option -> field.
NUMBER_FIELDS = {
    "false-alerts": "false_alerts_per_100_commits",
    "hours-per-week": "training_hours_per_week",
    "experiment-minutes": "experiment_minutes",
    "experiment-pairs": "experiment_pairs",
    "experiment-share": "experiment_share",
    "poll": "poll_minutes",
}


@dataclass(frozen=True, slots=True)
class NewProject:
    """What a project is added by. `repository`: a path or a URL.

    `manifest` is a file that the site keeps for code that can't be changed, `files` a folder of files that it
    puts beside that code; `numbers` has the names of NUMBER_FIELDS, None where one stays as it is. A private
    project is read by its members alone.
    """

    slug: str
    repository: str
    branch: str = "main"
    manifest: Path | None = None
    files: Path | None = None
    numbers: Mapping[str, float | None] | None = None
    private: bool = False


def add_project(new: NewProject, actor: Actor | None = None) -> Project:
    """Register a repository that can be fetched and has the branch; raises ProjectError.

    Adding the same project again returns it with these numbers and files, and private where that is asked
    for. `actor`: who does it, for the audit log.
    """
    given = {NUMBER_FIELDS[name]: value for name, value in (new.numbers or {}).items() if value is not None}
    address, credentials = split_credentials(absolute_address(new.repository))
    wanted = Project(
        slug=new.slug,
        repository=address,
        credentials=credentials,
        branch=new.branch,
        visibility=Project.Visibility.PRIVATE if new.private else Project.Visibility.PUBLIC,
        manifest=_read_manifest(new.manifest),
    )
    kept = _read_files(new.files, new.manifest)
    existing = find_named_project(new.slug)
    if existing is not None:
        _replace_files(_check_same_project(existing, wanted), kept, actor)
        return _change_project(_check_same_project(existing, wanted), wanted, given, actor)
    wanted.hook_secret = secrets.token_urlsafe(32)
    _set_numbers(wanted, given)
    _check_repository(wanted)
    try:
        with transaction.atomic():
            wanted.save(force_insert=True)
            keep_files(None, wanted, kept)
            if actor is not None:
                record_action(actor, AuditAction.PROJECT_ADDED, wanted, wanted, visibility=wanted.visibility)
    except IntegrityError:
        return _check_same_project(Project.objects.get(slug=new.slug), wanted)
    follow_manifest_policy(wanted)
    return wanted


def _replace_files(project: Project, files: Mapping[str, str], actor: Actor | None) -> None:
    """Keep these files and no others; none given: those that are kept stay."""
    if files:
        gone = dict.fromkeys(read_kept_files(project).keys() - files.keys())
        keep_files(actor, project, {**gone, **files})


def _read_files(folder: Path | None, manifest: Path | None) -> dict[str, str]:
    if folder is None:
        return {}
    if manifest is None:
        raise ProjectError("--files needs --manifest: files are kept beside a manifest that is kept, too.")
    try:
        return read_folder(folder)
    except KeptFileError as error:
        raise ProjectError(str(error)) from error


def _check_same_project(existing: Project, wanted: Project) -> Project:
    for name in ("repository", "branch", "manifest"):
        if getattr(existing, name) != getattr(wanted, name):
            raise ProjectError(f"There is a project {existing.slug} already, with another {name}.")
    return existing


def _change_project(
    existing: Project, wanted: Project, given: Mapping[str, float], actor: Actor | None
) -> Project:
    """Take new numbers, other credentials once they are known to work, and hide it where that is wanted."""
    before = {field: getattr(existing, field) for field in (*given, "credentials", "visibility")}
    _set_numbers(existing, given)
    if wanted.credentials and wanted.credentials != existing.credentials:
        existing.credentials = wanted.credentials
        _check_repository(existing)
    # Nobody shows it to everybody by adding it again.
    if wanted.visibility == Project.Visibility.PRIVATE:
        existing.visibility = wanted.visibility
    changed = [field for field, value in before.items() if getattr(existing, field) != value]
    if changed:
        with transaction.atomic():
            existing.save(update_fields=changed)
            if actor is not None:
                shown = {name: getattr(existing, name) for name in changed if name != "credentials"}
                about = {"fields": changed, "values": shown}
                record_action(actor, AuditAction.SETTINGS_CHANGED, existing, existing, **about)
    return existing


def _set_numbers(project: Project, given: Mapping[str, float]) -> None:
    for field, value in given.items():
        # No validator's bound refuses what is no number.
        if math.isnan(value):
            raise ProjectError(f"{field}: it must be a number, not nan.")
        setattr(project, field, value)
    try:
        project.full_clean(validate_unique=False)
    except ValidationError as error:
        field, sentences = next(iter(error.message_dict.items()))
        raise ProjectError(f"{field}: {sentences[0]}") from error


def _read_manifest(manifest: Path | None) -> str:
    if manifest is None:
        return ""
    try:
        text = manifests.read_manifest(manifest, str(manifest))
        manifests.parse_manifest(text, str(manifest))
    except ManifestError as error:
        raise ProjectError(error.sentence) from error
    return text


def _check_repository(project: Project) -> None:
    mirror = project.mirror
    fresh = not mirror.folder.exists()
    try:
        mirror.fetch()
        branches = mirror.branches()
        if project.branch not in branches:
            reason = f"its branches are: {', '.join(branches[:8])}" if branches else "it has no commit yet"
            raise ProjectError(f"The repository has no branch {project.branch!r}; {reason}.")
    except (RepositoryError, ProjectError) as error:
        if fresh:
            shutil.rmtree(mirror.folder, ignore_errors=True)
        raise ProjectError(str(error)) from error
