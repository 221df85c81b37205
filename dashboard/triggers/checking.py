"""Whether what a person asks to measure exists, said while the person still looks at the form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard import repositories
from dashboard.models import Commit, Project
from dashboard.repositories import FULL_HASH, Mirror, RepositoryError
from dashboard.triggers.receiving import TriggerError

# A person waits so long for the repository; what isn't known by then is found out by the worker.
CHECK_SECONDS = 4.0


def check_revisions_exist(project: Project, revisions: Mapping[str, Any]) -> None:
    """Raises TriggerError where nothing can be measured, or the repository, asked anew, has no such commit.

    Commits that are stored cost a query; others a look into the mirror, and only those that it lacks a fetch.
    """
    if not project.repository:
        raise TriggerError(
            f"{project.slug} has no repository, only an imported history: nothing of it can be measured."
        )
    missing = [name for name in named_revisions(revisions) if not is_stored_commit(project, name)]
    if missing:
        try:
            _check_mirror(project.mirror, missing)
        except RepositoryError as error:
            raise TriggerError(str(error), next(iter(revisions))) from error


def named_revisions(revisions: Mapping[str, Any]) -> list[str]:
    """The commits, branches and tags that are named: one, or both ends of a range."""
    if "commit" in revisions:
        return [revisions["commit"]]
    return list(repositories.parse_range(revisions["range"])) if "range" in revisions else []


def is_stored_commit(project: Project, revision: str) -> bool:
    """Whether it is the whole hash of a commit that was seen before."""
    if not FULL_HASH.fullmatch(revision):
        return False
    return Commit.objects.filter(project=project, hash=revision).exists()


def _check_mirror(mirror: Mirror, revisions: list[str]) -> None:
    """Raises RepositoryError where one of them doesn't exist."""
    missing = [revision for revision in revisions if not _has_revision(mirror, revision)]
    if not missing:
        return
    try:
        mirror.fetch(CHECK_SECONDS, CHECK_SECONDS)
    except RepositoryError:
        # Slow, busy or away: that isn't the fault of the name.
        return
    for revision in missing:
        repositories.resolve_revision(mirror, revision)


def _has_revision(mirror: Mirror, revision: str) -> bool:
    if not mirror.folder.is_dir():
        return False
    try:
        repositories.resolve_revision(mirror, revision)
    except RepositoryError:
        return False
    return True
