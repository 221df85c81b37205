"""What a repository knows of commits, kept as rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from dashboard.models import Commit, Project
from dashboard.repositories import CommitFacts

LONGEST_BRANCH = 200


def get_or_create_commits(project: Project, found: Iterable[CommitFacts]) -> dict[str, Commit]:
    """The rows of these commits by hash, made where they are new."""
    facts_of = list(found)
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
        for facts in facts_of
    ]
    # A commit that was known from another branch may have reached the project's own since.
    Commit.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["project", "hash"], update_fields=["branch", "position"]
    )
    hashes = [facts.hash for facts in facts_of]
    return {commit.hash: commit for commit in project.commits.filter(hash__in=hashes)}


def shorten_branch(name: str) -> str:
    """A branch's name as its column holds it: two that differ stay two, and none becomes that of another."""
    if len(name) <= LONGEST_BRANCH:
        return name
    # No branch's name holds a `~`.
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{name[: LONGEST_BRANCH - 13]}~{digest}"
