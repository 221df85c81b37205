"""The form that asks for an experiment, and the links on other pages that fill it."""

from __future__ import annotations

import re
import shlex
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from dashboard import experiments
from dashboard.access import command_account
from dashboard.experiments import EstimateRequest
from dashboard.models import Commit, Experiment, Pool, Project
from tests.dashboard import factories
from tests.dashboard.conftest import Repository
from tests.pages import builders
from tests.pages.conftest import shown_text
from tests.pages.experiment_builders import (
    MANIFEST,
    create_ended,
    get_configuration,
)

pytestmark = pytest.mark.django_db


def linked_question(page: str, text: str) -> dict[str, str]:
    """The fields of the form that a link with this text opens."""
    (address,) = re.findall(rf'href="([^"]*/experiments/new/[^"]*)">{text}', page)
    return {name: values[0] for name, values in parse_qs(urlsplit(unescape(address)).query).items()}


def test_asking_again_asks_the_same(signed_in: Client, line: list[Commit]) -> None:
    row = create_ended(line, phase="learn", metric="phase_time", precision=0.025, most_seconds=90)
    page = signed_in.get(row.get_absolute_url()).content.decode()
    assert linked_question(page, "Ask again") == {
        "base": line[0].hash,
        "head": line[-1].hash,
        "case": "walker[fast=true]",
        "metric": "phase_time:learn",
        "precision": "2.5%",
        "minutes": "1.5",
        "quick": "no",
        "pool": "default",
    }


def test_asking_a_toggle_again_names_its_parameters(signed_in: Client, line: list[Commit]) -> None:
    head = get_configuration(line[0], fast="false", batch="64")
    row = create_ended(line, head_commit=line[0], head_configuration=head)
    page = signed_in.get(row.get_absolute_url()).content.decode()
    assert linked_question(page, "Ask again")["toggle"] == "batch=64,fast=false"


def commit_twice(folder: Path, manifest: str) -> Repository:
    repository = Repository(folder)
    repository.commit("Walk", paceline_toml=manifest)
    repository.commit("Walk on")
    return repository


@pytest.fixture(scope="module")
def walkers(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """What no test changes."""
    return commit_twice(tmp_path_factory.mktemp("code") / "walkers", MANIFEST)


@pytest.fixture(scope="module")
def three_walkers(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """The same with three cases."""
    return commit_twice(tmp_path_factory.mktemp("code") / "walkers", THREE_CASES)


@pytest.fixture
def described(walkers: Repository) -> Project:
    return Project.objects.create(slug="walkers", repository=str(walkers.folder))


THREE_CASES = MANIFEST.replace(
    "{ fast = true }", "{ fast = true }, { fast = true, batch = 2 }, { batch = 2 }"
)


@pytest.mark.parametrize(
    "asked",
    [
        {"head": "main", "case": "walker[fast=true]"},
        {"head": "main", "case": "walker[fast=true]", "quick": True, "metric": "phase_time:learn"},
        {"case": "walker[fast=true]", "toggle": "fast=false,batch=4"},
        {"case": "walker[batch=2,fast=true]", "head_case": "walker[batch=2]"},
        {"head": "main", "case": "walker[batch=2]", "head_case": "walker[batch=2,fast=true]"},
        {"head": "main", "case": "walker[batch=2,fast=true]", "head_case": "walker[fast=true]"},
    ],
)
def test_what_repeats_an_experiment_asks_the_same(
    three_walkers: Repository, signed_in: Client, asked: dict[str, Any]
) -> None:
    """By the command on its page, and by the form that *Ask again* opens."""
    project = Project.objects.create(slug="walkers", repository=str(three_walkers.folder))
    for pool in ("default", "other"):
        Pool.objects.create(name=pool)
    factories.get_configuration(factories.create_case(project, "walker", fast="true"))
    request = EstimateRequest(base="main~1", precision="2%", minutes="7", pool="other", **asked)
    first, _ = experiments.submit_estimate(project, request, "script", command_account())
    fields = (
        *("base_commit", "base_configuration", "head_commit", "head_configuration", "metric", "phase"),
        *("precision", "most_seconds"),
    )
    Experiment.objects.update(state="done")
    page = signed_in.get(first.get_absolute_url())
    program, *arguments = shlex.split(page.context["command"])[1:]
    call_command(*(word for word in arguments if word != "--wait"), stdout=StringIO())
    again = Experiment.objects.exclude(pk=first.pk).get()
    assert program == "manage.py"
    assert [getattr(again, name) for name in fields] == [getattr(first, name) for name in fields]
    Experiment.objects.update(state="done")
    page = signed_in.get(first.get_absolute_url())
    signed_in.post(NEW, linked_question(page.content.decode(), "Ask again"))
    third = Experiment.objects.latest("pk")
    assert third != again
    assert [getattr(third, name) for name in fields] == [getattr(first, name) for name in fields]


NEW = "/projects/walkers/experiments/new/"


def test_an_address_fills_the_form(signed_in: Client, described: Project) -> None:
    case = "walker%5Bfast%3Dtrue%5D"
    query = f"base=v1&head=main&case={case}&metric=phase_time:act&precision=2%25&minutes=7&quick=yes"
    page = signed_in.get(f"{NEW}?{query}").content.decode()
    for field in ('name="base" value="v1"', 'name="head" value="main"', 'name="precision" value="2%"'):
        assert field in page, field
    assert 'name="minutes" value="7"' in page
    assert 'value="walker[fast=true]"' in page  # No case is known yet: it is a field to type into.
    assert 'name="metric" value="phase_time:act"' in page
    assert '<option value="yes" selected>' in page


def test_an_empty_form_has_what_is_usual(signed_in: Client, described: Project) -> None:
    page = signed_in.get(NEW).content.decode()
    assert 'name="precision" value="1 %"' in page
    assert 'name="minutes" value="20"' in page
    assert 'name="metric" value="step_time"' in page
    assert '<option value="step_time">Step time</option>' in page


def test_the_form_offers_what_was_measured_and_takes_any_other(signed_in: Client, described: Project) -> None:
    line = builders.create_commits(described, 1)
    run = factories.store_measured_run(
        line[0],
        factories.create_case(described, "walker", fast="true"),
        {"step_time": 0.01},
        phases={"phase_time": {"act": 0.004}},
    )
    factories.get_configuration(factories.create_case(described, "walker", sped="true"))
    page = signed_in.get(NEW).content.decode()
    assert run.configuration.case.key == "fast=true"
    assert page.count('<option value="walker[fast=true]"></option>') == 2
    assert "sped=true" not in page  # Only a toggle has made that case.
    assert '<option value="phase_time:act">Time in act</option>' in page
    typed = {"base": "main", "head": "main", "case": "walker[fast=true]", "pool": "nowhere"}
    answer = signed_in.post(NEW, typed)
    assert re.search(r'name="pool" value="nowhere"[^>]*aria-invalid="true"', answer.content.decode())


def test_the_form_asks(signed_in: Client, described: Project, operator: User) -> None:
    answer = signed_in.post(NEW, {"base": "main~1", "head": "main", "precision": "2 %", "minutes": "5"})
    row = Experiment.objects.get()
    assert answer.url == row.get_absolute_url()  # type: ignore[attr-defined]
    assert (row.purpose, row.requested_by, row.precision, row.most_seconds) == ("person", operator, 0.02, 300)
    assert (row.base_commit.subject, row.head_commit.subject) == ("Walk", "Walk on")
    again = signed_in.post(NEW, {"base": "main~1", "head": "main"}, follow=True)
    assert "This is being measured already" in shown_text(again)
    assert Experiment.objects.count() == 1


def test_two_cases_at_one_commit_are_asked_for(signed_in: Client, described: Project) -> None:
    signed_in.post(NEW, {"base": "main", "toggle": "fast", "metric": "throughput", "quick": "yes"})
    row = Experiment.objects.get()
    assert (row.has_two_cases, row.head_configuration.case.key, row.metric.name) == (
        True,
        "fast=false",
        "throughput",
    )
    assert row.head_configuration.quick


@pytest.mark.parametrize(
    ("written", "field", "sentence"),
    [
        ({"base": "nothing", "head": "main"}, "base", "has no commit &#x27;nothing&#x27;"),
        ({"base": "main", "head": "main~9"}, "head", "has no commit &#x27;main~9&#x27;"),
        ({"base": "main", "case": "runner"}, "case", "has no runner, it has walker[fast=true]"),
        ({"base": "main", "toggle": "fast=true"}, "toggle", "is that already"),
        ({"base": "main", "head_case": "runner"}, "head_case", "has no runner"),
        ({"base": "main", "toggle": "fast", "precision": "0"}, "precision", "isn&#x27;t between"),
        ({"base": "main", "toggle": "fast", "minutes": "soon"}, "minutes", "isn&#x27;t a number"),
        ({"base": "main", "toggle": "fast", "metric": "speed"}, "metric", "isn&#x27;t measured of"),
    ],
)
def test_a_refusal_stands_at_its_field_and_nothing_typed_is_lost(
    signed_in: Client, described: Project, written: dict[str, str], field: str, sentence: str
) -> None:
    answer = signed_in.post(NEW, written)
    page = answer.content.decode()
    assert (answer.status_code, Experiment.objects.count()) == (400, 0)
    (error,) = re.findall(rf'id="{field}-error" role="alert">(.*?)</span>', page)
    assert sentence in error
    assert f'aria-describedby="{field}-error' in page
    for name, value in written.items():
        assert f'value="{value}"' in page, name


@pytest.mark.parametrize(("field", "value"), [("pool", "nowhere"), ("base", "\0" * 9)])
def test_odd_fields_are_refused_too(signed_in: Client, described: Project, field: str, value: str) -> None:
    answer = signed_in.post(NEW, {"base": "main", "toggle": "fast", field: value})
    assert (answer.status_code, Experiment.objects.count()) == (400, 0)


def test_an_imported_project_has_nothing_to_ask(signed_in: Client) -> None:
    project = builders.create_project("old")
    Project.objects.filter(pk=project.pk).update(repository="")
    builders.create_commits(project, 2)
    answer = signed_in.post("/projects/old/experiments/new/", {"base": "main"})
    assert "only an imported history" in shown_text(answer)
    assert "side by side" not in shown_text(signed_in.get("/projects/old/commits/"))


# Where one asks from


def test_two_commits_of_the_list_are_chosen(signed_in: Client, client: Client, line: list[Commit]) -> None:
    page = signed_in.get("/projects/snake/commits/").content.decode()
    assert 'formaction="/projects/snake/experiments/new/"' in page
    chosen = re.findall(r'name="(\w+)" value="(\w+)" form="comparing" checked', page)
    assert chosen == [("head", line[3].hash), ("base", line[2].hash)]
    assert "experiments/new" not in Client().get("/projects/snake/commits/").content.decode()


def test_two_points_of_a_series_are_chosen(signed_in: Client) -> None:
    commits = builders.create_measured_commits(3)
    series = builders.headline_series(commits[0].runs.get().case)
    page = signed_in.get(series.get_absolute_url()).content.decode()
    form = re.search(r'<form class="comparing".*?</form>', page, re.DOTALL)
    assert form is not None
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[0]))
    fields = {"case": str(series.case), "quick": "no", "pool": "default", "windows": "standard"}
    assert hidden == {**fields, "metric": "step_time"}
    assert page.count('form="comparing"') == 6


def test_a_run_is_compared_with_its_parent_and_the_last_good_one(signed_in: Client) -> None:
    commits = builders.create_measured_commits(4, step_at=2)
    series = builders.headline_series(commits[0].runs.get().case)
    regression = builders.create_regression(series, commits[0], commits[2])
    Commit.objects.filter(pk=commits[3].pk).update(parents=["f" * 40])
    page = signed_in.get(commits[3].runs.get().get_absolute_url()).content.decode()
    asked = {
        text: linked_question(page, text)
        for text in (
            "its parent",
            "the commit measured before it",
            f"the last good commit of regression {regression.pk}",
        )
    }
    assert [question["base"] for question in asked.values()] == ["f" * 40, commits[2].hash, commits[0].hash]
    assert {question["head"] for question in asked.values()} == {commits[3].hash}
    assert "its parent" not in Client().get(commits[3].runs.get().get_absolute_url()).content.decode()


def test_a_run_is_compared_with_the_baseline_of_its_branch(signed_in: Client) -> None:
    commits = builders.create_measured_commits(3)
    Project.objects.update(policy='[policy.baseline]\npinned = "v1.2"')
    page = signed_in.get(commits[2].runs.get().get_absolute_url()).content.decode()
    assert linked_question(page, "its baseline, v1.2")["base"] == "v1.2"
    Commit.objects.filter(pk=commits[2].pk).update(branch="topic")
    page = signed_in.get(commits[2].runs.get().get_absolute_url()).content.decode()
    assert linked_question(page, "its baseline, merge base")["base"] == "merge-base"


def test_a_regressions_step_is_measured_anew(signed_in: Client) -> None:
    regression = builders.create_stepped_regression()
    page = signed_in.get(f"/regressions/{regression.pk}/").content.decode()
    question = linked_question(page, "measure the difference anew")
    assert (question["base"], question["head"]) == (regression.last_good.hash, regression.first_bad.hash)
    assert (question["metric"], question["case"]) == ("step_time", str(regression.series.case))
    Project.objects.update(repository="")
    assert (
        "measure the difference anew" not in signed_in.get(f"/regressions/{regression.pk}/").content.decode()
    )
