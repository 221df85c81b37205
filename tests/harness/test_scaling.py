import math
import random
from dataclasses import replace

import pytest
from paceline.manifest import projection, scaling
from paceline.manifest.projection import Job
from paceline.manifest.scaling import Sweep, SweepPoint

from tests.harness.conftest import Project, Value

VALUES = (100, 200, 400, 800)
SWEEP = Sweep("n", VALUES, 2, {})


def make_points(power: float, noise: float = 0.0, seed: int = 0, base: float = 0.1) -> list[SweepPoint]:
    """Return points whose time per step grows with `power`, one step per unit of the parameter."""
    draw = random.Random(seed)  # noqa: S311  # a fixed seed is the point
    points = []
    for value, repetition in scaling.sweep_order(SWEEP):
        seconds = base * (value / 100) ** (1 + power) * (1 + noise * draw.random())
        phases = {"learn": 0.6 * seconds, "learn/sum": 0.5 * seconds, "tick": 1e-5}
        result = {"steps": value, "seconds": seconds, "phases": phases}
        points.append(scaling.make_point(value, repetition, result))
    return points


def fit_exponents(points: list[SweepPoint]) -> dict[tuple[str, str | None], tuple[float, float, float]]:
    rows = scaling.fit_exponents(points)
    return {(row["name"], row["phase"]): (row["value"], row["low"], row["high"]) for row in rows}


def test_the_order_goes_up_and_down() -> None:
    assert list(scaling.sweep_order(SWEEP)) == [(n, 0) for n in VALUES] + [(n, 1) for n in reversed(VALUES)]


def test_exponents_of_the_loop_its_steps_and_its_phases() -> None:
    found = fit_exponents(make_points(power=1.0))
    assert found["scaling_exponent", None] == pytest.approx((2.0, 2.0, 2.0))
    assert found["scaling_exponent_step_time", None] == pytest.approx((1.0, 1.0, 1.0))
    assert found["scaling_exponent_steps", None] == pytest.approx((1.0, 1.0, 1.0))
    assert {path for name, path in found if name == "scaling_exponent"} == {
        None,
        "learn",
        "learn/sum",
        "(unattributed)",
    }


def test_a_repetition_that_other_work_slowed_changes_nothing() -> None:
    points = make_points(power=1.0)
    disturbed = [
        replace(point, seconds=point.seconds * 3) if (point.value, point.repetition) == (800, 1) else point
        for point in points
    ]
    assert fit_exponents(disturbed)["scaling_exponent", None] == pytest.approx((2.0, 2.0, 2.0))


def test_the_interval_holds_the_exponent_as_often_as_promised() -> None:
    held = 0
    for seed in range(500):
        _, low, high = fit_exponents(make_points(power=0.5, noise=0.1, seed=seed))["scaling_exponent", None]
        held += low <= 1.5 <= high
    assert 0.92 < held / 500 < 0.99


def test_loops_too_short_to_be_timed_have_no_exponent_of_time() -> None:
    assert set(fit_exponents(make_points(power=0.0, base=1e-4))) == {("scaling_exponent_steps", None)}


def test_a_job_is_projected_along_the_line() -> None:
    job = projection.project_job(Job(50_000, "n"), [], SWEEP, make_points(power=1.0))
    assert job is not None
    assert (job["from"], job["unit"]) == ("scaling", "n")
    assert job["seconds"] == pytest.approx(0.1 * 500**2)
    assert job["low"] <= job["seconds"] <= job["high"]


def test_a_prediction_far_away_is_less_certain() -> None:
    noisy = make_points(power=1.0, noise=0.1)
    near, far = (projection.project_job(Job(amount, "n"), [], SWEEP, noisy) for amount in (800, 1e9))
    assert near is not None
    assert far is not None
    assert 1 < near["high"] / near["low"] < far["high"] / far["low"] < math.inf


def repetition_rows(*rates: float, games: float = 0.0) -> list[dict[str, object]]:
    return [{"throughput": rate, "counts": {"games": games}} for rate in rates]


def test_a_job_of_steps_or_of_counts_follows_the_rate() -> None:
    steps = projection.project_job(Job(1000, "steps"), repetition_rows(100, 50, 200), None, [])
    games = projection.project_job(Job(1000, "games"), repetition_rows(100, 50, 200, games=0.1), None, [])
    assert steps is not None
    assert (steps["seconds"], steps["low"], steps["high"], steps["from"]) == (10, 5, 20, "rate")
    assert games is not None
    assert games["seconds"] == pytest.approx(100)


@pytest.mark.parametrize("unit", ["games", "episodes"])
def test_a_job_of_what_was_never_counted_is_not_projected(unit: str) -> None:
    assert projection.project_job(Job(1000, unit), repetition_rows(100, 50), None, []) is None


# Waiting takes as long while other tests run beside it.
GROWING = """
import argparse, time
import paceline
parser = argparse.ArgumentParser()
parser.add_argument("--n", type=int, default=1000)
for number in paceline.steps(range(parser.parse_args().n)):
    with paceline.phase("same"):
        time.sleep(0.001)
    with paceline.phase("growing"):
        time.sleep(4e-5 * number)
print("done", number + 1)
"""


def test_a_quadratic_phase_is_seen_from_short_runs(project: Project, value: Value) -> None:
    sweep = {"parameter": "n", "values": [25, 50, 100, 200]}
    project.write(GROWING, steps=40, scaling=sweep, job={"unit": "n", "amount": 1600})
    raw = project.measure("--repetitions", "1")
    assert value(raw, "scaling_exponent", "growing")["value"] == pytest.approx(2.0, abs=0.3)
    assert value(raw, "scaling_exponent", "same")["value"] == pytest.approx(1.0, abs=0.3)
    assert value(raw, "scaling_exponent_steps")["value"] == pytest.approx(1.0)
    assert [point["value"] for point in raw["scaling"]["points"]] == [*VALUES_UP_AND_DOWN]
    assert (
        value(raw, "projected_time")["value"]
        == raw["job"]["seconds"]
        > 8 * raw["scaling"]["points"][3]["seconds"]
    )


VALUES_UP_AND_DOWN = (25, 50, 100, 200, 200, 100, 50, 25)


def test_quick_sweeps_only_where_it_is_told(project: Project) -> None:
    sweep = {"parameter": "n", "values": [30, 40, 50]}
    project.write(GROWING, scaling=sweep)
    assert "scaling" not in project.measure("--quick")
    project.write(GROWING, scaling=sweep, quick={"scaling": True})
    assert len(project.measure("--quick")["scaling"]["points"]) == 3


def test_a_loop_that_does_not_end_is_named(project: Project) -> None:
    endless = (
        "import itertools, time, paceline\nfor at in paceline.steps(itertools.count()): time.sleep(0.001)"
    )
    project.write(endless, time_limit=6, scaling={"parameter": "n", "values": [1, 2, 3]})
    stderr = project.call("run", "tiny", "--repetitions", "1").stderr
    assert "with n 1, tiny took longer than its time_limit of 6 s" in stderr


def test_a_value_that_fails_is_named(project: Project) -> None:
    failing = f"{GROWING}\nassert parser.parse_args().n != 20"
    project.write(failing, scaling={"parameter": "n", "values": [5, 12, 20]})
    ended = project.call("run", "tiny", "--repetitions", "1")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "paceline: with n 20, tiny.py crashed with exit status 1"
    assert "AssertionError" in ended.stderr
