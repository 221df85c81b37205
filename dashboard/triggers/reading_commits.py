"""The newest commits of a project's branch, read while a person waits; nothing of them is measured."""

from __future__ import annotations

from dashboard import repositories, runs
from dashboard.models import Project
from dashboard.repositories import RepositoryError
from dashboard.runs.rewritten_history import follow_rewritten_history
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
    known = set(project.commits.filter(hash__in=hashes).values_list("hash", flat=True))
    runs.get_or_create_commits(project, [facts for facts in found if facts.hash not in known])
    return len(hashes) - len(known)
