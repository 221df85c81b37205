"""Looking for new commits and pull requests, where no hook tells of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from dashboard import dispatch
from dashboard.forges.errors import ForgeAnswerError, ForgeBusy
from dashboard.forges.forge import forge_of
from dashboard.models import ForgeConnection, Project, RepositoryPoll, Run, Trigger
from dashboard.policy.project_policy import project_policy
from dashboard.repositories import RepositoryError
from dashboard.runs.planning import PUSHED
from dashboard.triggers.open_pull_requests import send_changes
from dashboard.triggers.receiving import TriggerOrigin, receive_trigger
from dashboard.triggers.refs import HEADS, ignored_ref

MOST_DUE = 100
# Of branches and tags so many are asked for by one look.
MOST_MOVED = 100
# After each failure in a row the pause is twice as long, up to the longest.
LONGEST_PAUSE = timedelta(hours=6)
MOST_DOUBLINGS = 12


class PollColumns(NamedTuple):
    """The columns of a poll that count failures in a row and say when it is asked again."""

    failures: str
    next_at: str


COMMITS = PollColumns("failures", "next_at")
PULL_REQUESTS = PollColumns("forge_failures", "forge_next_at")


def send_due_polls() -> None:
    """Send a task for each project whose next look is due, of several sweeps by one."""
    for project in due_projects()[:MOST_DUE]:
        if claim_poll(project):
            dispatch.send_task(dispatch.POLL, project.pk)


def due_projects() -> QuerySet[Project]:
    due = Q(poll=None) | Q(poll__next_at__lte=Now())
    return Project.objects.filter(due, poll_minutes__gt=0).exclude(repository="").order_by("pk")


def claim_poll(project: Project) -> bool:
    """Whether the look is this caller's. The one after it is planned: a lost message costs one look."""
    poll, new = RepositoryPoll.objects.get_or_create(
        project=project, defaults={"next_at": Now() + usual_pause(project)}
    )
    if new:
        return True
    due = RepositoryPoll.objects.filter(pk=poll.pk, next_at__lte=Now())
    return due.update(next_at=Now() + usual_pause(project)) == 1


def usual_pause(project: Project) -> timedelta:
    return timedelta(minutes=project.poll_minutes)


def poll_project(project_id: int) -> None:
    """Ask the repository for its branch, and a connected forge for its pull requests. A failure leaves a
    refused trigger, once until a look succeeds again."""
    project = Project.objects.filter(pk=project_id, poll_minutes__gt=0).first()
    if project is None:
        return
    try:
        follow_branch(project, project.mirror.remote_tip())
        follow_other_refs(project)
    except RepositoryError as error:
        project.note_reading(str(error))
        note_failure(project, str(error), COMMITS)
    else:
        project.note_reading()
        RepositoryPoll.objects.filter(project=project).update(failures=0)
    ask_forge(project)


def ask_forge(project: Project) -> None:
    """Ask a connected forge for its pull requests, unless it wants to be left alone."""
    poll = RepositoryPoll.objects.filter(project=project)
    if poll.filter(forge_next_at__gt=Now()).exists():
        return
    try:
        follow_pull_requests(project)
    except ForgeBusy as error:
        poll.update(forge_next_at=error.until)
    except ForgeAnswerError as error:
        note_failure(project, str(error), PULL_REQUESTS)
    else:
        poll.update(forge_failures=0, forge_next_at=None)


def follow_branch(project: Project, tip: str) -> None:
    """Ask for the commits up to the branch's newest one, unless somebody has asked for them already."""
    with transaction.atomic():
        poll, _ = RepositoryPoll.objects.select_for_update().get_or_create(
            project=project, defaults={"next_at": Now() + usual_pause(project)}
        )
        if poll.tip == tip:
            return
        if not is_requested(project, tip) or leaves_commits_out(project, poll.tip, tip):
            revisions = {"range": f"{poll.tip}..{tip}"} if poll.tip else {"commit": tip}
            receive_trigger(project, TriggerOrigin(Trigger.Source.POLL), revisions)
        RepositoryPoll.objects.filter(pk=poll.pk).update(tip=tip)


def follow_other_refs(project: Project) -> None:
    """Ask for what was pushed to the other branches and tags that the policy measures.

    The first look, and the first after the policy, only remembers them: what was there before isn't new.
    """
    policy = project_policy(project)
    if not policy.measures_other_refs(project.branch):
        RepositoryPoll.objects.filter(project=project).exclude(refs={}).update(refs={})
        return
    found = project.mirror.remote_refs("refs/heads/*", "refs/tags/*")
    own = f"{HEADS}{project.branch}"
    refs = {ref: sha for ref, sha in found.items() if ref != own and not ignored_ref(project, ref)}
    with transaction.atomic():
        poll = RepositoryPoll.objects.select_for_update().get(project=project)
        before = poll.refs
        moved = [ref for ref, sha in refs.items() if before.get(ref) != sha] if before else []
        # Those above the most stay as they were, and are asked for by the next look.
        left = set(moved[MOST_MOVED:])
        kept = {ref: before[ref] for ref in left if ref in before}
        seen = {ref: sha for ref, sha in refs.items() if ref not in left}
        # The branch too: told apart from a repository that was never looked at.
        poll.refs = {own: found.get(own, ""), **seen, **kept}
        poll.save(update_fields=["refs"])
        for ref in moved[:MOST_MOVED]:
            # A tag is reported all the same: its commit is named by it.
            if ref.startswith(HEADS) and is_requested(project, refs[ref]):
                continue
            span = before.get(ref) if ref.startswith(HEADS) else None
            revisions = {"range": f"{span}..{refs[ref]}"} if span else {"commit": refs[ref]}
            receive_trigger(project, TriggerOrigin(Trigger.Source.POLL, ref), revisions)


def is_requested(project: Project, commit: str) -> bool:
    """Whether a hook, a forge or a person asked for this commit, or it has been measured."""
    asked = Q(revisions__commit=commit) | Q(revisions__range__endswith=f"..{commit}")
    triggers = Trigger.objects.filter(asked, project=project).exclude(state=Trigger.State.REFUSED)
    measured = Run.objects.filter(
        commit__project=project, commit__hash=commit, origin=Run.Origin.MEASURED, configuration__quick=False
    )
    return triggers.exists() or measured.exists()


def leaves_commits_out(project: Project, first: str, newest: str) -> bool:
    """Whether the newest commit was asked for by itself, by a person or a schedule: none reported those that
    came after `first` and before it."""
    if not first or is_pushed(project, newest):
        return False
    line = project.commits.filter(branch=project.branch)
    position = dict(line.filter(hash__in=(first, newest)).values_list("hash", "position"))
    if len(position) < 2:
        return True  # It isn't read yet. What is asked for twice is measured once.
    between = line.filter(position__gt=position[first], position__lt=position[newest])
    asked = between.filter(Exists(Run.objects.filter(commit=OuterRef("pk"))))
    return asked.count() < position[newest] - position[first] - 1


def is_pushed(project: Project, commit: str) -> bool:
    """Whether a hook, a forge or a poll reported this commit, or somebody asked for a range up to it."""
    pushed = Q(revisions__commit=commit, source__in=PUSHED) | Q(revisions__range__endswith=f"..{commit}")
    return Trigger.objects.filter(pushed, project=project).exclude(state=Trigger.State.REFUSED).exists()


def follow_pull_requests(project: Project) -> None:
    connection = ForgeConnection.objects.select_related("project").filter(project=project).first()
    if connection is not None:
        send_changes(connection, forge_of(connection))


def note_failure(project: Project, sentence: str, asked: PollColumns) -> None:
    """Tell it once, and ask for the same after a longer pause than before."""
    with transaction.atomic():
        poll = RepositoryPoll.objects.select_for_update().get(project=project)
        before = getattr(poll, asked.failures)
        if not before:
            Trigger.objects.create(
                project=project,
                source=Trigger.Source.POLL,
                state=Trigger.State.REFUSED,
                detail=sentence,
                resolved_at=timezone.now(),
            )
        next_at: Any = Now() + pause_after(project, before + 1)
        RepositoryPoll.objects.filter(pk=poll.pk).update(
            **{asked.failures: before + 1, asked.next_at: next_at}
        )


def pause_after(project: Project, failures: int) -> timedelta:
    usual = usual_pause(project)
    return max(usual, min(usual * (1 << min(failures, MOST_DOUBLINGS)), LONGEST_PAUSE))
