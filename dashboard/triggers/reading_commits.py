"""The newest commits of a project's branch, read because a person asks; no run of them is asked for."""

from __future__ import annotations

from django.utils import timezone

from dashboard import dispatch, outbox, repositories, runs
from dashboard.models import Project, Trigger
from dashboard.repositories import FetchTimeout, RepositoryBusy, RepositoryError
from dashboard.runs.rewritten_history import follow_rewritten_history
from dashboard.runs.tags import follow_tags
from dashboard.triggers.receiving import TriggerError
from dashboard.triggers.request_validation import CHECK_SECONDS


def read_newest_commits(project: Project, count: int) -> int | None:
    """Store the `count` newest commits of the branch as the repository has them now. How many are new here;
    None where that takes longer than CHECK_SECONDS, and a worker reads them.

    Raises TriggerError where the repository can't be read, or has no such branch.
    """
    try:
        project.mirror.fetch(CHECK_SECONDS, CHECK_SECONDS)
        new = _store_newest_commits(project, count)
    except (FetchTimeout, RepositoryBusy):
        outbox.enqueue_message(dispatch.READ_COMMITS, project.pk, count)
        return None
    except RepositoryError as error:
        project.note_reading(str(error))
        raise TriggerError(str(error)) from error
    project.note_reading()
    return new


def read_slow_repository(project_id: int, count: int, patience: float | None = None) -> None:
    """The same with the time that a fetch takes, as nobody waits. A failure leaves a refused trigger.

    Raises Busy where somebody else has the repository for longer than `patience` seconds.
    """
    project = Project.objects.filter(pk=project_id).exclude(repository="").first()
    if project is None:
        return
    try:
        project.mirror.fetch(patience)
        _store_newest_commits(project, count)
    except RepositoryBusy as error:
        raise runs.Busy(str(error)) from error
    except RepositoryError as error:
        project.note_reading(str(error))
        Trigger.objects.create(
            project=project,
            source=Trigger.Source.POLL,
            state=Trigger.State.REFUSED,
            detail=str(error),
            resolved_at=timezone.now(),
        )
    else:
        project.note_reading()


def _store_newest_commits(project: Project, count: int) -> int:
    """From the mirror. Raises RepositoryError."""
    mirror = project.mirror
    hashes = repositories.newest_commits(mirror, count)
    found = repositories.read_commits(mirror, hashes)
    follow_rewritten_history(project)
    known = project.commits.filter(hash__in=hashes, branch=project.branch).count()
    # The known ones too: what another branch had may have been merged by moving the project's branch there.
    runs.get_or_create_commits(project, found)
    follow_tags(project)
    return len(hashes) - known
