from __future__ import annotations

from dashboard.host_protocol import ExperimentAssignment, SideAssignment
from dashboard.leases import lease_of
from dashboard.models import Commit, Configuration, Experiment

RELATED = (
    "project",
    "machine",
    "metric",
    "base_commit",
    "head_commit",
    "base_configuration__case",
    "head_configuration__case",
)


def assignment_of(experiment: Experiment) -> ExperimentAssignment:
    """The assignment of a held experiment, read with all that is RELATED."""
    assert experiment.machine is not None, "a held experiment has a machine"  # noqa: S101 - for the type checker
    return ExperimentAssignment(
        lease=lease_of(experiment),
        project=experiment.project.slug,
        base=side_of(experiment.base_commit, experiment.base_configuration),
        head=side_of(experiment.head_commit, experiment.head_configuration),
        manifest=experiment.project.manifest or None,
        metric=experiment.metric.name,
        phase=experiment.phase or None,
        counted=experiment.metric.is_counted,
        in_turns=experiment.in_turns,
        profiled=experiment.counts_functions and not experiment.profiles,
        machine=experiment.machine.name,
        pairs=experiment.pairs.count(),
        files=experiment.project.files_beside_manifest(),
    )


def side_of(commit: Commit, configuration: Configuration) -> SideAssignment:
    case = configuration.case
    return SideAssignment(commit.hash, case.benchmark, case.params, configuration.quick)
