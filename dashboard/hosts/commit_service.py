"""The commits that a host measures, served from the site's mirrors: repository credentials stay here."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from typing import IO, cast

from dashboard.leases import LeaseLost
from dashboard.models import Experiment, Machine, Project, Run
from dashboard.projects.names import find_named_project
from dashboard.repositories import Mirror, RepositoryError

FETCH_SECONDS = 45
SERVE_SECONDS = 600
# A host asks for the commit that it was given, also for one that no branch leads to any more.
SERVING = ("-c", "uploadpack.allowAnySHA1InWant=true", "upload-pack", "--strict", "--stateless-rpc")


def measured_project(machine: Machine, slug: str) -> Project:
    """The project, if the machine measures something of it now; LeaseLost where it doesn't."""
    # By the name that it was given, which may be a former one by now.
    project = find_named_project(slug)
    held_runs = Run.objects.filter(machine=machine, state__in=Run.HELD, commit__project=project)
    held_experiments = Experiment.objects.filter(machine=machine, state__in=Experiment.HELD, project=project)
    if project is None or not (held_runs.exists() or held_experiments.exists()):
        raise LeaseLost(f"{machine} measures nothing of {slug}.")
    return project


def bring_commit(machine: Machine, slug: str, commit: str) -> None:
    """Have the commit in the site's mirror. RepositoryError says why not, RepositoryBusy: ask again."""
    mirror = measured_project(machine, slug).mirror
    if mirror.has_commit(commit):
        return
    mirror.fetch(patience=1, time_limit=FETCH_SECONDS)
    if not mirror.has_commit(commit):
        raise RepositoryError(f"Commit {commit[:10]} is on no branch or tag of the repository.")


def serve_repository(mirror: Mirror, options: Sequence[str], body: bytes, version: str) -> IO[bytes]:
    """What `git upload-pack` answers to the request of a git client, as a file at its beginning.

    `version` is the client's Git-Protocol header. RepositoryError where git fails.
    """
    with ExitStack() as unless_served:
        answer = unless_served.enter_context(tempfile.TemporaryFile())
        mirror.git.stream(
            [*SERVING, *options, "."],
            folder=mirror.folder,
            variables={**mirror.variables, **({"GIT_PROTOCOL": version} if version else {})},
            stdin=body,
            output=answer.write,
            time_limit=SERVE_SECONDS,
        )
        answer.seek(0)
        # Whoever sends it closes it.
        unless_served.pop_all()
    return cast("IO[bytes]", answer)
