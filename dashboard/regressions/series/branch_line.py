"""The line that a branch is judged on: the project's branch up to where it was left, then its own commits.

So a branch is compared with the level at its merge base from its first commit on. Positions count
first-parent commits, so they go on where the project's branch was left.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max, Q

from dashboard import repositories
from dashboard.models import Commit, Project
from dashboard.postgresql.compiled_queries import Parameter
from dashboard.repositories import DETACHED, RepositoryError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BranchLine:
    """The commits that a branch is judged on.

    `own` are the hashes of those that the project's branch, `trunk`, doesn't have; None: all that are known
    of the branch, and nothing before them. What lies up to position `settled` is judged on its own branch.
    """

    branch: str
    own: frozenset[str] | None = None
    trunk: str = ""
    fork: int = -1
    settled: int = -1

    def lookup(self, commit: str) -> Q:
        """Rows whose commit lies on it; `commit` is the lookup that leads there."""
        if self.own is None:
            return Q(**{f"{commit}__branch": self.branch})
        before: Mapping[str, Any] = {f"{commit}__branch": self.trunk, f"{commit}__position__lte": self.fork}
        return Q(**{f"{commit}__hash__in": self.own}) | Q(**before)

    @property
    def given_values(self) -> dict[str, Any]:
        """The values of `given_line`, whose shape is `has_fork`."""
        return {
            "branch": self.branch,
            "own": list(self.own or ()),
            "trunk": self.trunk,
            "fork": self.fork,
        }

    @property
    def has_fork(self) -> bool:
        return self.own is not None

    def condition(self, commit: str) -> tuple[str, dict[str, Any]]:
        """`lookup` in SQL, of the table or alias `commit`, and its parameters."""
        if self.own is None:
            return f"{commit}.branch = %(branch)s", {"branch": self.branch}
        before = f"{commit}.branch = %(trunk)s AND {commit}.position <= %(fork)s"
        parameters = {"own": list(self.own), "trunk": self.trunk, "fork": self.fork}
        return f"({commit}.hash = ANY(%(own)s::text[]) OR ({before}))", parameters


def given_line(commit: str, has_fork: bool) -> Q:
    """`BranchLine.lookup` of a line that is known once the query is asked; see `compiled_queries`."""
    if not has_fork:
        return Q(**{f"{commit}__branch": Parameter("branch")})
    before = {f"{commit}__branch": Parameter("trunk"), f"{commit}__position__lte": Parameter("fork")}
    return Q(**{f"{commit}__hash__in_array": Parameter("own")}) | Q(**before)


def branch_line(project: Project, branch: str) -> BranchLine:
    """The line of a branch, read in the repository; where that can't tell, its known commits alone."""
    if branch in (project.branch, DETACHED) or not project.repository:
        return BranchLine(branch)
    mirror = project.mirror
    try:
        own, fork = repositories.commits_since_fork(mirror, branch_tip(project, branch, mirror.branches()))
    except RepositoryError as error:
        logger.warning("Where %s left %s can't be determined: %s", branch, project.branch, error)
        return BranchLine(branch)
    if not own:
        return BranchLine(branch)  # It was merged by moving the project's branch there.
    # Commits that another branch has too are judged there.
    shared = project.commits.filter(hash__in=own).exclude(branch=branch).aggregate(last=Max("position"))
    return BranchLine(branch, frozenset(own), project.branch, fork, max(fork, shared["last"] or -1))


def branch_tip(project: Project, branch: str, branches: list[str]) -> str:
    """Its newest commit; of a branch that is gone the newest that was asked for."""
    if branch in branches:
        return f"refs/heads/{branch}"
    newest = Commit.objects.filter(project=project, branch=branch).order_by("-pk").first()
    if newest is None:
        raise RepositoryError(f"no commit of {branch} is known.")
    return newest.hash
