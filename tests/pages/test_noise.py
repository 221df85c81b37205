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
