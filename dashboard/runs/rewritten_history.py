"""Commits that a branch lost when its history was rewritten: by an amended commit, a rebase, a reset."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from dashboard import dispatch, outbox, repositories
from dashboard.models import Commit, Project, Regression, Run
from dashboard.repositories import DETACHED, RepositoryError
from dashboard.runs.transitions import cancel_runs

logger = logging.getLogger(__name__)

REWRITTEN = "Its commit is no longer on {branch}, whose history was rewritten."


def follow_rewritten_history(project: Project) -> None:
    """Take the commits off a branch's line that the branch lost, as the fetched mirror has it.

    Where no other branch holds them, their runs that haven't ended are cancelled. What was judged by them is
    judged anew. A commit that a branch holds again returns. Where the repository can't tell, nothing moves.
    """
    try:
        moved, lost = _compare_with_mirror(project)
    except RepositoryError as error:
        logger.warning("Whether the history of %s was rewritten can't be determined: %s", project, error)
    else:
        if moved:
            _move_commits(project, moved, lost)


def _compare_with_mirror(project: Project) -> tuple[dict[str, str], dict[str, str]]:
    """By hash the branches of the commits that have moved, and those which have lost them.

    What was lost before is looked for on the branch that lost it alone: the graph isn't walked for it.
    """
    mirror = project.mirror
    watched, gone = _watched_commits(project), _gone_commits(project)
    lost: dict[str, str] = {}
    moved: dict[str, str] = {}
    for branch in watched.keys() | gone.keys():
        watched_here, left = watched.get(branch, set()), gone.get(branch, set())
        inside = repositories.commits_on_branch(mirror, branch, watched_here | left)
        if inside is not None:
            lost |= dict.fromkeys(watched_here - inside, branch)
            moved |= dict.fromkeys(left & inside, branch)
    lost = {sha: lost[sha] for sha in repositories.find_commits(mirror, lost).values()}
    located = repositories.locate_commits(mirror, lost.keys()) if lost else {}
    return moved | {sha: branch for sha, (branch, _) in located.items()}, lost


def _gone_commits(project: Project) -> dict[str, set[str]]:
    """By the branch that has lost them the hashes of the commits that no branch holds."""
    gone: dict[str, set[str]] = {}
    for branch, sha in project.commits.exclude(left_branch="").values_list("left_branch", "hash"):
        gone.setdefault(branch, set()).add(sha)
    return gone


def _watched_commits(project: Project) -> dict[str, set[str]]:
    """By branch the hashes that are compared with the repository.

    All of the project's branch. Of the others, whose line judging reads anew each time, those alone for which
    something is still measured or open.
    """
    unfinished = Run.objects.filter(commit=OuterRef("pk")).exclude(state__in=Run.TERMINAL)
    standing = Regression.objects.filter(first_bad=OuterRef("pk"), withdrawn_at=None)
    on_main = project.commits.filter(branch=project.branch)
    beside = project.commits.exclude(branch__in=(project.branch, DETACHED))
    watched: dict[str, set[str]] = {}
    for commits in (on_main, beside.filter(Exists(unfinished) | Exists(standing))):
        for branch, sha in commits.values_list("branch", "hash"):
            watched.setdefault(branch, set()).add(sha)
    return watched


def _move_commits(project: Project, moved: dict[str, str], lost: dict[str, str]) -> None:
    """Write down where commits lie now, by their hashes, and which branch has lost them."""
    with transaction.atomic():
        rows: QuerySet[Commit] = project.commits.select_for_update().filter(hash__in=list(moved))
        commits = list(rows.order_by("pk"))
        for commit in commits:
            commit.branch = moved[commit.hash]
            commit.left_branch = lost.get(commit.hash, "") if commit.branch == DETACHED else ""
        Commit.objects.bulk_update(commits, ["branch", "left_branch"])
        lost_branches = sorted(set(lost.values()))
        for branch in lost_branches:
            off = [commit for commit in commits if commit.left_branch == branch]
            cancel_runs(Run.objects.filter(commit__in=off), REWRITTEN.format(branch=branch))
        keys = [commit.pk for commit in commits]
        changed = sorted({*lost_branches, *moved.values()} - {DETACHED})
        outbox.enqueue_message(dispatch.HISTORY_REWRITTEN, project.pk, keys, changed)
