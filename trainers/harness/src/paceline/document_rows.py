"""The rows of a document, as its reader gives them: times in seconds, memory in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from . import metrics


@dataclass(frozen=True, slots=True)
class CaseIdentity:
    """Which case was measured. `case` is the canonical spelling of its parameters."""

    name: str
    version: int
    params: Mapping[str, str | int | float | bool]
    case: str


@dataclass(frozen=True, slots=True)
class LearningResult:
    """What was learned with another seed than the repetitions', whose times don't count."""

    seed: int
    quality: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class GuardResult:
    """How the run stands to a guard: the mean over the seeds, None where it is missing or has diverged."""

    quality: str
    better: metrics.Better
    minimum: float | None
    maximum: float | None
    value: float | None
    seeds: int
    state: Literal["kept", "violated", "missing", "diverged"]


@dataclass(frozen=True, slots=True)
class Repetition:
    """One fresh process; times in seconds, memory in bytes, the window on the telemetry's clock."""

    index: int
    steps: int
    seconds: float
    startup_seconds: float
    warmup_seconds: float
    throughput: float
    step_time: Mapping[str, float]
    step_times: Mapping[str, Any]
    warmup_times: Mapping[str, Any] | None
    peak_memory: float | None
    device_memory: Mapping[str, float] | None
    memory_growth: float | None
    memory_growth_interval: list[float] | None
    calibration_before: float
    calibration_after: float
    quality: Mapping[str, float]
    gauges: Mapping[str, float]
    counts: Mapping[str, float]
    window: Mapping[str, float]
    waited: float
    stolen: float | None = None
    phase_times: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One metric of the run, or of one of its phases: median, interval and one sample per repetition."""

    name: str
    unit: str
    better: metrics.Better
    kind: metrics.Kind
    phase: str | None
    exact: bool
    headline: bool
    value: float
    low: float | None
    high: float | None
    samples: list[float]


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """One phase in seconds per step; `self_time` excludes the phases nested in it."""

    path: str
    thread: str
    count: float
    total: float
    self_time: float
    share: float
    p50: float | None
    p90: float | None
    p99: float | None
    device_total: float | None


@dataclass(frozen=True, slots=True)
class TelemetryChannel:
    """One telemetry reading over one repetition, on a fixed grid; a missing reading is None."""

    repetition: int
    channel: str
    device: int | None
    unit: str
    start: float
    interval: float
    values: list[float | None]
    mean: float | None
    peak: float | None
    idle_share: float | None


@dataclass(frozen=True, slots=True)
class ProfiledFunction:
    """One function of the profile, per step; `phase` is where most of its calls fell."""

    function: str
    file: str
    line: int
    calls: float
    self_time: float
    cumulative: float
    phase: str | None


@dataclass(frozen=True, slots=True)
class ProfiledStack:
    """One stack of the profile, outermost frame first, per step; `self_time` is the innermost frame's own."""

    stack: tuple[str, ...]
    phase: str | None
    calls: float
    self_time: float


@dataclass(frozen=True, slots=True)
class GraphBreakPlace:
    """Where PyTorch's compiler broke a graph, how often per step, and why, where that is known."""

    function: str
    file: str
    line: int
    breaks: float
    reason: str | None


@dataclass(frozen=True, slots=True)
class Profile:
    """The counting repetition's functions, stacks and tensor operations; what didn't fit is in `rest`.

    Operations are numbers per step by name, with own seconds per step where the document has them.
    """

    steps: int
    functions: tuple[ProfiledFunction, ...]
    rest: Mapping[str, float]
    operations: Mapping[str, float]
    operation_seconds: Mapping[str, float]
    stacks: tuple[ProfiledStack, ...]
    graph_breaks: tuple[GraphBreakPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasurementWarning:
    """A warning that rides in the document; one that taints keeps the run out of judgement."""

    code: str
    message: str
    advice: str
    taints: bool


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """The processes of one label in the measured tree; `main` is the measured process itself.

    Peak resident bytes of all of them together, and their mean processor time in per cent of one core.
    """

    repetition: int
    name: str
    count: int
    peak_memory: float | None
    cpu_utilization: float | None


@dataclass(frozen=True, slots=True)
class SweepPointResult:
    """One process that ran its whole loop with one value of the swept parameter; times in seconds.

    `waited` is the share of the time in which the measured thread waited for a processor.
    """

    value: float
    repetition: int
    steps: int
    seconds: float
    phases: Mapping[str, float]
    waited: float = 0.0


@dataclass(frozen=True, slots=True)
class ScalingExponent:
    """How a time grows with the swept parameter: value ** exponent, with its 95 % interval."""

    name: str
    phase: str | None
    value: float
    low: float
    high: float
    points: int


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A sweep over one parameter; `params` are those that the sweep sets beside the case's."""

    parameter: str
    points: tuple[SweepPointResult, ...]
    exponents: tuple[ScalingExponent, ...]
    params: Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class LimitResult:
    """A bound of the manifest on a metric; value and crossed are None where it wasn't measured."""

    metric: str
    phase: str | None
    minimum: float | None
    maximum: float | None
    value: float | None
    crossed: bool | None


@dataclass(frozen=True, slots=True)
class ProjectedJob:
    """The projected seconds of the manifest's full job; `source` is rate or scaling."""

    amount: float
    unit: str
    seconds: float
    low: float | None
    high: float | None
    source: str


@dataclass(frozen=True, slots=True)
class RankResult:
    """One rank of one repetition; seconds are per step, memory is bytes.

    `late` is how much later than the others it comes to collectives, `waits` how long it waits there for the
    last one, `last` to how many `of` them it came last; None where that isn't known. `overlap` is the share
    of the time of collectives that went on beside computing, `own_time` the step less the time blocked in
    them. A collective has its number, the bytes given in and the seconds blocked.
    """

    repetition: int
    rank: int
    step_time: float
    collectives: list[Mapping[str, Any]]
    overlap: float | None
    late: float | None
    waits: float | None
    last: int | None
    of: int
    peak_memory: float | None
    device_memory: float | None
    phases: Mapping[str, float]
    own_time: float | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class RankResults:
    """All ranks; `slowest` is the one that the others wait for, None where `reason` says why it isn't known.

    `phase` is where it takes longer than the others, by `excess` seconds per step; None where no single one
    explains it.
    """

    world_size: int
    rows: tuple[RankResult, ...]
    slowest: int | None
    reason: str | None
    phase: str | None
    excess: float | None


@dataclass(frozen=True, slots=True)
class LoaderWorker:
    """One worker of a DataLoader: its batches per step, and who waited for whom.

    `fetch_time` is seconds per batch in the worker, `wait_time` seconds per step that the loop waits for its
    batches, `busy` the share of the window in which it fetches.
    """

    worker: int
    batches: float
    fetch_time: float
    wait_time: float
    busy: float


@dataclass(frozen=True, slots=True)
class LoaderResult:
    """One DataLoader with workers. `starved` is `loop` where it waits for data, `workers` where they wait.

    `ready` is the share of the batches that lay ready when the loop asked; `slowest` is the worker that takes
    longer than the others, None where they are alike.
    """

    repetition: int
    rank: int | None
    dataset: str
    batches: float
    wait_time: float
    fetch_time: float | None
    ready: float | None
    workers: tuple[LoaderWorker, ...]
    slowest: int | None
    starved: str | None


@dataclass(frozen=True, slots=True)
class HelperResult:
    """Python processes of one name that the measured one starts and that take no steps; all per step."""

    repetition: int
    name: str
    count: int
    cpu_time: float | None
    phases: Mapping[str, float]
    counts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A kernel, copy or filling of a device, or an operation of the host, in one phase; per step.

    `operation` is the one of PyTorch that launched it, empty where that isn't known.
    """

    kind: str
    name: str
    operation: str
    phase: str
    count: float
    seconds: float


@dataclass(frozen=True, slots=True)
class IdleRow:
    """Time of a step in which the device, or the host's operations, did nothing, by its cause and phase."""

    cause: str
    phase: str
    count: float
    seconds: float


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """Where the time of a profiled step went; seconds per step.

    `busy_seconds` and the idle rows add up to `step_seconds`; `explained` is the share that has a cause. Rows
    of streams that ran beside each other may add up to more than `busy_seconds`.
    """

    device: str
    steps: int
    step_seconds: float
    busy_seconds: float
    explained: float
    launches: float | None
    rows: tuple[TimelineRow, ...]
    rest: Mapping[str, float]
    idle: tuple[IdleRow, ...]
    phases: list[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class CostPart:
    """One part of a run and its seconds; `processes` ran it, one after the other or side by side."""

    part: str
    seconds: float
    processes: int


@dataclass(frozen=True, slots=True)
class RunCosts:
    """Seconds of the whole run, of its measured steps, and of each part; the parts add up to the whole."""

    seconds: float
    measured: float
    parts: tuple[CostPart, ...]


@dataclass(frozen=True, slots=True)
class CountingOrigin:
    """Where the counters are from: `counted_at` is the commit that they were taken over from, or None.

    `key` and `files` are what they depend on; with `doubts` no other commit takes them over. `repeats`: a
    counting of the same inputs had given the same.
    """

    counted_at: str | None
    key: str
    files: Mapping[str, str]
    doubts: list[str]
    repeats: bool
