import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from paceline import run_warnings
from paceline.document_building.learning_guards import diverged_names, judge_guards
from paceline.manifest.benchmarks import Guard
from paceline.manifest.limits import Bound, judge_limits
from paceline.manifest.projection import Job
from paceline.phase_names import SETUP
from paceline.run_warnings import results, stability
from paceline.watching import process_usage

GOLDEN = Path(__file__).parents[2] / "golden" / "paceline.document-1.json"
Raw = dict[str, Any]


@pytest.fixture
def raw() -> Raw:
    """A document that gives no reason for a warning."""
    quiet: Raw = json.loads(GOLDEN.read_text())
    for row in quiet["repetitions"]:
        row.update(throughput=1000.0, seconds=2.0, calibration_before=0.01, calibration_after=0.01)
        row["step_times"]["thinned"]["values"] = [0.001] * 100
        row["waited"] = 0.02
    quiet.update(set_aside=[], limits=[])
    return quiet


def warning_codes(raw: Raw, **seen: Any) -> dict[str, bool]:
    """Return the warnings' codes and whether they taint."""
    clocks = [{"channel": "gpu_sm_clock", "device": 0, "mean": mean} for mean in seen.get("clocks", ())]
    sampler = SimpleNamespace(
        throttling=lambda _window: seen.get("throttling", set()),
        foreign_processes=lambda _window: seen.get("foreign", set()),
        co_tenants=SimpleNamespace(own_devices=seen.get("own", set())),
        channels=lambda _window: clocks,
        lost=seen.get("lost", set()),
    )
    reported = raw["repetitions"][0]["quality"] | seen.get("diverged", {})
    result = {"dropped_phases": seen.get("dropped", 0), "quality": reported}
    result["several_threads"] = seen.get("several_threads", False)
    result["unusable"] = seen.get("unusable", {})
    raw["guards"] = judge_guards(raw, seen.get("guard", {}), diverged_names([reported]))
    step = seen.get("step")
    timed: Any = [SimpleNamespace(result=result, sampler=sampler, ranks=(), window=(0.0, 2.0), step=step)]
    counted = [
        {"steps": 10, "calls": {"learn": calls}, "operations": None, "counts": {}, "displaced": False}
        for calls in seen.get("calls", [1.0, 1.0])
    ]
    bench: Any = SimpleNamespace(job=seen.get("job"), warmup_steps=20, auto=False)
    return {row["code"]: row["taints"] for row in run_warnings.find_warnings(raw, timed, counted, bench)}


def test_a_quiet_run_has_no_warnings(raw: Raw) -> None:
    assert warning_codes(raw) == {}


@pytest.mark.parametrize(
    ("rates", "taints"), [([1000, 1010, 1250], False), ([1000, 1400, 600], True), ([1000, 1050, 950], None)]
)
def test_unstable_repetitions(raw: Raw, rates: list[float], taints: bool | None) -> None:
    for row, rate in zip(raw["repetitions"], rates, strict=True):
        row["throughput"] = rate
    assert warning_codes(raw).get("unstable_repetitions") is taints


def test_a_slow_machine_is_seen_by_its_calibration(raw: Raw) -> None:
    raw["repetitions"][1]["calibration_after"] = 0.013
    assert warning_codes(raw) == {"calibration_drift": False}


def test_other_work_on_the_processor_taints(raw: Raw) -> None:
    for row, waited in zip(raw["repetitions"], (0.2, 0.05, 0.12), strict=True):
        row["waited"] = waited
    assert warning_codes(raw) == {"processor_contention": True}
    (contention,) = stability.stability_warnings(raw)
    assert contention["message"].endswith("for 12% of the window in the median repetition")


def test_what_was_measured_again_is_told(raw: Raw) -> None:
    raw["set_aside"] = [{"throughput": 700.0, "waited": 0.4}]
    assert warning_codes(raw) == {"repetitions_set_aside": False}


@pytest.mark.parametrize(("stolen", "told"), [(None, {}), (0.01, {}), (0.3, {"processor_stolen": False})])
def test_what_a_virtual_machines_host_took_is_told(
    raw: Raw, stolen: float | None, told: dict[str, bool]
) -> None:
    for row in raw["repetitions"]:
        row["stolen"] = stolen
    assert warning_codes(raw) == told
    raw["set_aside"] = [{"throughput": 700.0, "waited": 0.4, "stolen": stolen}]
    assert warning_codes(raw) == told | {"repetitions_set_aside": False}


def codes_with_step_times(raw: Raw, values: list[float]) -> dict[str, bool]:
    for row in raw["repetitions"]:
        row["step_times"]["thinned"]["values"] = values
    return warning_codes(raw)


def test_a_slow_start_means_that_warmup_never_ended(raw: Raw) -> None:
    assert codes_with_step_times(raw, [0.002] * 10 + [0.001] * 90) == {"warmup_never_ended": True}


def test_a_fast_start_does_too(raw: Raw) -> None:
    assert codes_with_step_times(raw, [0.0005] * 10 + [0.001] * 90) == {"warmup_never_ended": True}


def test_steps_that_grow_all_along_are_no_warmup(raw: Raw) -> None:
    assert codes_with_step_times(raw, [0.001 * (1 + number / 50) for number in range(100)]) == {}


def test_one_odd_repetition_is_no_warmup(raw: Raw) -> None:
    raw["repetitions"][0]["step_times"]["thinned"]["values"] = [0.002] * 10 + [0.001] * 90
    assert warning_codes(raw) == {}


def test_a_short_window_says_little(raw: Raw) -> None:
    for row in raw["repetitions"]:
        row["seconds"] = 0.1
    assert warning_codes(raw) == {"too_few_samples": False}


def test_one_repetition_is_no_plural(raw: Raw) -> None:
    single: Raw = {**raw, "repetitions": raw["repetitions"][:1]}
    (warning,) = stability.stability_warnings(single)
    assert warning["message"].startswith("1 repetition of 2,000 steps in 2.00 s")


def test_steps_as_short_as_the_clock_are_doubted(raw: Raw) -> None:
    for row in raw["repetitions"]:
        row["steps"] = 1_000_000
    assert warning_codes(raw) == {"clock_resolution": False}


def test_memory_pressure(raw: Raw) -> None:
    raw["environment"]["memory_bytes"] = int(raw["repetitions"][0]["peak_memory"])
    assert warning_codes(raw) == {"memory_pressure": True}


def test_memory_pressure_on_the_device(raw: Raw) -> None:
    raw["environment"]["gpus"] = [{"name": "H", "memory_bytes": 1000}]
    for row in raw["repetitions"]:
        row["device_memory"] = {"allocated": 500, "reserved": 950}
    assert warning_codes(raw) == {"memory_pressure": True}


def test_countings_that_differ(raw: Raw) -> None:
    assert warning_codes(raw, calls=[1.0, 2.0]) == {"counters_inexact": False}


def test_a_device_is_doubted_only_where_it_is_used(raw: Raw) -> None:
    seen: Any = {"throttling": {(0, "temperature")}, "foreign": {(0, 77)}}
    assert warning_codes(raw, **seen) == {}
    raw["environment"]["path"] = "cuda"
    assert warning_codes(raw, **seen) == {"throttling": True, "co_tenant": True}


def test_a_power_limit_alone_spoils_nothing(raw: Raw) -> None:
    raw["environment"]["path"] = "cuda"
    assert warning_codes(raw, throttling={(0, "power cap")}) == {"throttling": False}


def test_a_device_that_was_lost(raw: Raw) -> None:
    raw["environment"]["path"] = "cuda"
    assert warning_codes(raw, lost={1}) == {"device_lost": True}


@pytest.mark.parametrize(("score", "seen"), [(2.0, {"quality_below_guard": True}), (4.0, {})])
def test_a_quality_below_its_guard(raw: Raw, score: float, seen: dict[str, bool]) -> None:
    for row in raw["repetitions"]:
        row["quality"] = {"score": score}
    assert warning_codes(raw, guard={"score": Guard(3.0, None)}) == seen


def test_what_is_learned_is_judged_over_all_seeds(raw: Raw) -> None:
    for row in raw["repetitions"]:
        row["quality"] = {"score": 4.0}
    raw["learning"] = [{"seed": 1, "quality": {"score": 3.0}}, {"seed": 2, "quality": {"score": 0.5}}]
    guards = {"score": Guard(3.0, None)}
    raw["guards"] = judge_guards(raw, guards, ())
    marked: Any = SimpleNamespace(auto=False)
    (warning,) = results._guard_warnings(raw, (), marked)
    assert warning["message"].startswith(
        "score is 2.5 on average (4 with seed 0, 3 with seed 1, 0.5 with seed 2)"
    )
    raw["learning"][1]["quality"] = {"score": 2.0}
    assert warning_codes(raw, guard=guards) == {}
    raw["learning"][1]["quality"] = {}
    assert warning_codes(raw, guard=guards) == {"quality_missing": True}
    # What follows the loop of a script that is ended after its steps never comes.
    (warning,) = results._guard_warnings(raw, (), SimpleNamespace(auto=True))  # type: ignore[arg-type]
    assert "value) in the loop: an unmarked" in warning["advice"]


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e300])
def test_a_training_that_diverged(raw: Raw, value: float) -> None:
    assert warning_codes(raw, diverged={"loss": value}) == {"quality_diverged": False}
    guards = {"loss": Guard(None, 0.5)}
    for row in raw["repetitions"]:
        del row["quality"]["loss"]
    assert warning_codes(raw, diverged={"loss": value}, guard=guards) == {"quality_diverged": True}
    assert raw["guards"][0]["state"] == "diverged"


def test_steps_of_several_threads_are_told(raw: Raw) -> None:
    assert warning_codes(raw, several_threads=True) == {"steps_of_several_threads": False}


@pytest.mark.parametrize(("after", "codes"), [(19, {}), (20, {"steps_of_several_kinds": False})])
def test_steps_of_two_optimizers_in_the_window_are_told(raw: Raw, after: int, codes: dict[str, bool]) -> None:
    step = {"kind": "optimizer", "owner": "Adam", "succeeded": "SGD"}
    assert warning_codes(raw, step=step | {"succeeded_after": after, "alternates": False}) == codes


@pytest.mark.parametrize(
    ("path", "after", "told"),
    [("learn", None, True), ("learn/optimizer", 19, False), ("learn/optimizer", 20, True)],
)
def test_steps_that_learn_nothing_are_told(raw: Raw, path: str, after: int | None, told: bool) -> None:
    raw["phases"] = [{"path": "env_step"}, {"path": path}]
    step = {"kind": "environment", "owner": "SyncVectorEnv", "learned_after": after}
    assert warning_codes(raw, step=step) == ({"nothing_learned": False} if told else {})
    # As where another framework may have learned.
    del step["learned_after"]
    assert warning_codes(raw, step=step) == {}


def test_optimizers_that_take_turns_for_ever_are_not_warmed_up_for() -> None:
    step = {"owner": "Adam", "succeeded": "SGD", "succeeded_after": 20, "alternates": True}
    timed: Any = [SimpleNamespace(step=step)]
    bench: Any = SimpleNamespace(warmup_steps=20)
    (warning,) = results._several_owners(timed, bench)
    assert "--step batch" in warning["advice"]
    assert "which take turns" in warning["message"]


def test_numbers_that_are_left_out_are_told(raw: Raw) -> None:
    unusable = {"gauges": {"grad_norm": 3}, "counts": {"tokens": 1}, "helpers": {"games": 2}}
    assert warning_codes(raw, unusable=unusable) == {"number_left_out": False}
    timed: Any = [SimpleNamespace(result={"unusable": unusable})] * 2
    (warning,) = results._unusable_numbers(timed)
    assert warning["message"] == (
        "count tokens is left out: no finite number was added to it, 2 readings; "
        "gauge grad_norm leaves out 6 readings: no finite number; "
        "a helper's count games is left out: no finite number was added to it, 4 readings"
    )


@pytest.mark.parametrize(
    ("guard", "better"),
    [
        (Guard(3.0, None), "higher"),
        (Guard(None, 3.0), "lower"),
        (Guard(1.0, 3.0), "higher"),
        (Guard(None, None, "lower"), "lower"),
    ],
)
def test_which_way_a_guarded_quality_is_better(guard: Guard, better: str) -> None:
    assert guard.direction == better


def test_a_quality_that_was_never_reported(raw: Raw) -> None:
    assert warning_codes(raw, guard={"score": Guard(3.0, None)}) == {"quality_missing": True}


def codes_with_limit(raw: Raw, metric: str, value: float | None, *, crossed: bool | None) -> dict[str, bool]:
    row = {"metric": metric, "phase": None, "minimum": 2.0, "maximum": None}
    raw["limits"] = [{**row, "value": value, "crossed": crossed}]
    return warning_codes(raw)


def test_a_limit_that_is_crossed_or_says_nothing(raw: Raw) -> None:
    assert codes_with_limit(raw, "throughput", 1.0, crossed=True) == {"limit_crossed": False}
    assert codes_with_limit(raw, "throughput", 3.0, crossed=False) == {}
    assert codes_with_limit(raw, "count.drops", None, crossed=None) == {"limit_not_measured": False}


def test_a_crossed_limit_is_told_with_its_unit(raw: Raw) -> None:
    bound = Bound("step_time", None, None, 0.002)
    raw["limits"] = judge_limits([bound], [{"name": "step_time", "phase": None, "value": 0.00345}])
    bench: Any = SimpleNamespace(guard={}, job=None, auto=False)
    assert [row["message"] for row in results.result_warnings(raw, [], [], bench)] == [
        "step_time is 3.45 ms, its limit is at most 2 ms"
    ]


def test_a_limit_on_a_device_waits_for_one(raw: Raw) -> None:
    assert codes_with_limit(raw, "gpu_utilization", None, crossed=None) == {}
    raw["environment"]["path"] = "cuda"
    assert codes_with_limit(raw, "gpu_utilization", None, crossed=None) == {"limit_not_measured": False}


def test_a_sweep_whose_loops_are_too_short(raw: Raw) -> None:
    raw["scaling"] = {"parameter": "n", "points": [{"value": 1, "seconds": 1e-5}], "exponents": []}
    assert warning_codes(raw) == {"scaling_too_short": False}


@pytest.mark.parametrize(("high", "seen"), [(1.4, {}), (1.6, {"scaling_uncertain": False})])
def test_an_exponent_that_is_anywhere(raw: Raw, high: float, seen: dict[str, bool]) -> None:
    exponent = {"name": "scaling_exponent", "phase": None, "low": 1.0, "high": high}
    raw["scaling"] = {"parameter": "n", "points": [], "exponents": [exponent]}
    assert warning_codes(raw) == seen


@pytest.mark.parametrize(("slow", "seen"), [(0.5, {}), (0.3, {"scaling_contention": False})])
def test_a_sweep_that_waited_for_a_processor(raw: Raw, slow: float, seen: dict[str, bool]) -> None:
    """What counts is the fastest repetition of each value: here the first, or the one that waited."""
    exponent = {"name": "scaling_exponent", "phase": None, "low": 1.0, "high": 1.1}
    points = [
        {"value": 8, "seconds": 0.4, "waited": 0.01},
        {"value": 8, "seconds": slow, "waited": 0.3},
        {"value": 16, "seconds": 0.9},
    ]
    raw["scaling"] = {"parameter": "n", "points": points, "exponents": [exponent]}
    assert warning_codes(raw) == seen


def test_a_job_that_nothing_measured(raw: Raw) -> None:
    assert warning_codes(raw, job=Job(10, "episodes")) == {"job_not_projected": False}
    raw["job"] = {"seconds": 3}
    assert warning_codes(raw, job=Job(10, "episodes")) == {}


def test_a_clock_that_changes_between_repetitions(raw: Raw) -> None:
    raw["environment"]["path"] = "cuda"
    assert warning_codes(raw, clocks=(1700.0, 1200.0)) == {"clock_change": True}
    assert warning_codes(raw, clocks=(1700.0, 1600.0)) == {}


def test_what_happens_to_devices_that_are_not_in_use_taints_nothing(raw: Raw) -> None:
    raw["environment"]["path"] = "cuda"
    disturbed = {
        "throttling": {(0, "temperature")},
        "lost": {0},
        "foreign": {(0, 7)},
        "clocks": (1700.0, 900.0),
    }
    assert len(warning_codes(raw, **disturbed)) == 4
    assert warning_codes(raw, **disturbed, own={1}) == {}


def test_two_devices_may_have_two_clocks(raw: Raw) -> None:
    raw["environment"]["path"] = "cuda"
    clocks = ((0, 1700.0), (1, 345.0))
    raw["telemetry"] = [
        {"channel": "gpu_sm_clock", "device": device, "mean": clock} for device, clock in clocks
    ]
    assert warning_codes(raw) == {}


def test_phases_that_were_dropped(raw: Raw) -> None:
    assert warning_codes(raw, dropped=3) == {"too_many_phases": False}


def test_a_missing_psutil_is_told(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_usage, "HAS_PSUTIL", False)
    assert warning_codes(raw) == {}
    monkeypatch.setattr(process_usage, "HAS_PROC", False)
    assert warning_codes(raw) == {"psutil_missing": False}


def test_every_warning_says_what_to_do(raw: Raw) -> None:
    raw["repetitions"][1]["calibration_after"] = 0.03
    result = {"dropped_phases": 1, "waited": 0.0, "quality": {}}
    timed: Any = [SimpleNamespace(result=result, sampler=None, step=None)]
    counted: Any = [
        {"steps": 10, "calls": {SETUP: 1.0}, "operations": None, "counts": {}, "displaced": False}
    ]
    rows = run_warnings.find_warnings(raw, timed, counted, SimpleNamespace(guard={}, job=None, auto=False))  # type: ignore[arg-type]
    assert len(rows) == 2
    assert all(row["advice"] and row["message"] for row in rows)
