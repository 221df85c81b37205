from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dashboard.models import Run


@dataclass(frozen=True)
class Assignment:
    """A claimed run, as its holder needs it. `lease` proves the claim at every later call."""

    run_id: int
    attempt: int
    lease: UUID
    project: str
    repository: str
    commit: str  # the full hash
    benchmark: str
    version: int
    params: dict[str, Any]
    case_key: str
    manifest: str | None  # None: paceline.toml of the checkout
    pool: str
    machine: str
    repetitions: int
    time_limit: int  # seconds for the whole run
    quick: bool

    @property
    def name(self) -> str:
        """How people name it: `snake_dqn[variant=optimized] at 0123456789`."""
        case = f"[{self.case_key}]" if self.case_key else ""
        return f"{self.benchmark}{case} at {self.commit[:10]}"


def of_run(run: Run) -> Assignment:
    """The assignment of a held run; reads its commit, case, project, pool and machine."""
    project = run.commit.project
    assert run.machine is not None, "a held run has a machine"  # noqa: S101 - for the type checker
    return Assignment(
        run_id=run.pk,
        attempt=run.attempt,
        lease=run.lease,
        project=project.slug,
        repository=project.repository,
        commit=run.commit.hash,
        benchmark=run.case.benchmark,
        version=run.version,
        params=run.case.params,
        case_key=run.case.key,
        manifest=project.manifest or None,
        pool=run.pool.name,
        machine=run.machine.name,
        repetitions=run.repetitions,
        time_limit=run.time_limit,
        quick=run.quick,
    )
