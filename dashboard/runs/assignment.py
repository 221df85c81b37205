"""What a host is given of a run that it has claimed: commit, case, limits, whose counters it may reuse."""

from __future__ import annotations

from django.db.models import Q

from dashboard.host_protocol import RunAssignment
from dashboard.leases import lease_of
from dashboard.models import Run

RELATED = ("commit__project", "configuration__case", "configuration__pool", "machine")


def find_counted_commit(run: Run) -> str:
    """The commit whose counters this run may take over: those of its neighbour on the branch, so that what is
    taken over never differs from what stands before it. Empty where there is none."""
    if run.origin != Run.Origin.MEASURED:
        return ""
    commit = run.commit
    same = Run.objects.filter(
        configuration=run.configuration_id,
        commit__project=commit.project_id,
        state=Run.State.DONE,
        origin=Run.Origin.MEASURED,
    )
    line = Q(commit__branch=commit.branch, commit__position__lte=commit.position)
    if commit.fork is not None and commit.branch != commit.project.branch:
        line |= Q(commit__branch=commit.project.branch, commit__position__lte=commit.fork)
    newest = same.filter(line).order_by("-commit__position", "-pk").values_list("commit__hash", "counted_at")
    found = newest.first()
    return (found[1] or found[0]) if found else ""


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
        counted_at=find_counted_commit(run),
        files=project.files_beside_manifest(),
        on_branch=run.commit.on_branch,
    )
