"""This checkout as the first project, so that a fresh installation has something real to show."""

from __future__ import annotations

import subprocess
from pathlib import Path

from django.conf import settings
from django.db import transaction
from paceline import manifest
from paceline.manifest import ManifestError

from dashboard import repositories
from dashboard.models import Project, Run
from dashboard.projects.registration import NewProject, add_project
from dashboard.repositories import Mirror, RepositoryError
from dashboard.triggers import create_command_trigger

SLUG = "paceline"
# What a newcomer sees first: the case of a benchmark that says most, of the benchmark that is over soonest.
FIRST_CASE = {"variant": "optimized"}
FIRST_BENCHMARK = "snake_dqn"


def request_first_runs() -> list[Run]:
    """Quick runs of the newest commit, the most urgent first; none of benchmarks that have runs of it.

    A cancelled run is one of them: somebody has decided.

    ProjectError, RepositoryError or TriggerError, one sentence, where it can't be.
    """
    project = register_checkout(settings.CHECKOUT)
    mirror = project.mirror
    mirror.fetch()
    (newest,) = repositories.select_commits(mirror, {})
    runs = Run.objects.filter(commit__project=project, commit__hash=newest)
    not_failed = runs.exclude(state=Run.State.FAILED)
    requested_names = set(not_failed.values_list("configuration__case__benchmark", flat=True))
    names = benchmark_names(project, mirror, newest)
    missing = [name for name in names if name not in requested_names]
    if names and not missing:
        return []
    with transaction.atomic():
        _, ids = create_command_trigger(project, {}, missing, quick=True)
        requested = list(
            Run.objects.filter(pk__in=ids)
            .select_related("configuration__case__project", "commit")
            .order_by("pk")
        )
        set_priorities(requested)
        Run.objects.bulk_update(requested, ["priority"])
    return sorted(requested, key=lambda run: (-run.priority, run.pk))


def benchmark_names(project: Project, mirror: Mirror, commit: str) -> list[str]:
    """The names of the manifest's benchmarks; none where it is missing or broken: the trigger says how."""
    text = project.manifest or repositories.read_manifests(mirror, [commit]).get(commit)
    if not isinstance(text, str):
        return []
    try:
        return list(manifest.parse_manifest(text, manifest.FILE_NAME).benchmarks)
    except ManifestError:
        return []


def set_priorities(requested: list[Run]) -> None:
    """One case of one benchmark before all others, so that there is a chart; then one case of each."""
    first_runs: dict[str, Run] = {}
    for run in requested:
        if run.case.benchmark not in first_runs or run.case.params == FIRST_CASE:
            first_runs[run.case.benchmark] = run
    for name, run in first_runs.items():
        run.priority = 2 if name == FIRST_BENCHMARK else 1


def register_checkout(checkout: Path) -> Project:
    """The project of `checkout`; a new one watches the branch that is checked out now."""
    project = Project.objects.filter(slug=SLUG).first()
    if project is None:
        return add_project(NewProject(SLUG, str(checkout), checked_out_branch(checkout)))
    if project.repository.startswith("/") and not Path(project.repository).exists():
        # The checkout has moved, and its home within it.
        project.repository = str(checkout)
        project.save(update_fields=["repository"])
    return project


def checked_out_branch(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "symbolic-ref", "--quiet", "--short", "HEAD"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise RepositoryError(f"{checkout} is no git checkout with a branch checked out.")
    return answer.stdout.strip()
