"""What is read of the API: the numbers of the pages, nothing secret, and by a fixed number of queries."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from dashboard.models import Commit, Project, Run, RunLog, Series
from tests.dashboard.access.conftest import create_member
from tests.dashboard.api.test_listing import read_all
from tests.pages import builders
from tests.pages.experiment_builders import create_ended
from tests.pages.test_queries import fill_site

pytestmark = pytest.mark.django_db

API = "/api/v1"
# Of a public project by a visitor, or, where it is of admins, by one of them: how many queries each takes.
# What spans projects asks for the revision by itself (docs/page-cache.md).
QUERIES = {
    "/projects": 2,
    "/projects/snake": 2,
    "/projects/snake/cases": 3,
    "/projects/snake/series?limit=100": 2,
    "/series/{series}": 2,
    "/series/{series}/points?limit=1000": 3,
    "/series/{series}/changes": 3,
    "/projects/snake/commits": 3,
    "/projects/snake/comparison?base={first}&head={last}": 7,
    "/projects/snake/triggers": 3,
    "/projects/snake/runs?limit=200": 3,
    "/runs/{run}": 2,
    "/runs/{run}/document": 3,
    "/runs/{run}/log": 3,
    "/runs/{run}/processes": 3,
    "/projects/snake/experiments": 3,
    "/experiments/{experiment}": 2,
    "/experiments/{experiment}/pairs": 3,
    "/regressions": 4,
    "/regressions/{regression}": 6,
    "/deliveries": 2,
    "/machines": 2,
    "/machines/{machine}": 2,
}
# Two of them ask who is signed in.
ADMINS_QUERIES = {
    "/projects/snake/channels": 7,
    "/projects/snake/members": 5,
    "/projects/snake/audit": 6,
    "/projects/snake/tokens": 5,
}


def read_json(client: Client, address: str) -> Any:
    answer = client.get(API + address)
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.parametrize("count", [3, 30])
def test_every_answer_asks_the_same_number_of_questions(
    client: Client, django_assert_num_queries: Callable[[int], Any], count: int
) -> None:
    ids = fill_site(count)
    for where, queries in QUERIES.items():
        with django_assert_num_queries(queries):
            assert client.get(API + where.format(**ids)).status_code == 200, where


@pytest.mark.parametrize("count", [3, 30])
def test_what_admins_read_asks_as_little(
    client: Client, django_assert_num_queries: Callable[[int], Any], count: int
) -> None:
    fill_site(count)
    project = Project.objects.get(slug="snake")
    for number in range(count):
        admin = create_member(f"admin-{number}", "admin", project)
    client.force_login(admin)
    for where, queries in ADMINS_QUERIES.items():
        with django_assert_num_queries(queries):
            assert client.get(API + where).status_code == 200, where


@pytest.fixture
def line(db: None) -> list[Commit]:
    return builders.create_measured_commits(4)


@pytest.fixture
def series(line: list[Commit]) -> Series:
    return builders.headline_series(line[0].runs.get().case)


def test_points_come_by_position_with_their_run_and_doubt(
    client: Client, series: Series, line: list[Commit]
) -> None:
    run = line[3].runs.get()
    Run.objects.filter(pk=run.pk).update(warning_codes=["co_tenant"])
    series.points.filter(run=run).update(tainted=True, low=0.9, high=1.1)
    pages = read_all(client, f"{API}/series/{series.pk}/points?limit=3")
    assert [[point["position"] for point in page] for page in pages] == [[3, 2, 1], [0]]
    newest = pages[0][0]
    assert (newest["commit"], newest["run"]) == (line[3].hash, run.pk)
    assert (newest["tainted"], newest["doubts"], newest["low"]) == (True, ["co_tenant"], 0.9)


def test_points_between_two_positions(client: Client, series: Series) -> None:
    points = read_json(client, f"/series/{series.pk}/points?since=1&until=2")["items"]
    assert [point["position"] for point in points] == [2, 1]
    answer = client.get(f"{API}/series/{series.pk}/points?branch=other")
    assert (answer.status_code, answer.json()["field"]) == (422, "branch")
    assert answer.json()["detail"] == "branch: no commit of the branch “other” is known."


def test_series_are_found_by_what_identifies_them(client: Client, series: Series) -> None:
    case = str(series.case)
    query = f"case={case}&metric={series.metric}&phase=&headline=true"
    found = read_json(client, f"/projects/snake/series?{query}")
    assert [row["id"] for row in found["items"]] == [series.pk]
    assert found["items"][0]["latest"]["position"] == 3
    assert read_json(client, "/projects/snake/series?pool=elsewhere")["items"] == []


def test_runs_are_filtered(client: Client, line: list[Commit]) -> None:
    case = builders.create_case(line[0].project, "walker", size=8)
    active = builders.create_run(line[1], case, Run.State.MEASURING)
    for query in (
        *("state=active", "state=measuring", "benchmark=walker", "case=walker[size=8]"),
        f"commit={line[1].hash}&benchmark=walker",
    ):
        assert [row["id"] for row in read_json(client, f"/projects/snake/runs?{query}")["items"]] == [
            active.pk
        ]
    assert client.get(f"{API}/projects/snake/runs?state=sleeping").status_code == 422


def test_a_document_is_what_is_kept(client: Client, line: list[Commit]) -> None:
    run = line[0].runs.get()
    first = client.get(f"{API}/runs/{run.pk}/document")
    assert first.json() == run.document.body
    again = client.get(f"{API}/runs/{run.pk}/document", headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304
    run.document.telemetry_dropped = True
    run.document.save()
    thinned = client.get(f"{API}/runs/{run.pk}/document", headers={"If-None-Match": first["ETag"]})
    assert thinned.status_code == 200


def test_a_log_is_text_that_grows(client: Client, line: list[Commit]) -> None:
    run = line[0].runs.get()
    first = client.get(f"{API}/runs/{run.pk}/log")
    assert (first["Content-Type"], first.content.decode()) == ("text/plain; charset=utf-8", run.log.text)
    RunLog.objects.update(text="more")
    assert client.get(f"{API}/runs/{run.pk}/log", headers={"If-None-Match": first["ETag"]}).text == "more"


def test_a_regression_has_its_evidence(client: Client, line: list[Commit], series: Series) -> None:
    regression = builders.create_regression(series, line[1], line[2])
    told = read_json(client, f"/regressions/{regression.pk}")
    assert (told["first_bad"]["hash"], told["last_good"]["hash"]) == (line[2].hash, line[1].hash)
    assert told["changes"][0]["series"] == series.pk
    assert told["suspects"] == regression.suspects
    assert read_json(client, "/regressions?project=snake")["items"][0]["title"] == told["title"]


def test_an_experiment_says_its_answer(client: Client, line: list[Commit]) -> None:
    experiment = create_ended(line[:2])
    told = read_json(client, f"/experiments/{experiment.pk}")
    assert (told["ratio"], told["measured_pairs"]) == (experiment.ratio, experiment.pairs.count())
    pairs = read_json(client, f"/experiments/{experiment.pk}/pairs")["items"]
    assert [pair["index"] for pair in pairs] == list(range(experiment.pairs.count()))


def test_a_commit_is_found_by_its_hash(client: Client, line: list[Commit]) -> None:
    told = read_json(client, f"/projects/snake/commits/{line[2].hash}")
    assert (told["position"], told["done"]) == (2, 1)
    unknown = hashlib.sha256(b"none").hexdigest()[:40]
    assert client.get(f"{API}/projects/snake/commits/{unknown}").status_code == 404


def test_nothing_secret_is_told(script: Client, project: Project) -> None:
    secret = "https://hooks.slack.com/services/T0/B0/verysecret"
    project.channels.create(kind="slack", address="https://hooks.slack.com/#1", secret=secret)
    token = project.api_tokens.get()
    told = "".join(
        script.get(f"{API}/projects/snake/{part}").content.decode()
        for part in ("channels", "tokens", "audit", "members")
    )
    assert "hooks.slack.com" in told
    assert token.prefix in told
    assert "verysecret" not in told
    assert token.token_hash not in told


def test_who_cannot_operate_sees_a_part_of_addresses(
    client: Client, script: Client, project: Project
) -> None:
    line = builders.create_commits(project, 2)
    case = builders.create_case(project)
    builders.create_measured_run(line[0], case, 0.01)
    regression = builders.create_regression(builders.headline_series(case), line[0], line[1])
    builders.create_delivery(regression, address="grace@example.org")
    told = [reader.get(f"{API}/deliveries").json()["items"][0]["address"] for reader in (client, script)]
    assert told == ["g…@example.org", "grace@example.org"]
