"""Backfill: more commits of a large push are requested once fewer runs wait."""

from __future__ import annotations

from django.db import transaction
from paceline.manifest import ManifestError

from dashboard import repositories
from dashboard.models import Backlog, Project
from dashboard.policy.decision import Queue, choose_benchmarks, order_backlog
from dashboard.policy.project_policy import project_policy
from dashboard.repositories import RepositoryError
from dashboard.runs.backlog import rank_backlog
from dashboard.runs.errors import Busy
from dashboard.runs.planning import (
    MOST_PUSHED,
    TriggerPlan,
    add_changed_paths,
    event_of,
    keep_to_budget,
    measured_positions,
    queue_room,
    read_candidates,
)
from dashboard.runs.resolving import request_backlog


def fill_backlog(project_id: int) -> int:
    """Ask for as many commits of the project's newest push as may wait. How many runs.

    What its branch no longer holds is dropped, and so is a backlog whose manifest can't be read. Raises Busy
    where the repository can't tell: it is asked again by the next sweep, and nothing is dropped.
    """
    rows = Backlog.objects.select_related("trigger__project").filter(trigger__project=project_id)
    row = rows.order_by("-trigger").first()
    if row is None:
        return 0
    before = list(row.hashes)
    try:
        plan = plan_backlog(row)
    except RepositoryError as error:
        raise Busy(str(error)) from error
    except ManifestError:
        plan = TriggerPlan()
    with transaction.atomic():
        held = Backlog.objects.select_for_update().filter(pk=row.pk).first()
        if held is None or held.hashes != before:
            return 0
        number = request_backlog(row.trigger, plan) if plan.decision.backlog else 0
        held.hashes = list(plan.decision.later)
        if held.hashes:
            held.save(update_fields=["hashes"])
        else:
            held.delete()
        rank_backlog(row.trigger.project, row.branch)
    return number


def plan_backlog(row: Backlog) -> TriggerPlan:
    """Which of its commits fit into the queue now."""
    project: Project = row.trigger.project
    mirror = project.mirror
    there = repositories.commits_on_branch(mirror, row.branch, row.hashes) or set()
    found = repositories.read_commits(mirror, [sha for sha in row.hashes if sha in there])
    plan = TriggerPlan(facts={facts.hash: facts for facts in sorted(found, key=lambda facts: facts.position)})
    if not found:
        return plan
    policy = project_policy(project)
    event = event_of(row.trigger, policy)
    commits = list(plan.facts.values())
    candidates = list(read_candidates(project, mirror, commits, row.trigger.benchmarks, plan))
    chosen = []
    for candidate in add_changed_paths(mirror, candidates, plan):
        benchmarks, _ = choose_benchmarks(candidate, event, policy)
        if benchmarks:
            chosen.append((candidate, benchmarks))
    if not chosen:
        return plan
    positions = [candidate.position for candidate, _ in chosen]
    measured = measured_positions(project, row.branch, min(positions) - 1, max(positions) + 1)
    ordered = order_backlog(chosen, Queue(queue_room(project, policy), MOST_PUSHED, measured))
    plan.decision = keep_to_budget(project, policy, event, ordered)
    return plan
