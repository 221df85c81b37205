"""The document: what one run of one case measured, as versioned JSON.

Every format that was ever written stays readable.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from . import metrics, schema
from .document_rows import (
    CaseIdentity,
    CostPart,
    CountingOrigin,
    DeviceProfile,
    GraphBreakPlace,
    GuardResult,
    HelperResult,
    IdleRow,
    LearningResult,
    LimitResult,
    LoaderResult,
    LoaderWorker,
    MeasurementWarning,
    MetricValue,
    PhaseTimes,
    ProcessUse,
    Profile,
    ProfiledFunction,
    ProfiledStack,
    ProjectedJob,
    RankResult,
    RankResults,
    Repetition,
    RunCosts,
    ScalingExponent,
    SweepPointResult,
    SweepResult,
    TelemetryChannel,
    TimelineRow,
)
from .metrics import Kind

# Format history. A new member that may be missing doesn't raise the number; one that changes meaning does.
# paceline.document/1: the first. Later, each of them optional: processes, scaling, limits, job; gc,
# affinity and variables of the protocol; stacks of the profile, seconds and phases of its operations;
# what sweeps waited; cpu_features and settings of the environment; learning; step; ranks, loaders,
# helpers; kept_files of the environment; guards; passes of a step; graph breaks of the profile;
# device_profile, device_use and inactive_split of a repetition's device_memory; costs; counting;
# precision of the protocol; what was stolen in a repetition; phase_times of one whose steps took turns;
# dataset and collectives as causes of idle time. What a repetition waited counts only as far as others used
# a processor meanwhile.
FORMAT = "paceline.document/1"
SIZE_LIMIT = 16 * 2**20
# How far from zero a number may be, in the schema as well; one nearer to zero than the other is read as zero.
LARGEST, SMALLEST = 1e100, 1e-100

# What a page can show within a second: readings of all channels, channels of one repetition.
READINGS_LIMIT = 300_000
CHANNELS_LIMIT = 200
LONGEST_SHOWN = 100

Raw = dict[str, Any]


class DocumentError(Exception):
    """The document is refused; `path` names the offending field, empty for the document itself."""

    def __init__(self, path: str, sentence: str) -> None:
        super().__init__(f"{path or 'document'}: {sentence}")
        self.path = path
        self.sentence = sentence


# Kinds whose values are made with the clock: every warning that taints keeps them out of judgement.
TIMED_KINDS = frozenset({"time", "rate", "utilization"})
# What was learned is out of its guard's bounds, or isn't known. That is what qualities are judged for: only
# the other values of such a run aren't believed.
CODES_OF_LEARNING = frozenset({"quality_below_guard", "quality_missing", "quality_diverged"})
# Warnings about what the code did, not about how fast: these spoil memory and counters as well.
CODES_TAINTING_ALL = frozenset({"memory_pressure"}) | CODES_OF_LEARNING
# Warnings about what went on around the code: at a calmer hour the same code may be measured without them.
CODES_OF_DISTURBANCE = frozenset(
    {
        *("unstable_repetitions", "calibration_drift", "processor_contention"),
        *("throttling", "co_tenant", "clock_change", "device_lost"),
    }
)


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was checked against its schema; `raw` is the JSON it came from."""

    raw: Raw
    created: str
    harness_version: str
    benchmark: CaseIdentity
    protocol: Mapping[str, Any]
    environment: Mapping[str, Any]
    repetitions: tuple[Repetition, ...]
    set_aside: list[Mapping[str, float | None]]
    metrics: tuple[MetricValue, ...]
    phases: tuple[PhaseTimes, ...]
    telemetry: tuple[TelemetryChannel, ...]
    profile: Profile | None
    warnings: tuple[MeasurementWarning, ...]
    processes: tuple[ProcessUse, ...] = ()
    scaling: SweepResult | None = None
    limits: tuple[LimitResult, ...] = ()
    job: ProjectedJob | None = None
    learning: tuple[LearningResult, ...] = ()
    step: Mapping[str, Any] | None = None
    ranks: RankResults | None = None
    device_profile: DeviceProfile | None = None
    device_use: Mapping[str, Any] | None = None
    guards: tuple[GuardResult, ...] = ()
    loaders: tuple[LoaderResult, ...] = ()
    helpers: tuple[HelperResult, ...] = ()
    costs: RunCosts | None = None
    counting: CountingOrigin | None = None

    @property
    def tainted(self) -> bool:
        """Whether a warning keeps this run out of judgement."""
        return any(doubt.taints for doubt in self.warnings)

    def taints(self, kind: Kind) -> bool:
        """Whether a warning keeps values of this kind out of judgement.

        What disturbs the clock leaves what was counted and what was allocated as it is; what was learned too
        little is judged all the same.
        """
        spoiling = CODES_TAINTING_ALL - CODES_OF_LEARNING if kind == "quality" else CODES_TAINTING_ALL
        return any(
            warning.taints and (kind in TIMED_KINDS or warning.code in spoiling) for warning in self.warnings
        )

    def metric(self, name: str, phase: str | None = None) -> MetricValue | None:
        """Return the metric of that name and phase, or None."""
        return next((row for row in self.metrics if (row.name, row.phase) == (name, phase)), None)


def read_document(data: bytes | str) -> Document:
    """Parse and check a document of any format that was ever written; raises DocumentError."""
    raw = _parse_json(data)
    problem = schema.first_problem(raw, schema.load_schema())
    if problem:
        raise DocumentError(*problem)
    _check_date(raw)
    _check_metrics(raw)
    _check_repetitions(raw)
    _check_telemetry(raw)
    _check_optional_members(raw)
    return _build_document(raw)


def write_document(raw: Raw, path: Path) -> Document:
    """Check a document and rename it into place when it is whole; raises DocumentError, OSError of `path`."""
    data = json.dumps(raw, ensure_ascii=True, separators=(",", ":")).encode()
    checked = read_document(data)
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        # A full disk names no file.
        raise OSError(error.errno, error.strerror, str(path)) from error
    return checked


def _parse_json(data: bytes | str) -> Raw:
    encoded = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(encoded) > SIZE_LIMIT:
        raise DocumentError("", f"has {len(encoded)} bytes, at most {SIZE_LIMIT} are allowed")
    try:
        raw = json.loads(encoded, object_pairs_hook=_refuse_duplicates, parse_float=_parse_float)
    except (ValueError, RecursionError) as error:
        raise DocumentError("", f"is not valid JSON: {error}") from error
    if not isinstance(raw, dict):
        raise DocumentError("", "must be an object")
    return raw


def _parse_float(text: str) -> float:
    # What is divided by a number nearer to zero may be infinite, and no page can show that.
    value = float(text)
    return value if abs(value) >= SMALLEST else 0.0


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> Raw:
    members = dict(pairs)
    if len(members) != len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"member {repeated[:LONGEST_SHOWN]!r} stands twice")
    return members


def _check_date(raw: Raw) -> None:
    try:
        datetime.fromisoformat(raw["created"])
    except ValueError as error:
        raise DocumentError("created", f"is {raw['created']!r}, which is no date: {error}") from error


def _check_metrics(raw: Raw) -> None:
    keys: set[tuple[str, str | None]] = set()
    for index, row in enumerate(raw["metrics"]):
        path = f"metrics[{index}]"
        if (row["name"], row["phase"]) in keys:
            raise DocumentError(path, f"{row['name']} of phase {row['phase']} stands twice")
        keys.add((row["name"], row["phase"]))
        _check_description(row, path)
    for name in ("throughput", "step_time"):
        if (name, None) not in keys:
            raise DocumentError("metrics", f"{name} is missing")
    if sum(row["headline"] for row in raw["metrics"]) > metrics.HEADLINE_LIMIT:
        raise DocumentError("metrics", f"more than {metrics.HEADLINE_LIMIT} are headline")


def _check_description(row: Raw, path: str) -> None:
    metric = metrics.describe_metric(row["name"])
    if metric is None:
        raise DocumentError(f"{path}.name", f"{row['name']!r} is unknown")
    for field, right in (("unit", metric.unit), ("kind", metric.kind)):
        if row[field] != right:
            raise DocumentError(f"{path}.{field}", f"is {row[field]!r}, must be {right!r}")
    # Which way a quality or a gauge is better, its manifest says.
    if row["better"] != metric.better and metric.kind not in ("quality", "utilization"):
        raise DocumentError(f"{path}.better", f"is {row['better']!r}, must be {metric.better!r}")


def _check_repetitions(raw: Raw) -> None:
    for index, row in enumerate(raw["repetitions"]):
        histogram = row["step_times"]["histogram"]
        if row["index"] != index:
            raise DocumentError(f"repetitions[{index}].index", f"is {row['index']}, must be {index}")
        if len(histogram["edges"]) != len(histogram["counts"]) + 1:
            where = f"repetitions[{index}].step_times.histogram.counts"
            raise DocumentError(where, "must have one item fewer than edges")
        if any(low >= high for low, high in pairwise(histogram["edges"])):
            raise DocumentError(f"repetitions[{index}].step_times.histogram.edges", "must ascend")
    for name in ("telemetry", "processes", "loaders", "helpers"):
        for index, row in enumerate(raw.get(name, ())):
            if row["repetition"] >= len(raw["repetitions"]):
                raise DocumentError(f"{name}[{index}].repetition", "names a repetition that isn't there")


def _check_telemetry(raw: Raw) -> None:
    readings = sum(len(row["values"]) for row in raw["telemetry"])
    if readings > READINGS_LIMIT:
        raise DocumentError("telemetry", f"has {readings} readings, at most {READINGS_LIMIT} are allowed")
    repetition, channels = max(
        Counter(row["repetition"] for row in raw["telemetry"]).items(), key=itemgetter(1), default=(0, 0)
    )
    if channels > CHANNELS_LIMIT:
        sentence = f"has {channels} channels of repetition {repetition}, at most {CHANNELS_LIMIT} are allowed"
        raise DocumentError("telemetry", sentence)


def _check_optional_members(raw: Raw) -> None:
    for index, row in enumerate(raw.get("limits", ())):
        if metrics.describe_metric(row["metric"]) is None:
            raise DocumentError(f"limits[{index}].metric", f"{row['metric']!r} is unknown")
    for index, row in enumerate(raw.get("scaling", {}).get("exponents", ())):
        if metrics.describe_metric(row["name"]) is None:
            raise DocumentError(f"scaling.exponents[{index}].name", f"{row['name']!r} is unknown")


def _build_document(raw: Raw) -> Document:
    return Document(
        raw=raw,
        created=raw["created"],
        harness_version=raw["harness"]["version"],
        benchmark=CaseIdentity(**raw["benchmark"]),
        protocol=raw["protocol"],
        environment=raw["environment"],
        repetitions=tuple(Repetition(**row) for row in raw["repetitions"]),
        set_aside=raw["set_aside"],
        metrics=tuple(MetricValue(**row) for row in raw["metrics"]),
        phases=tuple(PhaseTimes(**_rename_self(row)) for row in raw["phases"]),
        telemetry=tuple(TelemetryChannel(**row) for row in raw["telemetry"]),
        profile=_build_profile(raw["profile"]) if raw["profile"] else None,
        warnings=tuple(MeasurementWarning(**row) for row in raw["warnings"]),
        processes=tuple(ProcessUse(**row) for row in raw.get("processes", ())),
        scaling=_build_scaling(raw["scaling"]) if "scaling" in raw else None,
        limits=tuple(LimitResult(**row) for row in raw.get("limits", ())),
        job=_build_job(raw["job"]) if "job" in raw else None,
        learning=tuple(LearningResult(**row) for row in raw.get("learning", ())),
        step=raw.get("step"),
        ranks=_build_ranks(raw["ranks"]) if "ranks" in raw else None,
        device_profile=_build_device_profile(raw["device_profile"]) if "device_profile" in raw else None,
        device_use=raw.get("device_use"),
        guards=tuple(GuardResult(**row) for row in raw.get("guards", ())),
        loaders=tuple(_build_loader(row) for row in raw.get("loaders", ())),
        helpers=tuple(HelperResult(**row) for row in raw.get("helpers", ())),
        costs=_build_costs(raw["costs"]) if "costs" in raw else None,
        counting=CountingOrigin(**raw["counting"]) if "counting" in raw else None,
    )


def _build_costs(raw: Raw) -> RunCosts:
    return RunCosts(**{**raw, "parts": tuple(CostPart(**row) for row in raw["parts"])})


def _build_ranks(raw: Raw) -> RankResults:
    return RankResults(**{**raw, "rows": tuple(RankResult(**row) for row in raw["rows"])})


def _build_device_profile(raw: Raw) -> DeviceProfile:
    members = {
        "rows": tuple(TimelineRow(**row) for row in raw["rows"]),
        "idle": tuple(IdleRow(**row) for row in raw["idle"]),
    }
    return DeviceProfile(**{**raw, **members})


def _build_loader(raw: Raw) -> LoaderResult:
    return LoaderResult(**{**raw, "workers": tuple(LoaderWorker(**row) for row in raw["workers"])})


def _build_scaling(raw: Raw) -> SweepResult:
    return SweepResult(
        parameter=raw["parameter"],
        points=tuple(SweepPointResult(**row) for row in raw["points"]),
        exponents=tuple(ScalingExponent(**row) for row in raw["exponents"]),
        params=raw.get("params", {}),
    )


def _build_job(raw: Raw) -> ProjectedJob:
    return ProjectedJob(source=raw["from"], **{name: value for name, value in raw.items() if name != "from"})


def _build_profile(raw: Raw) -> Profile:
    return Profile(
        steps=raw["steps"],
        functions=tuple(ProfiledFunction(**_rename_self(row)) for row in raw["functions"]),
        rest=raw["rest"],
        operations={row["name"]: row["count"] for row in raw["operations"]},
        operation_seconds={row["name"]: row["seconds"] for row in raw["operations"] if "seconds" in row},
        stacks=tuple(_build_stack(row) for row in raw.get("stacks", ())),
        graph_breaks=tuple(GraphBreakPlace(**row) for row in raw.get("graph_breaks", ())),
    )


def _build_stack(row: Raw) -> ProfiledStack:
    return ProfiledStack(**_rename_self({**row, "stack": tuple(row["stack"])}))


def _rename_self(row: Raw) -> Raw:
    # `self` is the JSON's word; as a field it would clash with a method's own argument.
    return {("self_time" if name == "self" else name): value for name, value in row.items()}
