"""The base of an experiment by the word of a baseline: rolling, merge base, or what the policy pins."""

from __future__ import annotations

from paceline.manifest.policy import MERGE_BASE, ROLLING

from dashboard import repositories
from dashboard.experiments.errors import ExperimentError
from dashboard.models import Commit, Project, Run
from dashboard.policy.project_policy import project_policy
from dashboard.repositories import RepositoryError

PINNED = "pinned"
WORDS = (ROLLING, MERGE_BASE, PINNED)


def find_baseline_commit(project: Project, word: str, head: str) -> str:
    """The hash of what a commit is read against. Raises ExperimentError and RepositoryError."""
    if word == MERGE_BASE:
        return _find_merge_base(project, head)
    if word == ROLLING:
        return _find_measured_before(project, head)
    return _find_pinned(project)


def _find_merge_base(project: Project, head: str) -> str:
    base = repositories.merge_base(project.mirror, head, f"refs/heads/{project.branch}")
    if base is None:
        raise ExperimentError("base", f"{head[:10]} and {project.branch} have no commit in common.")
    if base == head:
        raise ExperimentError(
            "base", f"{head[:10]} lies on {project.branch}: only commits of another branch have a merge base."
        )
    return base


def _find_measured_before(project: Project, head: str) -> str:
    """The newest commit before it, on its branch, that has a run that counts."""
    (facts,) = repositories.read_commits(project.mirror, [head])
    before = Commit.objects.filter(project=project, branch=facts.branch, position__lt=facts.position)
    measured = before.filter(runs__state=Run.State.DONE, runs__tainted=False).order_by("-position").first()
    if measured is None:
        raise ExperimentError("base", f"no commit before {head[:10]} is measured on {facts.branch}.")
    return measured.hash


def _find_pinned(project: Project) -> str:
    pinned = project_policy(project).pinned
    if pinned in ("", ROLLING, MERGE_BASE):
        raise ExperimentError("base", "the policy pins no tag or commit (baseline.pinned).")
    try:
        return repositories.resolve_revision(project.mirror, pinned)
    except RepositoryError as error:
        raise ExperimentError("base", f"the policy pins {pinned}: {error}") from error
