"""The commits of a foreign history as rows: placed by git where it knows them, else by their dates."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.db import connection

from dashboard import repositories, runs
from dashboard.imports.readings import ImportRefused, Measured
from dashboard.models import Commit, Project
from dashboard.repositories import Mirror, RepositoryError, git
from dashboard.repositories.history import DETACHED

# A project without a repository has no git to ask: its commits stand by their dates, those of one date as
# they came. What lies elsewhere now takes its copies of the position along.
BY_DATE = """
WITH placed AS (
    SELECT id, row_number() OVER (PARTITION BY branch ORDER BY committed_at, id) - 1 AS place
    FROM dashboard_commit WHERE project_id = %(project)s
)
UPDATE dashboard_commit SET position = place FROM placed
WHERE dashboard_commit.id = placed.id AND position <> place
"""
COPIES = (
    """UPDATE dashboard_point point SET position = commit.position
       FROM dashboard_run run JOIN dashboard_commit commit ON commit.id = run.commit_id
       WHERE run.id = point.run_id AND commit.project_id = %(project)s
         AND point.position <> commit.position""",
    """UPDATE dashboard_change change SET position = commit.position
       FROM dashboard_commit commit
       WHERE commit.id = change.first_bad_id AND commit.project_id = %(project)s
         AND change.position <> commit.position""",
)


def create_project(slug: str) -> Project:
    """A project without a repository: nothing of it can be measured here. An existing one is returned."""
    wanted = Project(slug=slug)
    try:
        wanted.clean_fields(exclude=["repository"])
    except ValidationError as error:
        field, sentences = next(iter(error.message_dict.items()))
        raise ImportRefused(f"{field}: {sentences[0]}") from error
    return Project.objects.get_or_create(slug=slug)[0]


def refresh(project: Project) -> None:
    """Fetch what is new in the project's repository; raises ImportRefused."""
    try:
        if project.repository:
            repositories.mirror_of(project).fetch()
    except RepositoryError as error:
        raise ImportRefused(str(error)) from error


def known(project: Project, measured: Iterable[Measured]) -> dict[str, Commit]:
    """The row of each commit by its name in the file, made where it is new; raises ImportRefused."""
    found: dict[str, Measured] = {}
    for run in measured:
        found.setdefault(run.commit, run)
    if not project.repository:
        return _made(project, found.values(), branch="")
    mirror = repositories.mirror_of(project)
    try:
        hashes = _hashes(mirror, list(found))
        if not hashes:
            raise ImportRefused(
                f"The repository of {project} knows none of the {len(found)} commits: a history without its "
                "repository goes into a project of its own (--create)."
            )
        rows = runs.known(project, repositories.facts(mirror, sorted(set(hashes.values()))))
    except RepositoryError as error:
        raise ImportRefused(str(error)) from error
    others = [run for name, run in found.items() if name not in hashes]
    return {**{name: rows[sha] for name, sha in hashes.items()}, **_made(project, others, branch=DETACHED)}


def _hashes(mirror: Mirror, names: list[str]) -> dict[str, str]:
    """The full hash of each commit that the repository knows."""
    asked = "".join(f"{name}^{{commit}}\n" for name in names).encode()
    lines = git.run(mirror.folder, ["cat-file", "--batch-check"], stdin=asked).decode().splitlines()
    answers = (line.split() for line in lines)
    return {
        name: answer[0]
        for name, answer in zip(names, answers, strict=True)
        if len(answer) == 3 and answer[1] == "commit"
    }


def _made(project: Project, found: Iterable[Measured], branch: str) -> dict[str, Commit]:
    """Rows of commits that git doesn't know. With a repository they lie on no branch, and in no order."""
    wanted = {
        run.commit: Commit(
            project=project,
            hash=run.commit,
            branch=branch or run.branch or project.branch,
            position=0,
            committed_at=run.date,
        )
        for run in found
    }
    Commit.objects.bulk_create(wanted.values(), ignore_conflicts=True)
    return {row.hash: row for row in project.commits.filter(hash__in=list(wanted))}


def place_by_date(project: Project) -> None:
    """Number the commits of a project without a repository; the project is locked."""
    with connection.cursor() as cursor:
        cursor.execute(BY_DATE, {"project": project.pk})
        if cursor.rowcount:
            for copy in COPIES:
                cursor.execute(copy, {"project": project.pk})
