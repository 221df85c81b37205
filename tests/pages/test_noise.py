"""How noisy each case is on each machine, and what its runs and experiments would show."""

from __future__ import annotations

import math
import random
import statistics
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import Case, Experiment, Point, Project
from dashboard.sentences.noise import effect_sentence
from dashboard.sentences.numbers import format_share
from tests.pages import builders, experiment_builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

CALM, BUSY = 0.01, 0.20


def measure_commits(project: Project, case: Case, machines: dict[str, float], count: int = 40) -> None:
    """A step time of three repetitions for each commit, on these machines in turn, as noisy as they are."""
    drawn = random.Random(4)  # noqa: S311
    names = list(machines)
    for at, commit in enumerate(builders.create_commits(project, count)):
        name = names[at % len(names)]
        now = timezone.now() - timedelta(days=1)
        run = builders.create_measured_run(commit, case, 0.01)
        run.machine, run.finished_at = builders.create_machine(name), now
        run.save()
        value = 0.01 * math.exp(drawn.gauss(0, machines[name]))
        samples = [value * math.exp(drawn.gauss(0, 0.002)) for _ in range(3)]
        Point.objects.filter(run=run, series__metric__name="step_time", series__phase="").update(
            value=statistics.median(samples), samples=samples
        )


def test_noise_and_smallest_steps_are_those_of_each_machine(client: Client) -> None:
    project = builders.create_project()
    measure_commits(project, builders.create_case(project, "walker"), {"bench-1": CALM, "busy": BUSY})
    answer = client.get("/projects/snake/noise/?metric=step_time")
    (row,) = answer.context["rows"]
    busy, calm = row.machines
    assert (busy.machine.name, calm.machine.name) == ("busy", "bench-1")
    assert busy.noise == pytest.approx(BUSY, rel=0.6)
    assert calm.noise == pytest.approx(CALM, rel=0.6)
    assert (busy.source, calm.source) == ("runs", "runs")
    assert calm.later < calm.soon < busy.soon
    assert busy.later < busy.soon
    assert calm.proven is None
    said = shown_text(answer)
    assert "1 of these is too noisy to be worth its time: after 10 runs no step below 20 % is found" in said
    assert "walker on busy" in said
    assert "paceline doctor on the machine says why" in said


def measure_noisy_project(slug: str) -> Experiment:
    """A case that is too noisy on one of two machines; on the other one an experiment was measured."""
    project = builders.create_project(slug)
    case = builders.create_case(project, "walker")
    measure_commits(project, case, {"bench-1": CALM, "busy": BUSY})
    configuration = case.configurations.get()
    asked = experiment_builders.create_ended(
        list(project.commits.order_by("position")),
        machine=builders.create_machine("bench-1"),
        base_configuration=configuration,
        head_configuration=configuration,
    )
    drawn = random.Random(2)  # noqa: S311
    for pair in asked.pairs.all():
        pair.head = pair.base * math.exp(drawn.gauss(0.3, 0.02))
        pair.save()
    return asked


def test_what_an_experiment_would_prove_is_told_by_the_newest_one(client: Client) -> None:
    asked = measure_noisy_project("snake")
    (row,) = client.get("/projects/snake/noise/?metric=step_time").context["rows"]
    by_machine = {found.machine.name: found for found in row.machines}
    assert (by_machine["bench-1"].experiment, by_machine["busy"].experiment) == (asked.pk, None)
    # Fifty pairs of twelve seconds: a step of a noise is proved, one of a tenth of it isn't.
    assert 0.002 < by_machine["bench-1"].proven < 0.03


def test_too_few_runs_tell_of_no_noise(client: Client) -> None:
    project = builders.create_project()
    measure_commits(project, builders.create_case(project, "walker"), {"bench-1": CALM}, count=3)
    answer = client.get("/projects/snake/noise/?metric=step_time")
    assert "not enough data: 3 of 6 runs, the newest 1 d ago" in shown_text(answer)
    assert not answer.context["noisy"]


def test_a_series_tells_what_step_it_would_show(client: Client) -> None:
    asked = measure_noisy_project("snake")
    series = builders.headline_series(asked.head_configuration.case)
    where = f"/series/{series.pk}/"
    newest = Point.objects.filter(series=series).select_related("run__machine").latest("position")
    (row,) = client.get("/projects/snake/noise/?metric=step_time").context["rows"]
    (machine,) = (found for found in row.machines if found.machine == newest.run.machine)
    effect = client.get(where).context["effect"]
    soon = format_share(machine.soon)
    assert effect.startswith(f"On {machine.machine.name} a step of {soon} would be found after 2 runs, of ")
    assert f"of {format_share(machine.later)} after 10." in effect
    assert "An experiment of ten minutes would prove" in effect
    asked.delete()
    assert "experiment" not in client.get(where).context["effect"]
    Point.objects.filter(series=series, position__gt=5).delete()
    assert client.get(where).context["effect"] == ""


def test_what_repeats_exactly_and_what_is_too_noisy_is_said() -> None:
    assert effect_sentence([(2, 0.0), (10, 0.0)], None, "a") == (
        "On a its values repeat exactly: the first run finds a step of any size."
    )
    assert effect_sentence([(2, math.inf), (10, math.inf)], math.inf, "a") == (
        "On a no step would be found within 10 runs: too noisy."
    )
    assert effect_sentence([(2, math.inf), (10, 0.05)], 0.01, "a") == (
        "On a a step of 5.0 % would be found after 10 runs. An experiment of ten minutes would prove 1.0 %."
    )
