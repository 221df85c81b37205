from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dashboard.leases import Lease, lease_of
from dashboard.models import Commit, Configuration, Experiment


@dataclass(frozen=True)
class SideAssignment:
    """One of the two sides: a commit (its full hash), and the benchmark with its parameters."""

    commit: str
    benchmark: str
    params: Mapping[str, Any]
    quick: bool


@dataclass(frozen=True)
class ExperimentAssignment:
    """A claimed experiment, as its holder needs it. `lease` proves the claim at every later call."""

    lease: Lease
    project: str
    repository: str
    base: SideAssignment
    head: SideAssignment
    manifest: str | None  # None: paceline.toml of each checkout
    metric: str
    phase: str | None
    counted: bool  # the metric comes from the counting repetition
    in_turns: bool  # both sides' steps alternate
    profiled: bool  # the functions of both sides are wanted first
    machine: str
    pairs: int  # that earlier attempts have measured, disturbed ones included

    @property
    def name(self) -> str:
        """How people name it: `experiment 12: 0123456789 against abcdef0123`."""
        return f"experiment {self.lease.key}: {self.base.commit[:10]} against {self.head.commit[:10]}"

    @property
    def attempt(self) -> int:
        return self.lease.attempt


@dataclass(frozen=True)
class PairMeasured:
    """One repetition of each side, in the metric's unit; `disturbed`: by other work.

    `base_first`: the base's was the first one, or began where both took turns. `seconds` both took. `phases`:
    own time by phase, in seconds per step, of the base and of the head. `sweeps`: the points of both sweeps,
    `base` and `head`, as documents have them, the `parameter` and, where a job is projected along their line,
    its `amount`; empty where they weren't measured.
    """

    index: int
    base_first: bool
    base: float
    head: float
    disturbed: bool
    seconds: float
    phases: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    sweeps: Mapping[str, Any] = field(default_factory=dict)


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
        repository=experiment.project.fetch_address,
        base=side_of(experiment.base_commit, experiment.base_configuration),
        head=side_of(experiment.head_commit, experiment.head_configuration),
        manifest=experiment.project.manifest or None,
        metric=experiment.metric.name,
        phase=experiment.phase or None,
        counted=experiment.metric.is_counted,
        in_turns=experiment.in_turns,
        profiled=experiment.question == Experiment.Question.ESTIMATE and not experiment.profiles,
        machine=experiment.machine.name,
        pairs=experiment.pairs.count(),
    )


def side_of(commit: Commit, configuration: Configuration) -> SideAssignment:
    case = configuration.case
    return SideAssignment(commit.hash, case.benchmark, case.params, configuration.quick)
