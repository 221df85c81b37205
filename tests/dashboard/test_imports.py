"""Each reader of another tool's files: small samples in the form of the tool, and odd ones refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from dashboard import imports
from dashboard.imports import ImportedResults, ImportedRun, ImportOrigin, ImportRefused
from dashboard.models import Point, Project, Run, Series
from tests.dashboard.conftest import Repository

ORIGIN = ImportOrigin("v1", datetime(2026, 3, 1, tzinfo=UTC))
PYTEST = {
    "machine_info": {
        "node": "gpu.lab", "machine": "x86_64", "system": "Linux", "python_version": "3.11.4",
        "python_implementation": "CPython", "cpu": {"brand_raw": "EPYC", "count": 8},
    },
    "commit_info": {"id": "4f1c2a9" + 33 * "0", "time": "2026-03-01T09:00:00+01:00", "dirty": False},
    "datetime": "2026-03-01T10:00:00+00:00",
    "benchmarks": [
        {
            "fullname": "tests/test_step.py::test_step[64]", "name": "test_step[64]", "params": {"batch": 64},
            "extra_info": {"tokens": 512, "note": "warm"}, "stats": {"median": 0.0123, "rounds": 50},
        },
        {"fullname": "tests/test_step.py::test_load", "params": None, "stats": {"median": 2e-6}},
    ],
}  # fmt: skip
GOOGLE = {
    "context": {
        "date": "2026-03-01T10:00:00+00:00", "host_name": "gpu.lab", "num_cpus": 8,
        "library_build_type": "release", "commit": "4f1c2a9",
    },
    "benchmarks": [
        *(
            {
                "name": "BM_Copy/64/threads:2", "run_name": "BM_Copy/64/threads:2", "run_type": "iteration",
                "repetition_index": index, "threads": 2, "iterations": 1000, "real_time": time,
                "cpu_time": time / 2, "time_unit": "us", "bytes_per_second": 1e9, "misses": 3.0,
            }
            for index, time in enumerate((10.0, 30.0, 12.0))
        ),
        {"name": "BM_Copy/64/threads:2_mean", "run_name": "BM_Copy/64/threads:2", "run_type": "aggregate",
         "real_time": 17.3, "cpu_time": 9, "time_unit": "us"},
        {"name": "BM_Bad", "run_type": "iteration", "error_occurred": True, "error_message": "no GPU"},
    ],
}  # fmt: skip
BENCHER = {
    "train": {
        "latency": {"value": 88.0, "lower_value": 87.4, "upper_value": 88.9},
        "throughput": {"value": 5.5},
    },
    "binary": {"file-size": {"value": 42.0}},
}
ALEXNET = "model=alexnet, test=train, device=cuda, bs=None, extra_args=['--amp', 'bf16']"
TORCHBENCH = {
    "name": "test_bench",
    "environ": {"pytorch_git_version": "4f1c2a9" + 33 * "0"},
    "metrics": {
        f"{ALEXNET}, metric=latencies": 12.5,
        f"{ALEXNET}, metric=gpu_peak_mem": 2,
        "resnet50-eval_latency": 3.5,
        "success": "yes",
    },
}
SIMPLE = """
FIT Profiler Report

----------------------------------------
|  Action  \t|  Mean duration (s)\t|  Num calls  \t|  Total time (s) \t|  Percentage %  \t|
----------------------------------------
|  Total  \t|  -  \t|  900  \t|  25.0  \t|  100 %  \t|
----------------------------------------
|  run_training_epoch  \t|  12.0  \t|  2  \t|  24.0  \t|  96.0  \t|
|  run_training_batch  \t|  0.04  \t|  400  \t|  16.0  \t|  64.0  \t|
|  [_TrainingEpochLoop].train_dataloader_next\t|  0.01\t|  402\t|  4.0\t|  16.0\t|
|  [Callback]TQDMProgressBar.on_train_batch_end\t|  5.993e-06\t|  400\t|  2.4e-03\t|  0.01\t|
"""
ADVANCED = """FIT Profiler Report
Profile stats for: run_training_batch rank: 0
         4869394 function calls (4863767 primitive calls) in 18.893 seconds

   Ordered by: cumulative time
   ncalls  tottime  percall  cumtime  percall filename:lineno(function)
     1876    0.008    0.000   18.877    0.010 dataloader.py:344(__next__)
Profile stats for: [Strategy]SingleDeviceStrategy.backward
         12 function calls in 0.500 seconds
"""


def write_file(folder: Path, value: Any, name: str = "results.json") -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def read_values(run: ImportedRun) -> dict[str, float]:
    return {f"{value.metric.name} {value.phase}".strip(): value.value for value in run.values}


def test_pytest_benchmark(tmp_path: Path) -> None:
    step, load = imports.read_pytest_benchmark(write_file(tmp_path, PYTEST), ImportOrigin()).runs
    assert (step.benchmark, step.params) == ("tests/test_step.py::test_step", {"batch": 64})
    assert read_values(step) == {"step_time": 0.0123, "gauge.tokens": 512}
    assert (load.benchmark, read_values(load)) == ("tests/test_step.py::test_load", {"step_time": 2e-6})
    assert (step.commit[:7], step.date) == ("4f1c2a9", datetime(2026, 3, 1, 8, tzinfo=UTC))
    assert (step.pool, step.fingerprint["cpu_model"]) == ("gpu_lab-CPython-3_11", "EPYC")


def test_of_a_folder_the_newer_file_of_a_commit_counts(tmp_path: Path) -> None:
    later = {**PYTEST, "datetime": "2026-03-02T10:00:00+00:00"}
    later["benchmarks"] = [{**PYTEST["benchmarks"][1], "stats": {"median": 5.0}}]  # type: ignore[index]
    write_file(tmp_path, later, "0001_later.json")
    write_file(tmp_path, PYTEST, "0002_earlier.json")
    dirty = {**PYTEST, "commit_info": {**PYTEST["commit_info"], "dirty": True}}  # type: ignore[dict-item]
    write_file(tmp_path, dirty, "0003_dirty.json")
    results = imports.read_pytest_benchmark(tmp_path, ImportOrigin())
    assert {run.benchmark: read_values(run)["step_time"] for run in results.runs} == {
        "tests/test_step.py::test_step": 0.0123,
        "tests/test_step.py::test_load": 5.0,
    }
    assert results.skipped == {"measured again later": 1, "of changes that weren't committed": 2}


def test_google_benchmark(tmp_path: Path) -> None:
    results = imports.read_google_benchmark(write_file(tmp_path, GOOGLE), ImportOrigin())
    (run,) = results.runs
    assert (run.benchmark, run.params, run.pool) == ("BM_Copy", {"argument1": 64, "threads": 2}, "gpu_lab")
    assert read_values(run) == pytest.approx(
        {"step_time": 12e-6, "gauge.cpu_time": 6e-6, "gauge.bytes_per_second": 1e9, "gauge.misses": 3}
    )
    assert results.skipped == {"failed": 1}


def test_bencher(tmp_path: Path) -> None:
    train, binary = imports.read_bencher(write_file(tmp_path, BENCHER), ORIGIN).runs
    time, throughput = train.values
    assert (time.value, time.low, time.high) == pytest.approx((88e-9, 87.4e-9, 88.9e-9))
    assert (throughput.metric.better, throughput.low) == ("higher", None)
    assert read_values(binary) == {"gauge.file_size": 42}


def test_torchbench(tmp_path: Path) -> None:
    path = write_file(tmp_path, TORCHBENCH, "metrics-20260301100000.json")
    results = imports.read_torchbench(path, ImportOrigin())
    alexnet, resnet = results.runs
    assert (alexnet.benchmark, dict(alexnet.params)) == (
        "test_bench/alexnet",
        {"test": "train", "device": "cuda", "extra_args": "['--amp', 'bf16']"},
    )
    assert read_values(alexnet) == {"step_time": 0.0125, "device_memory": 2e9}
    assert (resnet.benchmark, read_values(resnet)) == ("test_bench/resnet50-eval", {"step_time": 0.0035})
    assert alexnet.date == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert results.skipped == {"without a number": 1}


# With `extended=False` calls and percentages are missing, and the row of totals.
SHORT = "\n".join(
    "|".join(line.split("|")[index] for index in (0, 1, 2, 4, 6)) if line.count("|") == 6 else line
    for line in SIMPLE.splitlines()
    if "Total  \t" not in line
)


@pytest.mark.parametrize("report", [SIMPLE, SHORT])
def test_lightning_simple_profiler(tmp_path: Path, report: str) -> None:
    (run,) = imports.read_lightning(write_file(tmp_path, report, "fit.txt"), ORIGIN).runs
    values = read_values(run)
    assert values["step_time"] == pytest.approx(20 / 400)
    assert values["phase_time run_training_batch"] == pytest.approx(0.04)
    assert values["phase_time [Callback]TQDMProgressBar.on_train_batch_end"] == pytest.approx(6e-6)
    assert "phase_time Total" not in values


def test_lightning_advanced_profiler(tmp_path: Path) -> None:
    (run,) = imports.read_lightning(write_file(tmp_path, ADVANCED, "fit.txt"), ORIGIN).runs
    assert read_values(run) == {
        "gauge.action_time run_training_batch": 18.893,
        "gauge.action_time [Strategy]SingleDeviceStrategy.backward": 0.5,
    }


def trace_event(name: str, start: float, length: float, **fields: Any) -> dict[str, Any]:
    event = {"ph": "X", "name": name, "ts": start, "dur": length, "pid": 1, "tid": 1}
    return event | {"cat": "user_annotation"} | fields


TRACE = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
    trace_event("warm-up", 0, 90),
    *(trace_event(f"ProfilerStep#{step}", 100 * step, 100) for step in (1, 2)),
    *(trace_event("forward", 100 * step, 40) for step in (1, 2)),
    *(trace_event("attention", 100 * step + 10, 20) for step in (1, 2)),
    trace_event("aten::mm", 110, 15, cat="cpu_op"),
    trace_event("forward", 100, 900, tid=7, cat="gpu_user_annotation"),
]


def test_a_trace_of_torch_profiler(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": TRACE}).encode()))
    (run,) = imports.read_chrome_trace(path, ORIGIN).runs
    assert read_values(run) == pytest.approx(
        {"step_time": 1e-4, "phase_time forward": 4e-5, "phase_time forward/attention": 2e-5}
    )


def test_a_trace_without_steps_is_of_one(tmp_path: Path) -> None:
    events = [
        {"ph": "B", "name": "load", "ts": 5, "pid": 1, "tid": 1},
        {"ph": "E", "ts": 25, "pid": 1, "tid": 1},
        {"ph": "X", "name": "save", "ts": 25, "dur": 10, "pid": 1, "tid": 1},
        {"ph": "X", "name": "idle", "ts": 0, "dur": 1, "pid": 1, "tid": 2},
        # As torch.profiler draws the whole of its recording.
        trace_event("PyTorch Profiler (0)", 0, 900, cat="Trace", pid="Spans", tid="PyTorch Profiler"),
    ]
    (run,) = imports.read_chrome_trace(write_file(tmp_path, events), ORIGIN).runs
    assert read_values(run) == pytest.approx(
        {"step_time": 3e-5, "phase_time load": 2e-5, "phase_time save": 1e-5}
    )


@pytest.mark.parametrize(
    ("reader", "value", "sentence"),
    [
        (imports.read_pytest_benchmark, [], "the file isn't an object"),
        (imports.read_pytest_benchmark, PYTEST | {"benchmarks": [{}]}, r"benchmarks\[0\]\.name is missing"),
        (
            imports.read_pytest_benchmark,
            PYTEST | {"benchmarks": [{"name": "a", "stats": {"median": "fast"}}]},
            r"benchmarks\[0\]\.stats\.median is 'fast', not a finite number",
        ),
        (imports.read_pytest_benchmark, PYTEST | {"datetime": "noon"}, "datetime is 'noon', not a date"),
        (imports.read_google_benchmark, {"context": {}, "benchmarks": []}, "which commit it measured"),
        (
            imports.read_google_benchmark,
            GOOGLE | {"benchmarks": [{"name": "a", "real_time": 1, "cpu_time": 1, "time_unit": "day"}]},
            r"benchmarks\[0\]\.time_unit is 'day'",
        ),
        (imports.read_bencher, {"train": {"latency": {}}}, r'\["train"\]\["latency"\]\.value is missing'),
        (imports.read_bencher, {"train": {}}, r'\["train"\] has no measure'),
        (imports.read_torchbench, {"name": "a", "metrics": {}}, "environ is missing"),
        (imports.read_lightning, "nothing of it", "holds no report of the SimpleProfiler"),
        (imports.read_chrome_trace, {"traceEvents": 3}, "traceEvents isn't a list"),
        (imports.read_chrome_trace, [{"ph": "X", "ts": "now"}], r"traceEvents\[0\]\.ts is 'now', not a time"),
        (imports.read_chrome_trace, [], "holds no span"),
        (imports.read_bencher, '{"a": NaN}', "can't be read: NaN is no number"),
    ],
)
def test_odd_files_are_refused_with_the_place(
    tmp_path: Path, reader: Callable[..., ImportedResults], value: Any, sentence: str
) -> None:
    commitless = reader is imports.read_google_benchmark
    with pytest.raises(ImportRefused, match=sentence):
        reader(write_file(tmp_path, value), ImportOrigin() if commitless else ORIGIN)


def run_import(path: Path, form: str, **options: Any) -> str:
    output = StringIO()
    call_command("import_results", "old", str(path), format=form, create=True, stdout=output, **options)
    return output.getvalue()


@pytest.mark.django_db
def test_phases_of_a_trace_become_series(tmp_path: Path) -> None:
    path = write_file(tmp_path, TRACE)
    for commit, date in (("v1", ORIGIN.date), ("v2", datetime(2026, 3, 2, tzinfo=UTC))):
        assert "3 values of 1 commit are new" in run_import(path, "chrome-trace", commit=commit, date=date)
    assert "3 were there already" in run_import(path, "chrome-trace", commit="v1", date=ORIGIN.date)
    assert sorted(Series.objects.values_list("metric__name", "phase", "headline")) == [
        ("phase_time", "forward", False),
        ("phase_time", "forward/attention", False),
        ("step_time", "", True),
    ]
    assert Point.objects.count() == 6
    # A project without a repository is an archive like any other.
    archive = tmp_path / "old.jsonl.gz"
    output = StringIO()
    call_command("export_results", "old", output=str(archive), stdout=output)
    assert " kB)" in output.getvalue()
    call_command("import_results", "copy", str(archive), format="paceline", stdout=StringIO())
    assert Point.objects.count() == 12


@pytest.mark.django_db
def test_a_project_that_is_not_there_can_be_made(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"There is no project 'old', .* With --create one is made"):
        call_command("import_results", "old", str(tmp_path), format="asv")


@pytest.mark.django_db
def test_what_is_said_beside_the_file_is_checked(tmp_path: Path) -> None:
    path = write_file(tmp_path, BENCHER)
    with pytest.raises(CommandError, match="give --commit"):
        run_import(path, "bencher", date=ORIGIN.date)
    with pytest.raises(CommandError, match="give --date"):
        run_import(path, "bencher", commit="v1")
    with pytest.raises(CommandError, match="--pool is 'a pool', not letters"):
        run_import(path, "bencher", commit="v1", date=ORIGIN.date, pool="a pool")
    with pytest.raises(CommandError, match="--commit isn't for csv"):
        run_import(path, "csv", commit="v1")


@pytest.mark.django_db
@pytest.mark.parametrize(("form", "value"), [("bencher", BENCHER), ("chrome-trace", TRACE)])
def test_git_says_when_a_commit_was_made(
    tracked: Project, repository: Repository, tmp_path: Path, form: str, value: Any
) -> None:
    repository.git("tag", "v1")
    path = write_file(tmp_path, value)
    for commit in ("v1", repository.git("rev-parse", "HEAD")):
        call_command("import_results", tracked.slug, str(path), format=form, commit=commit, stdout=StringIO())
    run = Run.objects.select_related("commit").get(configuration__case__benchmark__in=("train", "trace"))
    assert run.finished_at == run.commit.committed_at
    with pytest.raises(CommandError, match="give --date"):
        call_command("import_results", tracked.slug, str(path), format=form, commit="v2", stdout=StringIO())
