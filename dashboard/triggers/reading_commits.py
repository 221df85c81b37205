"""The newest commits of a project's branch, read while a person waits; no run of them is asked for."""

from __future__ import annotations

from dashboard import repositories, runs
from dashboard.models import Project
from dashboard.repositories import RepositoryError
from dashboard.runs.rewritten_history import follow_rewritten_history
from dashboard.runs.tags import follow_tags
from dashboard.triggers.checking import CHECK_SECONDS
from dashboard.triggers.receiving import TriggerError


def read_newest_commits(project: Project, count: int) -> int:
    """Store the `count` newest commits of the branch as the repository has them now. How many are new here.

    Raises TriggerError where the repository doesn't answer within CHECK_SECONDS, or has no such branch.
    """
    mirror = project.mirror
    try:
        mirror.fetch(CHECK_SECONDS, CHECK_SECONDS)
        hashes = repositories.newest_commits(mirror, count)
        found = repositories.read_commits(mirror, hashes)
    except RepositoryError as error:
        raise TriggerError(str(error)) from error
    follow_rewritten_history(project)
    known = project.commits.filter(hash__in=hashes, branch=project.branch).count()
    # The known ones too: what another branch had may have been merged by moving the project's branch there.
    runs.get_or_create_commits(project, found)
    follow_tags(project)
    return len(hashes) - known
