from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.leases import Lease, lease_of
from dashboard.models import Run


@dataclass(frozen=True)
class RunAssignment:
    """A claimed run, as its holder needs it. `lease` proves the claim at every later call."""

    lease: Lease
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
    def run_id(self) -> int:
        return self.lease.key

    @property
    def attempt(self) -> int:
        return self.lease.attempt

    @property
    def name(self) -> str:
        """How people name it: `snake_dqn[variant=optimized] at 0123456789`."""
        case = f"[{self.case_key}]" if self.case_key else ""
        return f"{self.benchmark}{case} at {self.commit[:10]}"


RELATED = ("commit__project", "configuration__case", "configuration__pool", "machine")


def assignment_of(run: Run) -> RunAssignment:
    """The assignment of a held run, read with all that is RELATED."""
    project = run.commit.project
    assert run.machine is not None, "a held run has a machine"  # noqa: S101 - for the type checker
    return RunAssignment(
        lease=lease_of(run),
        project=project.slug,
        repository=project.fetch_address,
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
