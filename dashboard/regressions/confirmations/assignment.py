from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from dashboard.models import Confirmation


@dataclass(frozen=True)
class ConfirmationAssignment:
    """A claimed confirmation, as its holder needs it. `lease` proves the claim at every later call."""

    confirmation_id: int
    attempt: int
    lease: UUID
    project: str
    repository: str
    good: str  # full hashes
    bad: str
    benchmark: str
    params: dict[str, Any]
    quick: bool
    manifest: str | None  # None: paceline.toml of each checkout
    metric: str
    phase: str | None
    in_turns: bool  # both commits' steps alternate
    machine: str
    pairs: int  # that earlier attempts have measured, disturbed ones included
    seconds: float  # that they took

    @property
    def name(self) -> str:
        """How people name it: `confirmation 12: 0123456789 against abcdef0123`."""
        return f"confirmation {self.confirmation_id}: {self.good[:10]} against {self.bad[:10]}"


@dataclass(frozen=True)
class PairMeasured:
    """One repetition of each commit, in the metric's unit; `disturbed`: by other work.

    `good_first`: the good commit's was the first one, or began where both took turns. `seconds` both took.
    `phases`: own time by phase, in seconds per step, of the good commit and of the bad one. `sweeps`: the
    points of both sweeps, `good` and `bad`, as documents have them, the `parameter` and, where a job is
    projected along their line, its `amount`; empty where they weren't measured.
    """

    index: int
    good_first: bool
    good: float
    bad: float
    disturbed: bool
    seconds: float
    phases: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    sweeps: Mapping[str, Any] = field(default_factory=dict)


def of_confirmation(row: Confirmation) -> ConfirmationAssignment:
    """The assignment of a held confirmation."""
    project, case = row.good.project, row.series.case
    assert row.machine is not None, "a held confirmation has a machine"  # noqa: S101 - for the type checker
    return ConfirmationAssignment(
        confirmation_id=row.pk,
        attempt=row.attempt,
        lease=row.lease,
        project=project.slug,
        repository=project.repository,
        good=row.good.hash,
        bad=row.bad.hash,
        benchmark=case.benchmark,
        params=case.params,
        quick=row.series.quick,
        manifest=project.manifest or None,
        metric=row.series.metric.name,
        phase=row.series.phase or None,
        in_turns=row.in_turns,
        machine=row.machine.name,
        pairs=row.pairs.count(),
        seconds=row.seconds,
    )
