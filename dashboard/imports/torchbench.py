"""What TorchBench's userbenchmarks write: metrics-YYYYmmddHHMMSS.json with `name`, `environ`, `metrics`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from dashboard.imports import units
from dashboard.imports.json_file import JsonPlace, ReportProgress, locate_commit, read_json_files
from dashboard.imports.results import (
    LONGEST_PARAM,
    ImportedMetric,
    ImportedResults,
    ImportedRun,
    ImportedValue,
    ImportOrigin,
    Scalar,
    printable_text,
    shorten_text,
)
from dashboard.name_lengths import LONGEST_BENCHMARK

FILE_TIME = re.compile(r"metrics-(\d{14})")
# `model=BERT_pytorch, test=train, extra_args=['--amp', 'bf16'], metric=latencies`: a list holds commas.
SETTING = re.compile(r"\s*([A-Za-z_]\w*)=(\[[^\]]*\]|[^,]*)(?:,|$)")
# `alexnet-train_latency`: the metric is the last word.
LAST_WORD = re.compile(r"(?P<rest>.+?)[-_ ](?P<metric>latency|latencies|throughput|throughputs|cmem|gmem)$")
GIGABYTE = 1e9


def read_torchbench(
    path: Path, origin: ImportOrigin, report_progress: ReportProgress = None
) -> ImportedResults:
    """A file, or all of a folder; raises ImportRefused. What is no number is left out and counted."""
    results = ImportedResults()
    for place in read_json_files(path, report_progress):
        results.runs += _read_file(place, origin, results)
    return results


def _read_file(place: JsonPlace, origin: ImportOrigin, results: ImportedResults) -> Iterator[ImportedRun]:
    name = place.member("name").read_text()
    version = place.member("environ").find("pytorch_git_version")
    measured_at = _time_of_name(place.file)
    commit, date = locate_commit(origin, place.file, version.read_text() if version else "", measured_at)
    values: dict[tuple[str, tuple[tuple[str, Scalar], ...]], list[ImportedValue]] = {}
    for key, metric in place.member("metrics").members():
        if not isinstance(metric.value, int | float) or isinstance(metric.value, bool):
            results.skipped["without a number"] += 1
            continue
        benchmark, params, described, factor = _describe_key(name, key)
        identity = (benchmark, tuple(sorted(params.items())))
        values.setdefault(identity, []).append(ImportedValue(described, metric.read_number() * factor))
    for (benchmark, settings), found in values.items():
        yield ImportedRun(
            commit=commit,
            date=date,
            benchmark=shorten_text(benchmark, LONGEST_BENCHMARK),
            params=dict(settings),
            pool=origin.pool or "imported",
            values=tuple(found),
            measured_at=measured_at,
        )


def _describe_key(name: str, key: str) -> tuple[str, dict[str, Scalar], ImportedMetric, float]:
    """(benchmark, parameters, metric, factor) of the text that names a value."""
    settings = {
        setting: value.strip()
        for setting, value in SETTING.findall(key)
        if value.strip() not in ("", "None", "[]")
    }
    if "metric" in settings and "model" in settings:
        metric, model = settings.pop("metric"), settings.pop("model")
        params: dict[str, Scalar] = {
            setting: printable_text(value, LONGEST_PARAM) for setting, value in settings.items()
        }
        return printable_text(f"{name}/{model}", LONGEST_BENCHMARK), params, *_metric_and_factor(metric)
    found = LAST_WORD.fullmatch(key)
    rest, metric = (found["rest"], found["metric"]) if found else (key, "value")
    return printable_text(f"{name}/{rest}", LONGEST_BENCHMARK), {}, *_metric_and_factor(metric)


def _metric_and_factor(metric: str) -> tuple[ImportedMetric, float]:
    """TorchBench's latencies are milliseconds, its memory gigabytes."""
    if metric in ("latency", "latencies"):
        return units.standard_metric("step_time"), 1e-3
    if metric in ("cmem", "cpu_peak_mem"):
        return units.standard_metric("peak_memory"), GIGABYTE
    if metric in ("gmem", "gpu_peak_mem"):
        return units.standard_metric("device_memory"), GIGABYTE
    if metric in ("throughput", "throughputs"):
        return units.reported_metric("throughput", "1/s", "higher"), 1.0
    return units.reported_metric(printable_text(metric, LONGEST_PARAM), "1", "lower"), 1.0


def _time_of_name(file: Path) -> datetime | None:
    found = FILE_TIME.search(file.name)
    try:
        return datetime.strptime(found[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC) if found else None
    except ValueError:
        return None
