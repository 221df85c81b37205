"""The commits of an imported history as rows: placed by git where it knows them, else by their dates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from django.core.exceptions import ValidationError
from django.db import connection

from dashboard import repositories, runs
from dashboard.imports.results import ImportedRun, ImportRefused
from dashboard.models import Commit, Project
from dashboard.repositories import DETACHED, CommitFacts, Mirror, RepositoryError

# A project without a repository has no git to ask: its commits stand by their dates, those of one date as
# they came. Where the position of a commit has changed, so do its copies in points and changes.
NUMBER_BY_DATE = """
WITH placed AS (
    SELECT id, row_number() OVER (PARTITION BY branch ORDER BY committed_at, id) - 1 AS position
    FROM dashboard_commit WHERE project_id = %(project)s
)
UPDATE dashboard_commit SET position = placed.position FROM placed
WHERE dashboard_commit.id = placed.id AND dashboard_commit.position <> placed.position
"""
UPDATE_POSITIONS = (
    """UPDATE dashboard_point point SET position = commit.position
       FROM dashboard_run run JOIN dashboard_commit commit ON commit.id = run.commit_id
       WHERE run.id = point.run_id AND commit.project_id = %(project)s
         AND point.position <> commit.position""",
    """UPDATE dashboard_change change SET position = commit.position
       FROM dashboard_commit commit
       WHERE commit.id = change.first_bad_id AND commit.project_id = %(project)s
         AND change.position <> commit.position""",
)


def get_or_create_project(slug: str) -> Project:
    """A project without a repository: nothing of it can be measured here. An existing one is returned."""
    wanted = Project(slug=slug)
    try:
        wanted.clean_fields(exclude=["repository"])
    except ValidationError as error:
        field, sentences = next(iter(error.message_dict.items()))
        raise ImportRefused(f"{field}: {sentences[0]}") from error
    return Project.objects.get_or_create(slug=slug)[0]


def fetch_repository(project: Project) -> None:
    """Fetch what is new in the project's repository; raises ImportRefused."""
    try:
        if project.repository:
            project.mirror.fetch()
    except RepositoryError as error:
        raise ImportRefused(str(error)) from error


def date_reader(slug: str) -> Callable[[str], datetime | None]:
    """Asks the repository of the project of this name, where it has one, when a commit was made.

    It is fetched by the first question. Raises ImportRefused.
    """

    @cache
    def mirror() -> Mirror | None:
        project = Project.objects.filter(slug=slug).first()
        if project is None or not project.repository:
            return None
        fetch_repository(project)
        return project.mirror

    @cache
    def read_date(commit: str) -> datetime | None:
        repository = mirror()
        if repository is None:
            return None
        try:
            hashes = list(repositories.find_commits(repository, [commit]).values())
            return next((found.committed_at for found in repositories.read_commits(repository, hashes)), None)
        except RepositoryError as error:
            raise ImportRefused(str(error)) from error

    return read_date


@dataclass(frozen=True)
class KnownCommits:
    """What the repository says of an imported history: hashes by the names in the file, and the commits."""

    hashes: Mapping[str, str]
    commits: Sequence[CommitFacts]


def read_known_commits(project: Project, imported_runs: Iterable[ImportedRun]) -> KnownCommits | None:
    """Ask git, before anything is locked; None where the project has no repository. Raises ImportRefused."""
    if not project.repository:
        return None
    names = dict.fromkeys(run.commit for run in imported_runs)
    try:
        hashes = repositories.find_commits(project.mirror, names)
        if not hashes:
            raise ImportRefused(
                f"The repository of {project} knows none of the {len(names)} commits: a history without "
                "its repository goes into a project of its own (--create)."
            )
        found = repositories.read_commits(project.mirror, sorted(set(hashes.values())))
    except RepositoryError as error:
        raise ImportRefused(str(error)) from error
    return KnownCommits(hashes, list(found))


def get_or_create_commits(
    project: Project, imported_runs: Iterable[ImportedRun], known: KnownCommits | None
) -> dict[str, Commit]:
    """The row of each commit by its name in the file, made where it is new."""
    first_runs: dict[str, ImportedRun] = {}
    for run in imported_runs:
        first_runs.setdefault(run.commit, run)
    if known is None:
        return _create_unknown_commits(project, first_runs.values(), branch="")
    rows = runs.get_or_create_commits(project, known.commits)
    unknown = [run for name, run in first_runs.items() if name not in known.hashes]
    return {
        **{name: rows[sha] for name, sha in known.hashes.items()},
        **_create_unknown_commits(project, unknown, branch=DETACHED),
    }


def _create_unknown_commits(
    project: Project, imported_runs: Iterable[ImportedRun], branch: str
) -> dict[str, Commit]:
    """Rows of commits that git doesn't know. With a repository they lie on no branch, and in no order."""
    commits = {
        run.commit: Commit(
            project=project,
            hash=run.commit,
            branch=branch or run.branch or project.branch,
            position=0,
            committed_at=run.date,
        )
        for run in imported_runs
    }
    Commit.objects.bulk_create(commits.values(), ignore_conflicts=True)
    return {row.hash: row for row in project.commits.filter(hash__in=list(commits))}


def number_by_date(project: Project) -> None:
    """Number the commits of a project without a repository; the project is locked."""
    with connection.cursor() as cursor:
        cursor.execute(NUMBER_BY_DATE, {"project": project.pk})
        if cursor.rowcount:
            for statement in UPDATE_POSITIONS:
                cursor.execute(statement, {"project": project.pk})
