"""The tags of a repository, kept with the commits that they name."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Q

from dashboard import repositories
from dashboard.models import Commit, Project
from dashboard.repositories import RepositoryError

logger = logging.getLogger(__name__)


def follow_tags(project: Project) -> None:
    """Name the stored commits by the tags that the fetched mirror has, and by no others."""
    try:
        names = repositories.read_tags(project.mirror)
    except RepositoryError as error:
        logger.warning("The tags of %s can't be read: %s", project, error)
        return
    with transaction.atomic():
        rows = project.commits.filter(Q(hash__in=list(names)) | ~Q(tags=[]))
        stale = [commit for commit in rows if commit.tags != names.get(commit.hash, [])]
        for commit in stale:
            commit.tags = names.get(commit.hash, [])
        Commit.objects.bulk_update(stale, ["tags"])
