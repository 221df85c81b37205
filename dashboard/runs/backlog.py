"""What waits until nothing else does: older commits of a push, and what a later push has overtaken."""

from __future__ import annotations

from collections.abc import Collection

from dashboard import dispatch, failed_jobs
from dashboard.models import Backlog, Commit, Project, Run
from dashboard.policy.effective import EffectivePolicy
from dashboard.policy.halving import halving_order
from dashboard.policy.project_policy import project_policy
from dashboard.runs.planning import PUSHED, measured_positions, most_waiting, waiting_runs
from dashboard.runs.transitions import cancel_runs

# After everything else, sentinels too. The first commit of a backlog has it, each later one less: so several
# projects take turns.
BACKLOG_PRIORITY = -100
LEAST_PRIORITY = -32_000
# The backlog is filled up again once the queue is so short.
LOW_WATER = 0.5
OVER_LIMIT = "As many runs of the project wait as its policy allows: {most}."


def supersede_runs(newest: Commit) -> int:
    """Let wait what earlier pushes asked for at older commits of the branch. How many."""
    older = Run.objects.filter(
        state=Run.State.REQUESTED,
        priority__gt=BACKLOG_PRIORITY,
        trigger__source__in=PUSHED,
        awaited_by=None,
        commit__project=newest.project_id,
        commit__branch=newest.branch,
        commit__position__lt=newest.position,
    )
    return older.update(priority=BACKLOG_PRIORITY)


def rank_backlog(project: Project, branch: str) -> None:
    """Let the waiting commits of a branch be measured in the order in which each halves the largest gap."""
    waiting = Run.objects.filter(
        state=Run.State.REQUESTED,
        priority__lte=BACKLOG_PRIORITY,
        commit__project=project,
        commit__branch=branch,
    )
    runs = list(waiting.select_related("commit").order_by("pk"))
    if not runs:
        return
    positions = {run.commit.position for run in runs}
    urgent = Run.objects.filter(
        state=Run.State.REQUESTED,
        priority__gt=BACKLOG_PRIORITY,
        commit__project=project,
        commit__branch=branch,
    )
    known = measured_positions(project, branch, min(positions), 2**31 - 1)
    order = halving_order(positions, known | set(urgent.values_list("commit__position", flat=True)))
    rank = {position: index for index, position in enumerate(order)}
    for run in runs:
        run.priority = max(LEAST_PRIORITY, BACKLOG_PRIORITY - rank[run.commit.position])
    Run.objects.bulk_update(runs, ["priority"], batch_size=1000)


def trim_queue(project: Project, policy: EffectivePolicy, kept: Collection[Commit]) -> int:
    """Take back what is over the most that may wait, the least urgent first. How many.

    Where bursts are coalesced it is asked for again later.
    """
    over = waiting_runs(project) - policy.most_queued if policy.most_queued else 0
    if over <= 0:
        return 0
    pushed = Run.objects.filter(
        state=Run.State.REQUESTED,
        trigger__source__in=PUSHED,
        awaited_by=None,
        configuration__case__project=project,
    ).exclude(commit__in=[commit.pk for commit in kept])
    excess = list(pushed.select_related("commit").order_by("priority", "commit__position", "-pk")[:over])
    rows = Run.objects.filter(pk__in=[run.pk for run in excess], state=Run.State.REQUESTED)
    number = cancel_runs(rows, OVER_LIMIT.format(most=policy.most_queued))
    if policy.coalesce:
        for run in excess:
            keep_for_later(run)
    return number


def keep_for_later(run: Run) -> None:
    """Put the commit of a run back into the backlog of its push."""
    assert run.trigger_id is not None, "what a push asked for"  # noqa: S101 - for the type checker
    row, _ = Backlog.objects.select_for_update().get_or_create(
        trigger_id=run.trigger_id, defaults={"branch": run.commit.branch, "hashes": []}
    )
    if run.commit.hash not in row.hashes:
        row.hashes.append(run.commit.hash)
        row.save(update_fields=["hashes"])


def send_backlogs() -> None:
    """Ask for more of a backlog where the queue of its project has become short."""
    behind = Project.objects.filter(triggers__backlog__isnull=False).distinct()
    for project in behind.exclude(pk__in=failed_jobs.failing_keys(dispatch.FILL_BACKLOG)):
        most = max(1, most_waiting(project_policy(project)))
        if waiting_runs(project) <= LOW_WATER * most:
            dispatch.send_task(dispatch.FILL_BACKLOG, project.pk)
