"""A claim, what has to be measured for it, and what was found: plain values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from .. import metrics
from ..manifest.benchmarks import case_key
from ..manifest.limits import SWEEP_METRICS
from ..manifest.toml_table import Scalar
from ..units import format_number

DIRECTIONS = ("better", "worse", "same")
SECONDS_PER = "seconds_per."
"""The prefix of the metric that divides the step's time by a count of the code: `seconds_per.episodes`."""

PHASE_SHARE = "phase_share"
"""The metric that divides the time of phases by the step's: `phase_share:act+env`."""

NO_DIFFERENCE = 0.02
"""A ratio this near to 1 is no difference, however certain it is."""

Params = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is measured in turn: the cases, one or two, in one window, and for a claim about learning by seed.

    The steps are None where they are the benchmark's own. Without seeds all pairs have the benchmark's seed.
    """

    cases: tuple[Params, ...]
    warmup_steps: int | None = None
    steps: int | None = None
    seeds: tuple[int, ...] = ()
    sweeps: bool = False

    @property
    def window(self) -> tuple[object, ...]:
        """What two comparisons must share for a measurement of one to serve the other."""
        return self.warmup_steps, self.steps, self.seeds, self.sweeps

    @property
    def key(self) -> str:
        """Spell the comparison: the same for the same cases in the same window."""
        return repr((*map(case_key, self.cases), *self.window))


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim. `low` to `high` is what the document says: a ratio, or with one case a value in `unit`.

    A claim without a number has None for both, one of "at least" no `high`, one of "at most" no `low`.
    `tolerance` is the part by which that may be missed, None for the part that holds for all claims. `before`
    is None where there is one case only; `after` is None where the claim can't be tested, for the reason
    `untestable`. `toggle` is the one parameter in which
    the two cases differ, where the claim is about one. `equal_training` are two cases that do the same
    training, so that a headline shows how much of it is speed alone.
    """

    key: str
    claim: str
    low: float | None
    high: float | None
    direction: str = DIRECTIONS[0]
    metric: str = "throughput"
    phase: str | None = None
    counter: str | None = None
    before: Params | None = None
    after: Params | None = None
    equal_training: tuple[Params, Params] | None = None
    warmup_steps: int | None = None
    steps: int | None = None
    seeds: tuple[int, ...] = ()
    factor: float = 1.0
    unit: str = ""
    toggle: str | None = None
    needs_cuda: bool = False
    untestable: str | None = None
    tolerance: float | None = None

    @property
    def cases(self) -> tuple[Params, ...]:
        """The claim's own cases: none, one or two."""
        return tuple(case for case in (self.before, self.after) if case is not None)

    @property
    def main_comparison(self) -> Comparison:
        """What decides on the claim."""
        sweeps = self.metric.startswith(SWEEP_METRICS)
        return Comparison(self.cases, self.warmup_steps, self.steps, self.seeds, sweeps)

    @property
    def equal_comparison(self) -> Comparison | None:
        """The same with equal training on both sides, where the claim has it."""
        if self.equal_training is None:
            return None
        return Comparison(self.equal_training, self.warmup_steps, self.steps)

    @property
    def is_counted(self) -> bool:
        """Whether the claim is about a counter, which is exact, so that counting once decides."""
        metric = metrics.describe_metric(self.metric.partition(":")[0])
        is_counter = metric is not None and metric.kind == "counter" and not self.metric.startswith("count.")
        return is_counter and not self.metric.startswith(SWEEP_METRICS)

    @property
    def needs_counting(self) -> bool:
        """Whether the claim's cases have to be counted."""
        return self.is_counted or self.counter is not None

    @property
    def definition(self) -> str:
        """A digest of all that the measurements rest on, and of what is claimed."""
        # The verdict is made anew of the figures, so that another tolerance needs no other measurement.
        fields = asdict(self)
        del fields["tolerance"]
        return hashlib.sha256(repr(sorted(fields.items())).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median with its interval, which for less than three samples is their range."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        spread = f" [{format_number(self.low)}, {format_number(self.high)}]" if self.low < self.high else ""
        return f"{format_number(self.value)}{spread}"


def shows_no_difference(ratio: Estimate) -> bool:
    """Return whether a ratio shows no difference."""
    return ratio.low <= 1 <= ratio.high or abs(ratio.value - 1) < NO_DIFFERENCE


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verdict rests on: `kind` is pairs, seeds, runs, sweep or counted, `samples` how many of them.

    `disturbed` of the `measurements` waited for a processor. `windows` is standard or quick, the claim's own
    windows apart; `machine` names processor or device, cores and torch; `day` is when, as YYYY-MM-DD.
    """

    kind: str
    samples: int
    measurements: int
    disturbed: int
    windows: str
    machine: str
    day: str


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The verdict on a claim with its figures; without evidence it was not measured.

    `too_slow`: since a measurement took longer than the benchmark's time limit.
    """

    claim: Claim
    verdict: str
    measured: Estimate | None = None
    unit: str = "x"
    phase: Estimate | None = None
    equal_training: Estimate | None = None
    counter: tuple[float, float | None] | None = None
    evidence: Evidence | None = None
    too_slow: bool = False
