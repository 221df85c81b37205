"""What the phases of a case say of its step, beside what the step shows itself."""

from __future__ import annotations

import math
import random

import pytest

from dashboard import experiments
from dashboard.host_protocol import PairMeasured
from dashboard.models import (
    Case,
    Change,
    Channel,
    Delivery,
    Experiment,
    Project,
    Regression,
    SeriesLatest,
)
from dashboard.regressions import advance_proof, judge_run
from dashboard.regressions.false_alarm_budget import risk_of_look
from dashboard.sentences.regressions.causes import cause_sentence
from dashboard.sentences.regressions.proofs import verdict_sentence
from dashboard.sentences.regressions.regressions import describe_phase
from dashboard.sentences.series.doubts import describe_doubts
from tests.dashboard import factories

COUNT, AT = 74, 60
SHARES = {"learn": 0.004, "env": 0.003, "act": 0.0015, "sample": 0.001, "log": 0.0005}


def measure_case(project: Project, case: Case, late: dict[str, float]) -> None:
    """A history in which phases take as long as `late` says from AT on; judged at its last commit.

    All phases of a run are slow or fast together.
    """
    measured, of_runs = [], []
    for commit in factories.create_commits(project, COUNT):
        levels = {**SHARES, **(late if commit.position >= AT else {})}
        pace = factories.run_noise(1000 + commit.position) ** 2
        phases = {
            name: seconds * pace * factories.run_noise(7 * commit.position + 13 * number)
            for number, (name, seconds) in enumerate(levels.items())
            if seconds
        }
        measured.append((commit, {"step_time": sum(phases.values())}))
        of_runs.append({"phase_self_time": phases})
    judge_run(factories.store_measured_runs(measured, case, of_runs)[-1].pk)


def test_a_small_step_of_a_phase_is_one_suspicion_of_the_whole(project: Project, case: Case) -> None:
    measure_case(project, case, {"sample": 0.00115, "act": 0.00158})
    regression = Regression.objects.get()
    assert (regression.first_bad.position, regression.series.metric.name) == (AT, "step_time")
    assert regression.ratio == pytest.approx(1.023, abs=0.01)


def measure_pairs(moved: dict[str, float]) -> Experiment:
    """The proof that was asked for, measured: on a machine whose pace differs by 1 % between both sides."""
    held = experiments.claim_experiment("default", "bench-1")
    assert held is not None
    drawn = random.Random(5)  # noqa: S311
    for index in range(30):
        paces = [math.exp(drawn.gauss(0, 0.01)) for _ in range(2)]
        phases = {
            name: (
                seconds * paces[0] * math.exp(drawn.gauss(0, 0.004)),
                (seconds + moved.get(name, 0.0)) * paces[1] * math.exp(drawn.gauss(0, 0.004)),
            )
            for name, seconds in SHARES.items()
        }
        base, head = (sum(both[side] for both in phases.values()) for side in (0, 1))
        if experiments.add_pair(
            held.lease, PairMeasured(index, index % 2 == 0, base, head, False, 6.0, phases)
        ):
            break
    advance_proof(Regression.objects.get().pk)
    return Experiment.objects.get(pk=held.lease.key)


def test_pairs_prove_it_by_its_phase(project: Project, case: Case) -> None:
    Channel.objects.create(project=project, kind="email", address="ada@example.org")
    measure_case(project, case, {"sample": 0.00115})
    asked = measure_pairs({"sample": 0.00015})
    assert (asked.phases_with_step, asked.verdict, asked.phase) == (["sample"], "confirmed", "")
    regression = Regression.objects.get()
    assert (regression.state, regression.series.metric.name) == ("confirmed", "step_time")
    # The headline is the whole's, as its phases add up; its own pairs are far less precise.
    assert regression.ratio == pytest.approx(1.015, abs=0.003)
    assert regression.ratio == asked.reason["step"][0] != asked.ratio
    assert Delivery.objects.get().regression == regression
    said = verdict_sentence(regression, regression.series, asked, asked.pairs.count())
    assert said.startswith("Confirmed by ")
    assert ": sample +1" in said
    assert ", which makes the step +1." in said
    assert "; the whole step by itself " in said
    (evidence,) = (row for row in regression.cause_evidence if row["code"] == "experiment")
    assert " confirm it by sample, which takes +1" in cause_sentence(evidence)
    # Which phase explains it is only known where both commits' documents have their functions.
    regression.phase, regression.phase_share = "sample", 0.97
    assert describe_phase(regression).startswith("sample explains 97 %, by +1")
    assert describe_phase(regression).endswith("] of its own time")


def test_pairs_refute_what_only_moved(project: Project, case: Case) -> None:
    measure_case(project, case, {"sample": 0.00115})
    asked = measure_pairs({"sample": 0.00015, "env": -0.00015})
    assert (asked.verdict, asked.reason["code"]) == ("refuted", "work moved")
    assert Regression.objects.get().state == "refuted"
    assert not Delivery.objects.exists()


def test_it_is_told_to_those_who_ask_for_suspicions(project: Project, case: Case) -> None:
    Channel.objects.create(project=project, kind="email", address="eager@example.org", suspicions=True)
    measure_case(project, case, {"sample": 0.00115})
    assert Delivery.objects.get().regression == Regression.objects.get()


def test_work_that_moved_is_told_as_moved_and_opens_nothing(project: Project, case: Case) -> None:
    measure_case(project, case, {"learn": 0.0036, "sample": 0.0014})
    change = Change.objects.get()
    assert (change.direction, change.position) == ("moved", AT)
    assert describe_doubts(change) == ["4.0 % of the step moved from learn to sample: nothing was lost."]
    assert not Regression.objects.exists()


def test_a_renamed_phase_is_moved_work(project: Project, case: Case) -> None:
    measure_case(project, case, {"env": 0.0, "environment": 0.003})
    assert describe_doubts(Change.objects.get())[0].startswith(
        "30 % of the step moved from env to environment"
    )


def test_each_case_has_its_part_of_what_a_commit_may_risk(project: Project, case: Case) -> None:
    assert risk_of_look(project) == pytest.approx(0.01)
    commits = factories.create_commits(project, 2)
    for number in range(3):
        run = factories.create_run(commits[0], factories.create_case(project, f"case_{number}"))
        series = factories.get_series(run, "step_time")
        SeriesLatest.objects.create(series=series, run=run, position=500 * (number > 0), value=1.0)
    assert risk_of_look(project) == pytest.approx(0.005)
