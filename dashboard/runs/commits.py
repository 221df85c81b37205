"""What a repository knows of commits, kept as rows."""

from __future__ import annotations

from collections.abc import Iterable

from dashboard.models import Commit, Project
from dashboard.repositories import Facts


def get_or_create_commits(project: Project, found: Iterable[Facts]) -> dict[str, Commit]:
    """The rows of these commits by hash, made where they are new."""
    facts_of = list(found)
    rows = [
        Commit(
            project=project,
            hash=facts.hash,
            parents=facts.parents,
            branch=facts.branch,
            position=facts.position,
            subject=facts.subject,
            author=facts.author[:200],
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
