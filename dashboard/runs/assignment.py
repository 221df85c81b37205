from __future__ import annotations

from dashboard.host_protocol import RunAssignment
from dashboard.leases import lease_of
from dashboard.models import Run

RELATED = ("commit__project", "configuration__case", "configuration__pool", "machine")


def assignment_of(run: Run) -> RunAssignment:
    """The assignment of a held run, read with all that is RELATED."""
    project = run.commit.project
    assert run.machine is not None, "a held run has a machine"  # noqa: S101 - for the type checker
    return RunAssignment(
        lease=lease_of(run),
        project=project.slug,
        commit=run.commit.hash,
        benchmark=run.case.benchmark,
        params=run.case.params,
        case_key=run.case.key,
        manifest=project.manifest or None,
        machine=run.machine.name,
        repetitions=run.repetitions,
        time_limit=run.time_limit,
        quick=run.quick,
        files=project.files_beside_manifest(),
    )
