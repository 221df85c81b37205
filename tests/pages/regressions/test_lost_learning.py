"""What pages say where training learns less: in lists, on its own page, and of the speed that it gained."""

from __future__ import annotations

import html

import pytest
from django.core.cache import cache
from django.test import Client

from dashboard.management.demonstration import describe_improvements
from dashboard.models import Document, Experiment, Metric, Regression, Run
from dashboard.querysets.regression_details import runs_of_step
from tests.dashboard import factories
from tests.dashboard.regressions.test_lost_learning import (
    STEP_TIME,
    learned_scores,
    measure_and_judge,
    prove_all,
)
from tests.pages import builders

FASTER = 0.006


@pytest.fixture
def lost(db: None) -> Regression:
    """Within the guard's bounds, and faster: the series of the step's time got better at the same commit."""
    project = factories.create_project()
    line = factories.create_commits(project, 16)
    scores = [[9.1, 9.3, 9.5]] * 10 + [[4.8, 5.0, 5.2]] * 6
    measure_and_judge(line, factories.create_case(project), scores, [STEP_TIME] * 10 + [FASTER] * 6)
    prove_all(
        learned_scores({0: 9.3, 10: 5.0}), lambda commit: FASTER if commit.position >= 10 else STEP_TIME
    )
    return Regression.objects.get()


def test_pages_tell_the_story(client: Client, lost: Regression) -> None:
    for address in ("/", "/regressions/"):
        assert "Training learns less" in client.get(address).content.decode()
    page = client.get(lost.get_absolute_url()).content.decode()
    assert "A step takes 40 % less time" in page
    assert "which is no gain" in page
    proof = client.get(Experiment.objects.get().get_absolute_url()).content.decode()
    assert "seed 1000" in proof
    time = factories.get_series(lost.series.points.order_by("position")[0].run, "step_time")
    better = time.changes.get()
    assert better.direction == "improvement"
    assert "no gain, training learns less since" in client.get(time.get_absolute_url()).content.decode()
    assert describe_improvements(lost.project) == []


def test_points_that_show_another_loss_are_named(client: Client, lost: Regression) -> None:
    named = "The points of its runs show 9.30 → 5; what pairs measured side by side counts."
    assert named in html.unescape(client.get(lost.get_absolute_url()).content.decode())
    lost.changes.filter(series=lost.series).update(after=lost.after)
    assert "The points of its runs" not in client.get(lost.get_absolute_url()).content.decode()


def test_a_proof_by_one_seed_says_so(client: Client, lost: Regression) -> None:
    assert "doesn't take PACELINE_SEED" not in client.get(lost.get_absolute_url()).content.decode()
    Regression.objects.update(learning={**lost.learning, "seeds": 1, "seed_ignored": True})
    page = html.unescape(client.get(lost.get_absolute_url()).content.decode())
    assert "over 1 seed" in page
    assert "the script doesn't take PACELINE_SEED, so that this is known of one seed alone." in page


@pytest.mark.django_db
def test_no_phase_has_a_share_of_a_quality(client: Client) -> None:
    regression = builders.create_stepped_regression()
    assert "share above" in phases_shown(client, regression)
    Regression.objects.update(phase="", phase_share=None)
    Metric.objects.filter(pk=regression.series.metric_id).update(kind=Metric.Kind.QUALITY)
    shown = phases_shown(client, regression)
    assert "Times don't tell why less is learned." in shown
    assert "share above" not in shown
    assert 'data-label="Difference"' in shown
    assert 'data-label="Share"' not in shown


@pytest.mark.django_db
def test_phases_of_disturbed_runs_say_so(client: Client) -> None:
    regression = builders.create_stepped_regression()
    Metric.objects.filter(pk=regression.series.metric_id).update(kind=Metric.Kind.QUALITY)
    good, bad = runs_of_step(regression).of_both(regression)
    keep_out(good, "quality_below_guard")
    assert "disturbed" not in phases_shown(client, regression)
    keep_out(bad, "quality_below_guard", "processor_contention")
    assert "why less is learned. One of the two runs was disturbed." in phases_shown(client, regression)
    keep_out(good, "processor_contention")
    assert "why less is learned. Both runs were disturbed." in phases_shown(client, regression)


def keep_out(run: int, *codes: str) -> None:
    """Of judgement, by warnings of these codes."""
    Run.objects.filter(pk=run).update(tainted=True)
    kept = Document.objects.get(run=run)
    kept.body["warnings"] = [{"code": code, "taints": True} for code in codes]
    kept.save()
    cache.clear()


def phases_shown(client: Client, regression: Regression) -> str:
    page = client.get(regression.get_absolute_url()).content.decode()
    return page.split('id="phases"')[1].split("</section>")[0]
