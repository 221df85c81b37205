"""Whether what a person asks to measure exists, said while the person still looks at the form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.manifest import ManifestError, parse_manifest

from dashboard import repositories, runs
from dashboard.models import Commit, Project
from dashboard.repositories import FULL_HASH, Mirror, RepositoryError
from dashboard.triggers.receiving import TriggerError

# A person waits so long for the repository; what isn't known by then is found out by the worker.
CHECK_SECONDS = 4.0


def validate_request(project: Project, revisions: Mapping[str, Any], benchmarks: Sequence[str] = ()) -> None:
    """Raises TriggerError where it is known now that no commit of these can be measured by these benchmarks.

    `revisions` as of `parse_revisions`. What only a worker can find out, as it alone can wait for a slow
    repository, is no error here.
    """
    _check_revisions_exist(project, revisions)
    if not all(name.strip() for name in benchmarks):
        raise TriggerError(
            "The name of a benchmark is empty: to measure all of them name none.", "benchmarks"
        )
    if project.manifest:
        _check_kept_manifest(project, benchmarks)
        # One that is kept is that of each commit.
        benchmarks = ()
    if not benchmarks and "range" not in revisions:
        return
    problem = _find_problem(project, revisions, benchmarks)
    if problem is not None and not FULL_HASH.fullmatch(str(revisions.get("commit", ""))):
        # Branches may have moved since.
        known = _fetch_quickly(project)
        problem = _find_problem(project, revisions, benchmarks) if known else None
    if problem is not None:
        raise problem


def _check_kept_manifest(project: Project, benchmarks: Sequence[str]) -> None:
    try:
        kept = parse_manifest(project.manifest, str(project))
    except ManifestError:
        return  # An earlier version has kept it: its trigger says what is wrong.
    try:
        runs.check_benchmark_names(kept, benchmarks, f"The manifest of {project}")
    except ManifestError as error:
        raise TriggerError(str(error), "benchmarks") from error


def _find_problem(
    project: Project, revisions: Mapping[str, Any], benchmarks: Sequence[str]
) -> TriggerError | None:
    """What the mirror says now; None where one of the commits has all that is asked for, or nobody knows."""
    mirror = project.mirror
    if not mirror.folder.is_dir():
        return None
    try:
        commits = repositories.read_commits(mirror, repositories.select_commits(mirror, revisions))
        manifests = runs.read_commit_manifests(project, mirror, commits) if benchmarks else []
    except RepositoryError as error:
        return TriggerError(str(error), "range") if "range" in revisions else None
    problem = None
    for commit, manifest in manifests:
        if isinstance(manifest, ManifestError):
            continue
        try:
            runs.check_benchmark_names(manifest, benchmarks, f"Commit {commit.hash[:10]}")
        except ManifestError as error:
            problem = TriggerError(str(error), "benchmarks")
        else:
            return None
    return problem


def _check_revisions_exist(project: Project, revisions: Mapping[str, Any]) -> None:
    """Raises TriggerError where nothing can be measured, or the repository, asked anew, has no such commit.

    Commits that are stored cost a query; others a look into the mirror, and only those that it lacks a fetch.
    """
    if not project.repository:
        raise TriggerError(
            f"{project.slug} has no repository, only an imported history: nothing of it can be measured."
        )
    missing = [name for name in named_revisions(revisions) if not is_stored_commit(project, name)]
    if missing:
        try:
            _check_mirror(project, missing)
        except RepositoryError as error:
            raise TriggerError(str(error), next(iter(revisions))) from error


def named_revisions(revisions: Mapping[str, Any]) -> list[str]:
    """The commits, branches and tags that are named: one, or both ends of a range."""
    if "commit" in revisions:
        return [revisions["commit"]]
    return list(repositories.parse_range(revisions["range"])) if "range" in revisions else []


def is_stored_commit(project: Project, revision: str) -> bool:
    """Whether it is the whole hash of a commit that was seen before."""
    if not FULL_HASH.fullmatch(revision):
        return False
    return Commit.objects.filter(project=project, hash=revision).exists()


def _check_mirror(project: Project, revisions: list[str]) -> None:
    """Raises RepositoryError where one of them doesn't exist."""
    mirror = project.mirror
    missing = [revision for revision in revisions if not _has_revision(mirror, revision)]
    if missing and _fetch_quickly(project):
        for revision in missing:
            repositories.resolve_revision(mirror, revision)


def _fetch_quickly(project: Project) -> bool:
    """Whether the mirror is as the repository now; one that is slow, busy or away isn't the asker's fault."""
    try:
        project.mirror.fetch(CHECK_SECONDS, CHECK_SECONDS)
    except RepositoryError:
        return False
    project.note_reading()
    return True


def _has_revision(mirror: Mirror, revision: str) -> bool:
    if not mirror.folder.is_dir():
        return False
    try:
        repositories.resolve_revision(mirror, revision)
    except RepositoryError:
        return False
    return True
