"""What a repository knows of commits, kept as rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from dashboard.models import Commit, Project
from dashboard.repositories import DETACHED, LONGEST_BRANCH, CommitFacts

# Of what is said of a manifest.
LONGEST_PROBLEM = 1000


def get_or_create_commits(project: Project, found: Iterable[CommitFacts]) -> dict[str, Commit]:
    """The rows of these commits by hash, made where they are new.

    A stored commit that another branch holds now goes there. One that no branch holds any more stays on its
    branch until `rewritten_history` takes it off, with its runs and regressions.
    """
    facts_of = {facts.hash: facts for facts in found}
    rows = [
        Commit(
            project=project,
            hash=facts.hash,
            parents=facts.parents,
            branch=shorten_branch(facts.branch),
            position=facts.position,
            subject=facts.subject,
            author=facts.author,
            committed_at=facts.committed_at,
        )
        for facts in facts_of.values()
    ]
    Commit.objects.bulk_create(rows, ignore_conflicts=True)
    stored = {commit.hash: commit for commit in project.commits.filter(hash__in=facts_of)}
    moved = [commit for sha, commit in stored.items() if follow_branch(commit, facts_of[sha])]
    Commit.objects.bulk_update(moved, ["branch", "position", "left_branch"])
    return {sha: stored[sha] for sha in facts_of}


def keep_unreadable(project: Project, found: Iterable[CommitFacts], problems: Mapping[str, str]) -> None:
    """Keep, with rows of their own, why nothing of commits is measured whose manifests can't be read."""
    rows = get_or_create_commits(project, found)
    for sha, commit in rows.items():
        # A sentence may quote what stands in a manifest; Postgres keeps no NUL in a text.
        commit.manifest_problem = problems[sha].replace("\0", "\N{REPLACEMENT CHARACTER}")[:LONGEST_PROBLEM]
    Commit.objects.bulk_update(rows.values(), ["manifest_problem"])


def forget_problems(commits: Iterable[Commit]) -> None:
    """Their manifests can be read now, such as one that the server keeps since."""
    Commit.objects.filter(pk__in=[row.pk for row in commits if row.manifest_problem]).update(
        manifest_problem=""
    )


def follow_branch(commit: Commit, facts: CommitFacts) -> bool:
    """Put a commit where a branch holds it now; False where it stays as it is."""
    place = (shorten_branch(facts.branch), facts.position, "")
    if facts.branch == DETACHED or (commit.branch, commit.position, commit.left_branch) == place:
        return False
    commit.branch, commit.position, commit.left_branch = place
    return True


def shorten_branch(name: str) -> str:
    """A branch's name as its column holds it: two that differ stay two, and none becomes that of another."""
    if len(name) <= LONGEST_BRANCH:
        return name
    # No branch's name holds a `~`.
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{name[: LONGEST_BRANCH - 13]}~{digest}"
