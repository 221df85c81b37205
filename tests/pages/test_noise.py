"""How noisy each case is on each machine, and what its runs and experiments would show."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from dashboard.ingest.latest import write_latest
from dashboard.models import Case, Experiment, Machine, Metric, Point, Project, Run, Series
from dashboard.pages.noise.machine_noise import shown_effect
from dashboard.sentences.formatting.numbers import format_share
from dashboard.sentences.series.noise import NoisyCase, effect_sentence, found_sentence, noisy_sentence
from tests.dashboard.shared_rows import share_rows
from tests.pages import builders, experiment_builders
from tests.pages.conftest import shown_text
from tests.pages.documents import create_document

pytestmark = pytest.mark.django_db

CALM, BUSY = 0.01, 0.20


def measure_commits(project: Project, case: Case, machines: dict[str, float], count: int = 40) -> None:
    """A step time of three repetitions for each commit, on these machines in turn, as noisy as they are."""
    drawn = random.Random(4)  # noqa: S311
    names = list(machines)
    body = create_document(case, 0.01, random.Random(0))  # noqa: S311
    told = builders.create_documented_runs(
        case, [(commit, body) for commit in builders.create_commits(project, count)]
    )
    builders.create_points_of_runs(told)
    keys = [run.pk for run, _ in told]
    finished = {"finished_at": timezone.now() - timedelta(days=1), "tainted": False}
    for number, name in enumerate(names):
        of_machine = Run.objects.filter(pk__in=keys[number :: len(names)])
        of_machine.update(machine=builders.create_machine(name), **finished)
    Point.objects.filter(run__in=keys).update(tainted=False)
    points = list(
        Point.objects.filter(run__in=keys, series__metric__name="step_time", series__phase="").order_by("run")
    )
    for at, point in enumerate(points):
        value = 0.01 * math.exp(drawn.gauss(0, machines[names[at % len(names)]]))
        point.samples = [value * math.exp(drawn.gauss(0, 0.002)) for _ in range(3)]
        point.value = statistics.median(point.samples)
    assert len(points) == Point.objects.bulk_update(points, ["value", "samples"]) == count


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
    assert calm.later < calm.soon < busy.later
    # Two of its runs may lie too far apart to be a level, however high it is.
    assert busy.soon is None
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


@pytest.fixture(scope="module")
def measured_once(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    """The project `noisy`, for all tests of the module that look at it: its experiment."""
    with share_rows(django_db_blocker, lambda: measure_noisy_project("noisy").pk) as made:
        yield made


@pytest.fixture
def asked(measured_once: int, db: None) -> Experiment:
    """The experiment of the project `noisy`."""
    return Experiment.objects.get(pk=measured_once)


def case_series(case: Case) -> list[Series]:
    return list(Series.objects.filter(configuration__case=case))


def renew_latest(asked: Experiment) -> None:
    """The latest states, as they are once values have been ingested."""
    write_latest(asked.project, [series.pk for series in case_series(asked.head_configuration.case)])


def test_what_an_experiment_would_prove_is_told_by_the_newest_one(client: Client, asked: Experiment) -> None:
    (row,) = client.get("/projects/noisy/noise/?metric=step_time").context["rows"]
    by_machine = {found.machine.name: found for found in row.machines}
    assert (by_machine["bench-1"].experiment, by_machine["busy"].experiment) == (asked.pk, None)
    # Fifty pairs of twelve seconds: a step of a noise is proved, one of a tenth of it isn't.
    assert 0.002 < by_machine["bench-1"].proven < 0.03


def test_pairs_that_took_turns_tell_by_their_single_steps(client: Client, asked: Experiment) -> None:
    Experiment.objects.update(in_turns=True)
    where = "/projects/noisy/noise/?metric=step_time"
    by_means = proven_on(client, where, "bench-1")
    for pair in asked.pairs.all():
        asked.pairs.create(
            index=pair.index + 6,
            base_first=pair.base_first,
            base=pair.base,
            head=pair.head,
            seconds=pair.seconds,
        )
    drawn = random.Random(3)  # noqa: S311
    for pair in asked.pairs.all():
        pair.step_ratio, pair.kinds_ratio, pair.kinds_error = math.exp(drawn.gauss(0, 0.004)), 1.0, 0.0001
        pair.save()
    told = proven_on(client, where, "bench-1")
    assert told < by_means / 2
    series = builders.headline_series(asked.head_configuration.case)
    Point.objects.filter(run__machine__name="busy").delete()
    effect = client.get(f"/series/{series.pk}/").context["effect"]
    assert effect.endswith(f"would prove {format_share(told)}.")
    # A pair without them leaves it to the means.
    asked.pairs.filter(index=1).update(step_ratio=None)
    assert proven_on(client, where, "bench-1") > told


def proven_on(client: Client, where: str, machine: str) -> float:
    (row,) = client.get(where).context["rows"]
    (found,) = (found.proven for found in row.machines if found.machine.name == machine)
    return float(found)


def test_too_few_runs_tell_of_no_noise(client: Client) -> None:
    project = builders.create_project()
    measure_commits(project, builders.create_case(project, "walker"), {"bench-1": CALM}, count=3)
    answer = client.get("/projects/snake/noise/?metric=step_time")
    assert "not enough data: 3 of 6 runs, the newest 1 d ago" in shown_text(answer)
    assert not answer.context["noisy"]


def test_a_series_tells_what_step_it_would_show(client: Client, asked: Experiment) -> None:
    series = builders.headline_series(asked.head_configuration.case)
    where = f"/series/{series.pk}/"
    newest = Point.objects.filter(series=series).select_related("run__machine").latest("position")
    (row,) = client.get("/projects/noisy/noise/?metric=step_time").context["rows"]
    (machine,) = (found for found in row.machines if found.machine == newest.run.machine)
    effect = client.get(where).context["effect"]
    later = format_share(machine.later)
    assert effect.startswith(f"On {machine.machine.name} a step of {later} would be found after 10 runs.")
    assert "An experiment of ten minutes would prove" in effect
    asked.delete()
    assert "experiment" not in client.get(where).context["effect"]
    Point.objects.filter(series=series, position__gt=5).delete()
    assert client.get(where).context["effect"] == ""


def test_of_one_seed_no_step_in_what_is_learned_is_told(client: Client) -> None:
    """Repeated it has no noise; another seed would have learned otherwise."""
    project = builders.create_project()
    measure_commits(project, builders.create_case(project, "walker"), {"bench-1": CALM}, count=12)
    metric = Metric.objects.get(name="step_time")
    series = Series.objects.get(metric=metric, phase="", configuration__case__project=project)
    assert "would be found" in client.get(f"/series/{series.pk}/").context["effect"]
    Metric.objects.filter(pk=metric.pk).update(kind=Metric.Kind.QUALITY)
    assert "would be found" in client.get(f"/series/{series.pk}/").context["effect"]
    Point.objects.filter(series=series).update(value=0.5, samples=[0.5, 0.5, 0.5])
    assert client.get(f"/series/{series.pk}/").context["effect"] == ""


def test_a_projects_page_says_what_is_too_noisy_and_what_would_help(
    client: Client, asked: Experiment
) -> None:
    renew_latest(asked)
    answer = client.get("/projects/noisy/?metric=step_time")
    noise = answer.context["noise"]
    (row,) = client.get("/projects/noisy/noise/?metric=step_time").context["rows"]
    busy, calm = row.machines
    assert noise.noisy == (
        f"Too noisy to be worth its time: walker on busy (± {format_share(busy.noise)}), whose runs differ "
        "more than their repetitions: paceline doctor there says what would help."
    )
    assert 'href="/projects/noisy/noise/?metric=step_time"' in answer.content.decode()
    # The machine that measured last is the busy one: where there are several it is named.
    assert f"finds steps of {format_share(busy.later)} or more after 10 runs" in shown_text(answer)
    assert "on busy" in noise.found[row.state.series]
    assert "on bench-1" not in noise.found[row.state.series]
    assert not calm.is_too_noisy


def test_a_calm_project_has_nobody_warned(client: Client) -> None:
    project = builders.create_project()
    case = builders.create_case(project, "walker")
    measure_commits(project, case, {"bench-1": CALM})
    write_latest(project, [series.pk for series in case_series(case)])
    answer = client.get("/projects/snake/?metric=step_time")
    assert answer.context["noise"].noisy == ""
    assert "in an experiment" not in shown_text(answer)
    assert "finds " in shown_text(answer)


def test_a_machines_page_has_what_each_of_its_cases_would_show(client: Client, asked: Experiment) -> None:
    by_machine = {}
    for name in ("bench-1", "busy"):
        machine = Machine.objects.get(name=name)
        answer = client.get(f"/machines/{machine.pk}/")
        (by_machine[name],) = answer.context["cases"]
        assert by_machine[name].values == 20
    (row,) = client.get("/projects/noisy/noise/?metric=step_time").context["rows"]
    assert {found.machine.name: found.later for found in row.machines} == {
        name: found.later for name, found in by_machine.items()
    }
    assert by_machine["bench-1"].experiment == asked.pk
    assert "too noisy its runs differ more than their repetitions" in shown_text(answer)


def test_a_machines_cases_are_those_that_a_visitor_may_see(client: Client, asked: Experiment) -> None:
    Project.objects.filter(pk=asked.project_id).update(visibility="members")
    machine = Machine.objects.get(name="busy")
    assert client.get(f"/machines/{machine.pk}/").context["cases"] == []


def test_pairs_on_the_step_time_tell_of_the_throughput(client: Client, asked: Experiment) -> None:
    (row,) = client.get("/projects/noisy/noise/?metric=throughput").context["rows"]
    proven = {found.machine.name: found.experiment for found in row.machines}
    assert proven == {"bench-1": asked.pk, "busy": None}
    series = asked.head_configuration.series.get(metric__name="throughput", phase="")
    assert "An experiment of ten minutes" in client.get(f"/series/{series.pk}/").context["effect"]


def test_many_noisy_cases_are_told_by_what_would_help() -> None:
    noisy = [NoisyCase(f"case-{number}", "a", 0.3, "runs") for number in range(5)]
    noisy.append(NoisyCase("case-0", "b", 0.5, "runs"))
    assert noisy_sentence([*noisy, NoisyCase("last", "b", 0.4, "repetitions")]) == (
        "Too noisy to be worth their time: case-0 on a and b (± 50 %), case-1 on a (± 30 %), case-2 on a "
        "(± 30 %) and 2 more, whose runs differ more than their repetitions: paceline doctor there says what "
        "would help; last on b (± 40 %), whose repetitions differ: more of them, or more steps in each, "
        "would help."
    )
    assert noisy_sentence([]) == ""


def test_what_a_case_finds_is_said_in_few_words() -> None:
    assert found_sentence([(2, 0.04), (10, 0.02)], 0.01) == (
        "finds steps of 4.0 % or more after 2 runs, of 2.0 % after 10, of 1.0 % in an experiment"
    )
    assert (
        found_sentence([(2, None), (10, 0.3)], None, "a") == "finds steps of 30 % or more after 10 runs on a"
    )
    assert found_sentence([(2, None), (10, None)], None) == "no step is found within 10 runs"
    assert found_sentence([(2, 0.0), (10, 0.0)], None) == "repeats exactly: finds any step"


def test_a_step_for_the_worse_of_a_throughput_is_a_fall() -> None:
    assert shown_effect(1.006, "lower") == 1.006
    assert shown_effect(1.006, "higher") == pytest.approx(0.5015, abs=1e-4)
    assert shown_effect(math.inf, "higher") is None


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


def test_what_may_be_below_zero_has_no_noise_that_is_a_share_of_it(client: Client, asked: Experiment) -> None:
    where = "/projects/noisy/?metric="
    assert client.get(f"{where}step_time").context["noise"].noisy
    growth = Metric.objects.get(name="memory_growth", better="lower")
    Series.objects.filter(metric=growth).delete()
    Series.objects.filter(metric__name="step_time", phase="").update(metric=growth)
    context = client.get(f"{where}memory_growth").context
    assert (len(context["rows"]), context["noise"].noisy, context["noise"].found) == (1, "", {})
    answer = client.get("/projects/noisy/noise/?metric=memory_growth")
    assert answer.status_code == 400
    assert "metric must have noise that is a share of it: Memory growth may be 0 or less." in shown_text(
        answer
    )
    assert 'value="memory_growth"' not in answer.content.decode()
