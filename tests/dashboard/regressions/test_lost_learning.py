"""A training that no longer learns: rows with a planted truth, pairs over seeds that a test makes up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from dashboard import experiments, repositories, runs
from dashboard.alerts.kinds.payload import alert_payload
from dashboard.alerts.messages import compose_message
from dashboard.host_protocol import OtherMetric, PairMeasured
from dashboard.models import (
    Case,
    Change,
    Channel,
    Commit,
    Delivery,
    Experiment,
    GuardResult,
    Project,
    Regression,
    RegressionExperiment,
    Run,
    Series,
)
from dashboard.querysets.regression_details import runs_of_step
from dashboard.regressions import advance_proof, judge_run
from dashboard.regressions.explanation.phase_shares import sides_of_step
from dashboard.regressions.row_facts import change_fact
from dashboard.regressions.series.history import load_history
from dashboard.sentences.formatting.change_sizes import format_levels
from dashboard.sentences.regressions.regressions import regression_title
from tests.dashboard import factories
from tests.dashboard.conftest import Repository

Score = float | str | Sequence[float]
Truth = Callable[[Commit, int], float | None]

GUARD = 3.0
STEP_TIME = 0.010


@pytest.fixture
def case(project: Project) -> Case:
    Channel.objects.create(project=project, kind="email", address="a@example.org")
    return factories.create_case(project)


def measure_and_judge(
    line: Sequence[Commit], case: Case, scores: Sequence[Score], times: Sequence[float] = (), **guard: float
) -> list[Run]:
    """Measure and judge commits of which each learned a score, seed by seed, or says why there is none."""
    return [
        measure_commit(commit, case, score, times[index] if times else STEP_TIME, guard or {"minimum": GUARD})
        for index, (commit, score) in enumerate(zip(line, scores, strict=True))
    ]


def measure_commit(commit: Commit, case: Case, score: Score, time: float, guard: dict[str, float]) -> Run:
    seeds = [score] if isinstance(score, float | int) else list(score) if not isinstance(score, str) else []
    mean = sum(seeds) / len(seeds) if seeds else None
    within = mean is not None and guard.get("minimum", -math.inf) <= mean <= guard.get("maximum", math.inf)
    state = score if isinstance(score, str) else "kept" if within else "violated"
    run = factories.create_run(commit, case, tainted=not within)
    clock = factories.get_series(run, "step_time")
    factories.add_point(run, clock, time * factories.run_noise(commit.position), tainted=not within)
    series = factories.get_series(run, "quality.score")
    Series.objects.filter(pk=series.pk).update(guarded=True)
    if mean is not None:
        point = factories.add_point(run, series, mean)
        point.samples = seeds
        point.save()
    GuardResult.objects.create(
        series=series, run=run, position=commit.position, state=state, seeds=max(1, len(seeds)), **guard
    )
    judge_run(run.pk)
    return run


def learned_scores(levels: dict[int, float], spread: float = 0.3) -> Truth:
    """By the position from which it holds: what a seed learns, whatever commit it is measured at."""

    def truth(commit: Commit, seed: int) -> float | None:
        level = next(levels[start] for start in sorted(levels, reverse=True) if start <= commit.position)
        luck = np.random.default_rng([seed, round(abs(100 * level))] if math.isfinite(level) else 0)
        return level + spread * float(luck.standard_normal()) if math.isfinite(level) else None

    return truth


def prove_all(truth: Truth, pace: Callable[[Commit], float] = lambda _: STEP_TIME) -> list[str]:
    """Play the worker until nothing is left to prove; the metrics that were weighed."""
    weighed = []
    while held := experiments.claim_experiment("default", "bench-1"):
        weighed.append(held.metric)
        base, head = (Commit.objects.get(hash=side.commit) for side in (held.base, held.head))
        for index in range(30):
            pair = PairMeasured(
                index,
                index % 2 == 0,
                *(
                    (truth(base, 1000 + index), truth(head, 1000 + index))
                    if held.seeded
                    else (pace(base), pace(head) * (1.001, 0.999, 1.0)[index % 3])
                ),
                disturbed=False,
                seconds=6.0,
                others={"step_time": OtherMetric("s", "lower", "time", pace(base), pace(head))}
                if held.seeded
                else {},
                seed=1000 + index if held.seeded else None,
            )
            if experiments.add_pair(held.lease, pair):
                break
        waiting = RegressionExperiment.objects.filter(applied_at=None)
        for key in waiting.values_list("regression", flat=True):
            advance_proof(key)
        assert len(weighed) < 40, "it doesn't end"
    return weighed


def test_a_run_below_its_guard_is_proved_over_seeds_and_told(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 4)
    measure_and_judge(line, case, [9.3, 9.2, 9.4, 2.1])
    found = Regression.objects.get()
    assert (found.state, found.kind, found.first_bad) == ("suspected", "quality", line[3])
    assert not Delivery.objects.exists()
    assert prove_all(learned_scores({0: 9.3, 3: 2.1})) == ["quality.score"]
    found = Regression.objects.get()
    assert (found.state, found.first_bad, found.last_good) == ("confirmed", line[3], line[2])
    seeds = Experiment.objects.get().pairs.count()
    title = regression_title(found)
    assert title.startswith(f"training no longer learns since {line[3].short}")
    assert title.endswith(f" instead of 9.30, over {seeds} seeds")
    (delivery,) = Delivery.objects.all()
    assert "training no longer learns" in compose_message(delivery).title
    told = alert_payload(delivery)["regression"]
    assert (told["kind"], told["learning"]["guard"], told["learning"]["bound"]) == ("quality", "violated", 3)
    assert told["learning"]["seeds"] == seeds


def test_the_commit_is_found_by_bisection(tracked: Project, repository: Repository) -> None:
    """Of four commits that nobody measured one broke it."""
    repository.commit_line(*((f"Change number {number}", {"notes_txt": str(number)}) for number in range(9)))
    tracked.mirror.fetch()
    hashes = repositories.select_commits(tracked.mirror, {"last": 11})
    rows = runs.get_or_create_commits(tracked, repositories.read_commits(tracked.mirror, hashes))
    line = [rows[sha] for sha in hashes]
    measured = line[:4] + line[8:9]
    measure_and_judge(measured, factories.create_case(tracked), [9.3, 9.2, 9.4, 9.3, 2.1])
    weighed = prove_all(learned_scores({0: 9.3, line[6].position: 2.1}))
    found = Regression.objects.get()
    assert set(weighed) == {"quality.score"}
    assert len(weighed) > 1
    assert (found.last_good, found.first_bad) == (line[5], line[6])


def test_an_unlucky_seed_is_refuted(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 5)
    measure_and_judge(line, case, [9.3, 9.2, 9.4, 2.1, 2.1])
    prove_all(learned_scores({0: 9.3}))
    assert Regression.objects.get().state == "refuted"
    assert not Delivery.objects.exists()


def test_faster_because_it_learns_less_is_one_story(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 6)
    measure_and_judge(line, case, [9.3] * 4 + [2.1] * 2, [STEP_TIME] * 4 + [0.006] * 2)
    prove_all(learned_scores({0: 9.3, 4: 2.1}), lambda commit: 0.006 if commit.position >= 4 else STEP_TIME)
    found = Regression.objects.get()
    assert "a step takes 40 % less time" in regression_title(found)
    assert "which is no gain" in regression_title(found)
    assert alert_payload(Delivery.objects.get())["regression"]["learning"][
        "step_time_change_percent"
    ] == pytest.approx(-40)


def test_slower_and_no_longer_learning_is_one_regression(project: Project, case: Case) -> None:
    """Within the guard, so that both series are judged, by points of three seeds."""
    line = factories.create_commits(project, 24)
    draw = np.random.default_rng(1)
    scores = [draw.normal(level, 0.3, 3).tolist() for level in [9.3] * 16 + [5.0] * 8]
    slower = [STEP_TIME] * 16 + [0.014] * 8
    measure_and_judge(line, case, scores, slower)
    weighed = prove_all(
        learned_scores({0: 9.3, 16: 5.0}), lambda commit: 0.014 if commit.position >= 16 else STEP_TIME
    )
    found = Regression.objects.get()
    assert weighed[0] == "quality.score"
    assert (found.first_bad, found.kind, found.state) == (line[16], "quality", "confirmed")
    assert regression_title(found).startswith("training learns less since")
    assert "a step also takes 40 % longer" in regression_title(found)
    assert {change.series.metric.name for change in found.changes.all()} == {"step_time", "quality.score"}
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize(
    ("state", "words"),
    [("missing", "training reports no score any more since"), ("diverged", "training diverges since")],
)
def test_a_quality_that_is_no_longer_known(project: Project, case: Case, state: str, words: str) -> None:
    line = factories.create_commits(project, 4)
    measure_and_judge(line, case, [9.3, 9.2, 9.4, state])
    prove_all(learned_scores({0: 9.3, 3: math.nan}))
    found = Regression.objects.get()
    assert found.state == "confirmed"
    assert regression_title(found).startswith(words)
    assert len(runs_of_step(found).of_both(found)) == 2, "a run without the quality is one all the same"
    step = change_fact(found.changes.select_related("series__metric", "series__configuration").get())
    assert sides_of_step(step, load_history(found.series, "main")).bad == (line[3].runs.get().pk,)
    assert "it was 9.30, in " in regression_title(found)
    assert alert_payload(Delivery.objects.get())["regression"]["after"] is None
    assert Experiment.objects.get().learning["unreported"] == found.learning["seeds"]
    measure_and_judge(factories.create_commits(project, 1, first=4), case, [9.3])
    assert Regression.objects.get().recovered_by == Commit.objects.get(position=4)
    assert format_levels(Change.objects.get(direction="improvement")) == "none → 9.30"


def test_training_that_diverges_with_one_seed_alone_is_refuted(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 4)
    measure_and_judge(line, case, [9.3, 9.2, 9.4, "diverged"])
    prove_all(learned_scores({0: 9.3}))
    assert Regression.objects.get().state == "refuted"


def test_a_loss_that_rises(project: Project, case: Case) -> None:
    """Lower is better, and may be negative: by differences."""
    line = factories.create_commits(project, 4)
    run = factories.create_run(line[0], case)
    series = factories.get_series(run, "quality.score")
    series.metric.better = "lower"
    series.metric.save()
    run.delete()
    measure_and_judge(line, case, [-1.2, -1.3, -1.2, 0.9], maximum=0.0)
    prove_all(learned_scores({0: -1.2, 3: 0.9}))
    found = Regression.objects.get()
    assert (found.state, found.ratio) == ("confirmed", None)
    assert f"instead of {chr(0x2212)}1.20, over" in regression_title(found)


def test_what_learns_again_has_recovered(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 6)
    measure_and_judge(line[:5], case, [9.3, 9.2, 9.4, 2.1, 2.1])
    prove_all(learned_scores({0: 9.3, 3: 2.1}))
    measure_and_judge(line[5:], case, [9.2])
    assert Regression.objects.get().recovered_by == line[5]
    assert [row.event for row in Delivery.objects.order_by("pk")] == ["opened", "recovered"]


def test_the_times_of_what_does_not_learn_are_not_judged(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 14)
    measure_and_judge(line, case, [9.3] * 6 + [2.1] * 4 + [9.3] * 4, [0.01] * 6 + [0.004] * 4 + [0.01] * 4)
    prove_all(learned_scores({0: 9.3, 6: 2.1, 10: 9.3}))
    found = Regression.objects.get()
    assert (found.kind, found.recovered_by) == ("quality", line[10])


def test_a_guard_that_was_never_kept_blames_no_commit(project: Project, case: Case) -> None:
    measure_and_judge(factories.create_commits(project, 3), case, [2.1, 2.0, 2.1])
    assert not Regression.objects.exists()


def test_a_bound_that_was_raised_blames_no_commit(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 6)
    measure_and_judge(line[:3], case, [9.3, 9.2, 9.4])
    measure_and_judge(line[3:], case, [9.3, 9.2, 9.4], minimum=9.5)
    assert not Regression.objects.exists()


def test_pairs_of_a_host_that_knows_no_seeds_prove_nothing(project: Project, case: Case) -> None:
    line = factories.create_commits(project, 4)
    measure_and_judge(line, case, [9.3, 9.2, 9.4, 2.1])
    held = experiments.claim_experiment("default", "bench-1")
    assert held is not None
    verdicts = {
        experiments.add_pair(held.lease, PairMeasured(index, True, 9.3, 2.1, False, 6.0))
        for index in range(24)
    }
    assert verdicts == {"", "undecided"}
