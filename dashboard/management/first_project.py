"""This checkout as the first project, so that a fresh installation has something real to show."""

from __future__ import annotations

import subprocess
from pathlib import Path

from django.conf import settings
from django.db import transaction

from dashboard import repositories
from dashboard.models import Project, Run
from dashboard.projects import add_project
from dashboard.repositories import RepositoryError
from dashboard.triggers import from_command

SLUG = "paceline"
BENCHMARK = "snake_dqn"
FIRST = {"variant": "optimized"}  # the quicker case: a chart sooner


def request() -> list[Run]:
    """The runs of the newest commit, or none where it has been measured or is about to be.

    ProjectError, RepositoryError or TriggerError, one sentence, where it can't be.
    """
    project = register(settings.CHECKOUT)
    mirror = repositories.mirror_of(project)
    mirror.fetch()
    (newest,) = repositories.select(mirror, {})
    known = Run.objects.filter(commit__project=project, commit__hash=newest, case__benchmark=BENCHMARK)
    if known.exclude(state__in=[Run.State.FAILED, Run.State.CANCELLED]).exists():
        return []
    with transaction.atomic():
        _, ids = from_command(project, {}, [BENCHMARK])
        requested = Run.objects.filter(pk__in=ids)
        requested.filter(case__params=FIRST).update(priority=1)
    return list(requested.select_related("case", "commit").order_by("-priority", "pk"))


def register(checkout: Path) -> Project:
    """The project of `checkout`; a new one watches the branch that is checked out now."""
    project = Project.objects.filter(slug=SLUG).first()
    if project is None:
        return add_project(SLUG, str(checkout), branch_of(checkout))
    if project.repository.startswith("/") and not Path(project.repository).exists():
        # The checkout has moved, and its home within it.
        project.repository = str(checkout)
        project.save(update_fields=["repository"])
    return project


def branch_of(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "symbolic-ref", "--quiet", "--short", "HEAD"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise RepositoryError(f"{checkout} is no git checkout with a branch checked out.")
    return answer.stdout.strip()
