"""What a host is given of an experiment that it has claimed: sides, metric, how pairs are measured."""

from __future__ import annotations

from dashboard.experiments.counted_sides import wants_counting
from dashboard.host_protocol import ExperimentAssignment, SideAssignment
from dashboard.leases import lease_of
from dashboard.models import Commit, Configuration, Experiment, Series

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
        profiled=experiment.counts_functions and (not experiment.profiles or counts_again(experiment)),
        machine=experiment.machine.name,
        pairs=experiment.pairs.count(),
        files=experiment.project.files_beside_manifest(),
        seeded=is_seeded(experiment),
    )


def counts_again(experiment: Experiment) -> bool:
    """Whether its sides, counted before, are to be counted once more."""
    return wants_counting(experiment.profiles, experiment.seconds / experiment.most_seconds)


def is_seeded(experiment: Experiment) -> bool:
    """Whether each pair has a seed of its own: where a quality is weighed, or guarded beside what is.

    With one seed for all of them the pairs would tell how lucky that one is.
    """
    if experiment.metric.is_quality:
        return True
    guarded = Series.objects.filter(configuration=experiment.head_configuration_id, guarded=True)
    return experiment.question == Experiment.Question.BOUND and guarded.exists()


def side_of(commit: Commit, configuration: Configuration) -> SideAssignment:
    case = configuration.case
    return SideAssignment(commit.hash, case.benchmark, case.params, configuration.quick, commit.on_branch)
