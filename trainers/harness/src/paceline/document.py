"""The document: what one run of one case measured, as versioned JSON.

Every format that was ever written stays readable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import metrics, schema
from .metrics import Kind

# Format history. A new member that may be missing doesn't raise the number; one that changes meaning does.
# paceline.document/1: the first. Later, each of them optional: processes, scaling, limits, job; gc, affinity
# and variables of the protocol; stacks and the operations' seconds of the profile.
FORMAT = "paceline.document/1"
SIZE_LIMIT = 16 * 2**20
UNATTRIBUTED = "(unattributed)"
SETUP = "(setup)"

Raw = dict[str, Any]


class DocumentError(Exception):
    """The document is refused; `path` names the offending field, empty for the document itself."""

    def __init__(self, path: str, sentence: str) -> None:
        super().__init__(f"{path or 'document'}: {sentence}")
        self.path = path
        self.sentence = sentence


# Kinds whose values are made with the clock: every warning that taints keeps them out of judgement.
TIMED = frozenset({"time", "rate", "utilization"})
# Warnings about what the code did, not about how fast: these spoil memory, counters and quality as well.
SPOILS_ALL = frozenset({"memory_pressure", "quality_below_guard", "quality_missing"})


@dataclass(frozen=True, slots=True)
class Identity:
    """Which case was measured. `case` is the canonical spelling of its parameters."""

    name: str
    version: int
    params: Mapping[str, str | int | float | bool]
    case: str


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


@dataclass(frozen=True, slots=True)
class Value:
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
class Phase:
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
class Channel:
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
class Function:
    """One function of the profile, per step; `phase` is where most of its calls fell."""

    function: str
    file: str
    line: int
    calls: float
    self_time: float
    cumulative: float
    phase: str | None


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack of the profile, outermost frame first, per step; `self_time` is the innermost frame's own."""

    stack: tuple[str, ...]
    phase: str | None
    calls: float
    self_time: float


@dataclass(frozen=True, slots=True)
class Profile:
    """The counting repetition's functions, stacks and tensor operations; what didn't fit is in `rest`.

    Operations are numbers per step by name, with own seconds per step where the document has them.
    """

    steps: int
    functions: tuple[Function, ...]
    rest: Mapping[str, float]
    operations: Mapping[str, float]
    operation_seconds: Mapping[str, float]
    stacks: tuple[Stack, ...]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A warning that rides in the document; one that taints keeps the run out of judgement."""

    code: str
    message: str
    advice: str
    taints: bool


@dataclass(frozen=True, slots=True)
class Process:
    """The processes of one label in the measured tree; `main` is the measured process itself.

    Peak resident bytes of all of them together, and their mean processor time in per cent of one core.
    """

    repetition: int
    name: str
    count: int
    peak_memory: float | None
    cpu_utilization: float | None


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One process that ran its whole loop with one value of the swept parameter; times in seconds."""

    value: float
    repetition: int
    steps: int
    seconds: float
    phases: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Exponent:
    """How a time grows with the swept parameter: value ** exponent, with its 95 % interval."""

    name: str
    phase: str | None
    value: float
    low: float
    high: float
    points: int


@dataclass(frozen=True, slots=True)
class Scaling:
    """A sweep over one parameter; `params` are those that the sweep sets beside the case's."""

    parameter: str
    points: tuple[ScalingPoint, ...]
    exponents: tuple[Exponent, ...]
    params: Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound of the manifest on a metric; value and crossed are None where it wasn't measured."""

    metric: str
    phase: str | None
    minimum: float | None
    maximum: float | None
    value: float | None
    crossed: bool | None


@dataclass(frozen=True, slots=True)
class Job:
    """The projected seconds of the manifest's full job; `source` is rate or scaling."""

    amount: float
    unit: str
    seconds: float
    low: float | None
    high: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was checked against its schema; `raw` is the JSON it came from."""

    raw: Raw
    created: str
    harness_version: str
    benchmark: Identity
    protocol: Mapping[str, Any]
    environment: Mapping[str, Any]
    repetitions: tuple[Repetition, ...]
    set_aside: list[Mapping[str, float]]
    metrics: tuple[Value, ...]
    phases: tuple[Phase, ...]
    telemetry: tuple[Channel, ...]
    profile: Profile | None
    warnings: tuple[Doubt, ...]
    processes: tuple[Process, ...] = ()
    scaling: Scaling | None = None
    limits: tuple[Limit, ...] = ()
    job: Job | None = None

    @property
    def tainted(self) -> bool:
        """Whether a warning keeps this run out of judgement."""
        return any(doubt.taints for doubt in self.warnings)

    def taints(self, kind: Kind) -> bool:
        """Whether a warning keeps values of this kind out of judgement.

        What disturbs the clock leaves what was counted and what was allocated as it is.
        """
        return any(doubt.taints and (kind in TIMED or doubt.code in SPOILS_ALL) for doubt in self.warnings)

    def metric(self, name: str, phase: str | None = None) -> Value | None:
        """Return the metric of that name and phase, or None."""
        return next((row for row in self.metrics if (row.name, row.phase) == (name, phase)), None)


def read(data: bytes | str) -> Document:
    """Parse and check a document of any format that was ever written; raises DocumentError."""
    raw = _parse(data)
    problem = schema.first_problem(raw, schema.published())
    if problem:
        raise DocumentError(*problem)
    _check_metrics(raw)
    _check_repetitions(raw)
    _check_additions(raw)
    return _build(raw)


def write(raw: Raw, path: Path) -> Document:
    """Check a document and rename it into place when it is whole; raises DocumentError."""
    data = json.dumps(raw, ensure_ascii=True, separators=(",", ":")).encode()
    checked = read(data)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(data)
    partial.replace(path)
    return checked


def _parse(data: bytes | str) -> Raw:
    encoded = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(encoded) > SIZE_LIMIT:
        raise DocumentError("", f"has {len(encoded)} bytes, at most {SIZE_LIMIT} are allowed")
    try:
        raw = json.loads(encoded, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise DocumentError("", f"is not valid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise DocumentError("", "must be an object")
    return raw


def _unique(pairs: list[tuple[str, Any]]) -> Raw:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"member {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return members


def _check_metrics(raw: Raw) -> None:
    seen: set[tuple[str, str | None]] = set()
    for index, row in enumerate(raw["metrics"]):
        path = f"metrics[{index}]"
        if (row["name"], row["phase"]) in seen:
            raise DocumentError(path, f"{row['name']} of phase {row['phase']} stands twice")
        seen.add((row["name"], row["phase"]))
        _check_known(row, path)
    for name in ("throughput", "step_time"):
        if (name, None) not in seen:
            raise DocumentError("metrics", f"{name} is missing")
    if sum(row["headline"] for row in raw["metrics"]) > metrics.HEADLINE_LIMIT:
        raise DocumentError("metrics", f"more than {metrics.HEADLINE_LIMIT} are headline")


def _check_known(row: Raw, path: str) -> None:
    known = metrics.describe(row["name"])
    if known is None:
        raise DocumentError(f"{path}.name", f"{row['name']!r} is unknown")
    for field, right in (("unit", known.unit), ("kind", known.kind)):
        if row[field] != right:
            raise DocumentError(f"{path}.{field}", f"is {row[field]!r}, must be {right!r}")
    # Which way a quality or a gauge is better, its manifest says.
    if row["better"] != known.better and known.kind not in ("quality", "utilization"):
        raise DocumentError(f"{path}.better", f"is {row['better']!r}, must be {known.better!r}")


def _check_repetitions(raw: Raw) -> None:
    for index, row in enumerate(raw["repetitions"]):
        histogram = row["step_times"]["histogram"]
        if row["index"] != index:
            raise DocumentError(f"repetitions[{index}].index", f"is {row['index']}, must be {index}")
        if len(histogram["edges"]) != len(histogram["counts"]) + 1:
            where = f"repetitions[{index}].step_times.histogram.counts"
            raise DocumentError(where, "must have one item fewer than edges")
    for name in ("telemetry", "processes"):
        for index, row in enumerate(raw.get(name, ())):
            if row["repetition"] >= len(raw["repetitions"]):
                raise DocumentError(f"{name}[{index}].repetition", "names a repetition that isn't there")


def _check_additions(raw: Raw) -> None:
    for index, row in enumerate(raw.get("limits", ())):
        if metrics.describe(row["metric"]) is None:
            raise DocumentError(f"limits[{index}].metric", f"{row['metric']!r} is unknown")
    for index, row in enumerate(raw.get("scaling", {}).get("exponents", ())):
        if metrics.describe(row["name"]) is None:
            raise DocumentError(f"scaling.exponents[{index}].name", f"{row['name']!r} is unknown")


def _build(raw: Raw) -> Document:
    return Document(
        raw=raw,
        created=raw["created"],
        harness_version=raw["harness"]["version"],
        benchmark=Identity(**raw["benchmark"]),
        protocol=raw["protocol"],
        environment=raw["environment"],
        repetitions=tuple(Repetition(**row) for row in raw["repetitions"]),
        set_aside=raw["set_aside"],
        metrics=tuple(Value(**row) for row in raw["metrics"]),
        phases=tuple(Phase(**_renamed(row)) for row in raw["phases"]),
        telemetry=tuple(Channel(**row) for row in raw["telemetry"]),
        profile=_profile(raw["profile"]) if raw["profile"] else None,
        warnings=tuple(Doubt(**row) for row in raw["warnings"]),
        processes=tuple(Process(**row) for row in raw.get("processes", ())),
        scaling=_scaling(raw["scaling"]) if "scaling" in raw else None,
        limits=tuple(Limit(**row) for row in raw.get("limits", ())),
        job=_job(raw["job"]) if "job" in raw else None,
    )


def _scaling(raw: Raw) -> Scaling:
    return Scaling(
        parameter=raw["parameter"],
        points=tuple(ScalingPoint(**row) for row in raw["points"]),
        exponents=tuple(Exponent(**row) for row in raw["exponents"]),
        params=raw.get("params", {}),
    )


def _job(raw: Raw) -> Job:
    return Job(source=raw["from"], **{name: value for name, value in raw.items() if name != "from"})


def _profile(raw: Raw) -> Profile:
    return Profile(
        steps=raw["steps"],
        functions=tuple(Function(**_renamed(row)) for row in raw["functions"]),
        rest=raw["rest"],
        operations={row["name"]: row["count"] for row in raw["operations"]},
        operation_seconds={row["name"]: row["seconds"] for row in raw["operations"] if "seconds" in row},
        stacks=tuple(_stack(row) for row in raw.get("stacks", ())),
    )


def _stack(row: Raw) -> Stack:
    return Stack(**_renamed({**row, "stack": tuple(row["stack"])}))


def _renamed(row: Raw) -> Raw:
    # `self` is the JSON's word; as a field it would clash with a method's own argument.
    return {("self_time" if name == "self" else name): value for name, value in row.items()}
