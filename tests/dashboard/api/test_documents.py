"""Documents that were measured elsewhere and are posted: each one run of its commit, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import AuditEntry, Document, Experiment, Point, Pool, Project, Regression, Run
from dashboard.regressions import judge_run
from tests.dashboard.conftest import Repository
from tests.dashboard.documents import document_environment, encoded_document

pytestmark = pytest.mark.django_db
Post = Callable[..., Any]


@pytest.fixture
def snakes(project: Project, repository: Repository) -> Project:
    project.repository = str(repository.folder)
    project.save()
    return project


@pytest.fixture
def reader(admin: User, client: Client) -> Client:
    client.force_login(admin)
    return client


@pytest.fixture
def post(snakes: Project, script: Client) -> Post:
    def send(data: bytes, client: Client = script, **query: str) -> Any:
        address = f"/api/v1/projects/{snakes.slug}/documents?{urlencode({'commit': 'main', **query})}"
        return client.post(address, data, "application/json")

    return send


def test_a_document_becomes_a_run_of_its_commit(
    post: Post, repository: Repository, script: Client, reader: Client
) -> None:
    data = encoded_document()
    answer = post(data, machine="github-runner")
    row = answer.json()
    assert (answer.status_code, row["state"], row["origin"]) == (201, "done", "posted")
    assert row["commit"]["hash"] == repository.git("rev-parse", "main")
    assert (row["case"], row["machine"]) == ("tiny[size=1]", None)
    assert row["pool"].startswith("github-runner-posted-")
    assert Point.objects.filter(run=row["id"]).exists()
    assert script.get(f"/api/v1/runs/{row['id']}/document").json()["format"] == "paceline.document/1"
    entry = AuditEntry.objects.latest("pk")
    assert (entry.action, entry.source, entry.details["machine"]) == (
        "document posted",
        "token",
        "github-runner",
    )
    page = reader.get(f"/runs/{row['id']}/").content.decode()
    assert "<code>github-runner</code>, none of this site" in page
    assert "by ada, with the token script" in page


def test_the_same_document_is_one_run(post: Post) -> None:
    data = encoded_document()
    first, again, other = post(data), post(data), post(encoded_document(throughput=90.0))
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 201)
    assert first.json() == again.json()
    assert Run.objects.count() == Document.objects.count() == 2
    assert AuditEntry.objects.filter(action="document posted").count() == 2


def test_another_processor_is_another_pool(post: Post) -> None:
    others = {**document_environment(), "cpu_model": "Another"}
    pools = {post(data).json()["pool"] for data in (encoded_document(), encoded_document(environment=others))}
    assert len(pools) == 2
    assert Pool.objects.filter(name__in=pools, machines=None).count() == 2


def renamed_document(**changes: object) -> bytes:
    named = {"name": "tiny", "version": 1, "params": {"size": 1}, "case": "size=1", **changes}
    return encoded_document(benchmark=named)


@pytest.mark.parametrize(
    ("data", "query", "sentence"),
    [
        (b"{", {}, "document: "),
        (b'{"format": "paceline.document/1"}', {}, "harness"),
        (renamed_document(name="tinny"), {}, "has no benchmark 'tinny'; did you mean tiny?"),
        (renamed_document(version=7), {}, "benchmark.version: is 7, tiny at "),
        (renamed_document(case="size=3"), {}, "benchmark.case: is 'size=3', its parameters spell 'size=1'"),
        (encoded_document(), {"commit": "f" * 40}, "commit: "),
        (encoded_document(), {"commit": "--upload-pack=x"}, "commit: "),
        (encoded_document(), {"commit": "main~1"}, "has no paceline.toml"),
        (encoded_document(), {"machine": "a/b"}, "machine: 'a/b' isn't 1 to 40 lower-case letters"),
        (encoded_document(), {"commit": ""}, "commit: it must have at least 1 character."),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_kept(
    post: Post, data: bytes, query: dict[str, str], sentence: str
) -> None:
    answer = post(data, **query)
    assert (answer.status_code, sentence in answer.json()["detail"]) == (422, True), answer.json()["detail"]
    assert not Run.objects.exists()
    assert not AuditEntry.objects.filter(action="document posted").exists()


def test_the_path_of_what_is_wrong_is_the_field(post: Post) -> None:
    assert post(b'{"format": "paceline.document/1"}').json()["field"] == "harness"
    assert post(renamed_document(case="size=3")).json()["field"] == "benchmark.case"
    assert "field" not in post(b"{").json()


def test_a_token_that_only_views_may_not(post: Post, bearing: Callable[..., Client]) -> None:
    assert post(encoded_document(), bearing("view")).status_code == 403


def test_what_is_found_in_them_is_suspected_and_measured_by_nobody(
    post: Post, repository: Repository, reader: Client
) -> None:
    for number, commit in enumerate(
        repository.commit_line(*((f"Commit {place}", {}) for place in range(14)))
    ):
        throughput = 100.0 + number % 3 * 0.1 if number < 8 else 60.0 + number % 3 * 0.1
        row = post(encoded_document(throughput=throughput), commit=commit).json()
        # Of the first points nothing is to be said: they are judged with those behind them.
        if number >= 5:
            judge_run(row["id"])
    found = Regression.objects.get()
    assert (found.state, found.first_bad.subject, found.proving) == ("suspected", "Commit 8", False)
    assert not Experiment.objects.exists()
    page = reader.get(found.get_absolute_url()).content.decode()
    assert "It was measured elsewhere and posted: no host of this site can measure it again." in page
