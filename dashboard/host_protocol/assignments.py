"""What a host is given to measure, and what it hands in for an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class Lease:
    """The proof of a claim: the row's key, its attempt, and the token that every later call compares."""

    key: int
    attempt: int
    token: UUID


@dataclass(frozen=True)
class RunAssignment:
    """A claimed run, as its holder needs it. `lease` proves the claim at every later call."""

    lease: Lease
    project: str
    commit: str  # the full hash
    benchmark: str
    params: Mapping[str, Any]
    case_key: str
    manifest: str | None  # None: paceline.toml of the checkout
    machine: str
    repetitions: int
    time_limit: int  # seconds for the whole run
    quick: bool
    # The commit whose counting this one may take over, if nothing of it changed; empty where there is none.
    counted_at: str = ""
    files: Mapping[str, str] = field(default_factory=dict)  # that the site keeps beside its manifest
    on_branch: bool = True  # a branch of the project holds the commit, as none does that of a fork

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


@dataclass(frozen=True)
class SideAssignment:
    """One of the two sides: a commit (its full hash), and the benchmark with its parameters."""

    commit: str
    benchmark: str
    params: Mapping[str, Any]
    quick: bool
    on_branch: bool = True  # as of a run


@dataclass(frozen=True)
class ExperimentAssignment:
    """A claimed experiment, as its holder needs it. `lease` proves the claim at every later call."""

    lease: Lease
    project: str
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
    files: Mapping[str, str] = field(default_factory=dict)  # that the site keeps beside its manifest
    seeded: bool = False  # each pair has a seed of its own, the same for both sides

    @property
    def name(self) -> str:
        """How people name it: `experiment 12: 0123456789 against abcdef0123`."""
        return f"experiment {self.lease.key}: {self.base.commit[:10]} against {self.head.commit[:10]}"

    @property
    def attempt(self) -> int:
        return self.lease.attempt


Assignment = RunAssignment | ExperimentAssignment


@dataclass(frozen=True)
class CountedAnswer:
    """What the site makes of counted repetitions: whether steps alternate, and are counted `again`."""

    in_turns: bool
    again: bool = False


@dataclass(frozen=True)
class OtherMetric:
    """What both sides measured beside the metric that is weighed."""

    unit: str
    better: str
    kind: str
    base: float
    head: float


@dataclass(frozen=True)
class PairMeasured:
    """One repetition of each side, in the metric's unit; `disturbed`: by other work.

    `base_first`: the base's was the first one, or began where both took turns. `seconds` both took. `phases`:
    own time by phase, in seconds per step, of the base and of the head; `typical_phases`: the same in a
    typical step, empty where they took no turns. `steps`: seconds of single steps, or of a few at a time, of
    the `base` and of the same ones of the `head`, as many of both; empty where they took no turns. `sweeps`:
    the points of both sweeps, `base` and `head`, as documents have them, the `parameter` and, where a job is
    projected along their line, its `amount`; empty where they weren't measured. `others`: memory and quality
    of both, of the whole, and beside a quality the step's time. `seed`: of both sides, where each pair has
    another. A quality that a side didn't report, or as no finite number, is None.
    """

    index: int
    base_first: bool
    base: float | None
    head: float | None
    disturbed: bool
    seconds: float
    phases: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    typical_phases: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    steps: Mapping[str, Sequence[float]] = field(default_factory=dict)
    sweeps: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, OtherMetric] = field(default_factory=dict)
    seed: int | None = None

    @property
    def unreported(self) -> str:
        """Which side lacks the quality that is weighed: base, head, both, or empty."""
        if self.base is None and self.head is None:
            return "both"
        return "base" if self.base is None else "head" if self.head is None else ""
