"""What each phase does to a scaling exponent: parts that add up, from sweeps in documents and in pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from paceline.manifest import scaling

from dashboard.experiments.paired_phases import paired_phases
from dashboard.experiments.verdicts import evaluate_experiment
from dashboard.models import Case, Commit, Document, Project, Regression, Series
from dashboard.phases import sweeps
from dashboard.phases.sweeps import Reading, compare_sweeps
from dashboard.regressions import advance_proof, judge_run
from tests.dashboard import factories

VALUES = (100, 200, 400, 800)
COUNT, AT = 9, 5


def sweep_points(learn: float, steps: float = 1.0, slow: float = 1.0) -> list[dict[str, Any]]:
    """`learn` is the power with which the phase learn/sum grows; all else is proportional.

    Each value twice: the second time everything takes three times as long.
    """
    found = []
    for value in VALUES:
        for repetition in (0, 1):
            n, times = value / 100, slow * (1 + 2 * repetition)
            inner = 0.2 * times * n**learn
            phases = {"act": 0.3 * times * n, "learn": 0.1 * times * n + inner, "learn/sum": inner}
            seconds = phases["act"] + phases["learn"] + 0.05 * times * n
            left = {"steps": round(value**steps), "seconds": seconds, "phases": phases}
            point = scaling.make_point(value, repetition, left)
            found.append({name: getattr(point, name) for name in ("value", "repetition", "steps", "seconds")})
            found[-1]["phases"] = dict(point.phases)
    return found


def read_by_harness(name: str, rows: list[dict[str, Any]], phase: str | None = None) -> float:
    exponents = scaling.fit_exponents([scaling.SweepPoint(**row) for row in rows])
    wanted = (name, phase)
    return float(next(row["value"] for row in exponents if (row["name"], row["phase"]) == wanted))


@pytest.mark.parametrize(
    ("name", "phase"),
    [("scaling_exponent", ""), ("scaling_exponent_step_time", ""), ("scaling_exponent", "learn")],
)
def test_parts_add_up_to_the_difference_of_the_exponents(name: str, phase: str) -> None:
    before, after = sweep_points(1.0), sweep_points(1.9, steps=0.9, slow=1.3)
    reading = Reading("n", phase, per_step=name.endswith("step_time"))
    parts = reading.parts(reading.times(before), reading.times(after))
    moved = read_by_harness(name, after, phase or None) - read_by_harness(name, before, phase or None)
    assert math.fsum(parts.values()) == pytest.approx(moved)
    assert max(parts, key=lambda path: parts[path]) == "learn/sum"


def test_what_slows_every_value_alike_bends_nothing() -> None:
    reading = Reading("n")
    parts = reading.parts(reading.times(sweep_points(1.5)), reading.times(sweep_points(1.5, slow=2.0)))
    assert math.fsum(parts.values()) == pytest.approx(0.0, abs=1e-12)


def test_parts_of_a_projected_time_add_up_to_its_logarithm() -> None:
    before, after = sweep_points(1.0), sweep_points(1.9)
    reading = Reading("n", amount=50_000)
    parts = reading.parts(reading.times(before), reading.times(after))
    sides = [[scaling.SweepPoint(**row) for row in rows] for rows in (before, after)]
    lines = [scaling.fit_power_law(side, scaling.loop_seconds) for side in sides]
    old, new = (line.predict(math.log(50_000))[0] for line in lines if line)
    assert math.fsum(parts.values()) == pytest.approx(new - old)
    assert parts["learn/sum"] > 0.9 * (new - old)


def test_a_phase_has_its_own_time_alone() -> None:
    found = sweeps.own_times({"a": 5.0, "a/b": 2.0, "a/b/c": 1.5, "d/e/f": 1.0, "d": 3.0})
    assert found == {"a": 3.0, "a/b": 0.5, "a/b/c": 1.5, "d/e/f": 1.0, "d": 2.0}


@pytest.fixture
def case(project: Project) -> Case:
    return factories.create_case(project)


def swept_document(rows: list[dict[str, Any]], **members: Any) -> Mapping[str, Any]:
    return {"scaling": {"parameter": "n", "params": {}, "points": rows, "exponents": []}, **members}


def judge_history(
    line: list[Commit],
    case: Case,
    name: str,
    levels: tuple[float, float],
    back: int = 1000,
    **members: Any,
) -> Regression:
    """The window's own phases point at `act`; from AT until `back` learn/sum is nearly quadratic."""
    for place, commit in enumerate(line):
        late = AT <= place < back
        told = swept_document(sweep_points(1.9 if late else 1.0, slow=factories.run_noise(place)), **members)
        run = factories.store_measured_run(
            commit,
            case,
            {name: levels[late] * factories.run_noise(place)},
            phases={"phase_self_time": {"act": (0.004, 0.005)[late], "learn/sum": 0.001}},
            document=told,
        )
        Series.objects.filter(metric__name=name).update(headline=True)
        # Of the first points nothing is to be said: they are judged with the next.
        if place >= AT - 2:
            judge_run(run.pk)
    return Regression.objects.get()


def test_an_exponent_may_be_zero_or_less(project: Project, case: Case) -> None:
    """0 is what a step's time should have: differences count, and the ratio is their power of e."""
    line = factories.create_commits(project, COUNT)
    found = judge_history(line, case, "scaling_exponent_step_time", (-0.02, 0.5))
    assert (found.before, found.after) == pytest.approx((-0.02, 0.5), rel=0.1)
    assert found.level_after == pytest.approx(found.after, abs=0.01)
    assert math.log(found.ratio or 1) == pytest.approx(0.52, abs=0.01)
    row = found.experiments.get()
    for index in range(5):
        row.pairs.create(
            index=index, base_first=True, base=0.02 * index - 0.05, head=0.5 + 0.02 * index, seconds=9.0
        )
    result = evaluate_experiment(row, list(row.pairs.all()), seconds=45.0)
    assert result.verdict == "confirmed"
    assert result.ratio is not None
    assert result.ratio.value is not None
    assert math.log(result.ratio.value) == pytest.approx(0.55, abs=0.03)


def test_the_commit_that_takes_it_back_repaired_it(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 2 * COUNT)
    found = judge_history(line, case, "scaling_exponent", (1.0, 1.5), back=COUNT + 2)
    assert (found.phase, found.recovered_by) == ("learn/sum", line[COUNT + 2])


def test_a_sweep_of_something_else_is_not_compared(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 2)
    told = [swept_document(sweep_points(1.0)), swept_document(sweep_points(1.9))]
    runs = [
        factories.store_measured_run(commit, case, {"scaling_exponent": 1.0}, document=document)
        for commit, document in zip(line, told, strict=True)
    ]
    series = Series.objects.get(metric__name="scaling_exponent")
    sides = [runs[0].pk], [runs[1].pk]
    assert sweeps.compare_runs(series, *sides)
    document = Document.objects.get(run=runs[0])
    document.body["scaling"]["params"] = {"environments": 128}
    document.save()
    assert sweeps.compare_runs(series, *sides) is None


def test_values_at_which_one_took_no_time_are_left_out() -> None:
    before, after = Reading("n").times(sweep_points(1.0)), dict(Reading("n").times(sweep_points(1.9)))
    after[800] = {"learn": 0.0}
    compared = compare_sweeps(Reading("n"), before, after)
    assert compared
    parts = compared.parts
    assert (compared.largest, max(parts, key=lambda path: parts[path])) == (400, "learn/sum")
    assert compare_sweeps(Reading("n"), before, {800: after[800], 400: after[400]}) is None


def test_a_value_of_zero_has_no_logarithm() -> None:
    rows = sweep_points(1.0)
    rows[0]["value"] = 0
    assert 0 not in Reading("n").times(rows)


@pytest.mark.parametrize(
    ("name", "levels", "members"),
    [
        ("scaling_exponent", (1.0, 1.5), {}),
        ("scaling_exponent_step_time", (0.1, 0.6), {}),
        ("projected_time", (300.0, 9000.0), {"job": {"amount": 50_000, "unit": "n", "from": "scaling"}}),
    ],
)
def test_the_phase_that_bends_the_line_explains_it(
    project: Project, case: Case, name: str, levels: tuple[float, float], members: Mapping[str, Any]
) -> None:
    found = judge_history(factories.create_commits(project, COUNT), case, name, levels, **members)
    assert (found.series.metric.name, found.first_bad.position) == (name, AT)
    assert found.phase == "learn/sum"
    assert found.phase_share == pytest.approx(1.0, abs=0.02)


def test_a_time_projected_from_the_rate_is_explained_by_the_step(project: Project, case: Case) -> None:
    job = {"amount": 50_000, "unit": "steps", "from": "rate"}
    found = judge_history(
        factories.create_commits(project, COUNT), case, "projected_time", (300.0, 375.0), job=job
    )
    assert (found.phase, found.phase_share) == ("act", pytest.approx(1.0))


def test_no_phase_explains_how_many_steps_there_are(project: Project, case: Case) -> None:
    found = judge_history(
        factories.create_commits(project, COUNT), case, "scaling_exponent_steps", (1.0, 1.5)
    )
    assert (found.phase, found.phase_share) == ("", None)


def test_the_pairs_sweeps_are_believed(project: Project, case: Case) -> None:
    """The documents say learn/sum; in the interleaved sweeps it is act that became steeper."""
    found = judge_history(factories.create_commits(project, COUNT), case, "scaling_exponent", (1.0, 1.5))
    assert found.phase == "learn/sum"
    row = factories.end_experiment(found.experiments.get(), "confirmed", ratio=1.65)
    factories.add_pairs(row, *[{"act": (0.004, 0.004), "learn": (0.005, 0.009)}] * 3)
    assert paired_phases(row) is None  # measured without a sweep
    for pair in row.pairs.all():
        steeper = sweep_points(1.0, slow=1.0 + pair.index)
        for point in steeper:
            point["phases"]["act"] *= point["value"] / 100
        sides = {"base": sweep_points(1.0, slow=1.0 + pair.index), "head": steeper}
        row.pairs.filter(pk=pair.pk).update(sweeps={"parameter": "n", "amount": None, **sides})
    phases = paired_phases(row)
    assert phases
    assert (phases.pairs, phases.at) == (3, "the whole loop with n 800")
    # The middle one of the three pairs, in which the machine was half as fast.
    assert phases.before == pytest.approx({"(unattributed)": 0.8, "act": 4.8, "learn": 1.6, "learn/sum": 3.2})
    assert phases.after["act"] == pytest.approx(8 * 4.8)
    assert phases.deltas["learn/sum"] == pytest.approx(0.0)
    advance_proof(found.pk)
    found.refresh_from_db()
    assert (found.phase, found.phase_share) == ("act", pytest.approx(1.0))
