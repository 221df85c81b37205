"""What comes from repositories, logs and documents is shown as text, wherever it is shown."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.models import Commit, Regression, Run, RunLog, Trigger
from tests.pages import builders
from tests.pages.documents import complete, document_of

pytestmark = pytest.mark.django_db

BAD = "</script><script>alert(1)</script>"
PAGES = (
    "/",
    "/projects/snake/",
    "/projects/snake/runs/",
    "/projects/snake/commits/",
    "/projects/snake/triggers/",
    "/series/{series}/",
    "/runs/{run}/",
    "/runs/{run}/frames/",
    "/runs/{failed}/",
    "/runs/{active}/status/",
    "/regressions/",
    "/regressions/{regression}/",
    "/deliveries/",
)


def poisoned() -> dict[str, int]:
    import random

    found = builders.project(branch="main")
    line = builders.commits(found, 3, subject=BAD)
    Commit.objects.update(author=BAD)
    case = builders.case(found, name=BAD)
    body = document_of(case, 0.001, random.Random(0))  # noqa: S311
    body["phases"][0]["path"] = body["profile"]["functions"][0]["function"] = BAD
    body["profile"]["functions"][0]["file"] = body["environment"]["os"] = body["harness"]["version"] = BAD
    body["environment"]["packages"] = body["environment"]["variables"] = {BAD: BAD}
    body["warnings"] = [{"code": "x", "message": BAD, "advice": BAD, "taints": False}]
    body["metrics"][-1]["phase"] = BAD
    body |= additions()
    body["profile"]["stacks"] = [{"stack": [BAD], "phase": BAD, "calls": 1.0, "self": 1e-3}]
    runs = [builders.measured(commit, case, 0.001, body=body) for commit in line]
    series = builders.headline(case)
    suspect = {**builders.SUSPECT, "function": BAD, "file": BAD, "phase": BAD}
    regression = builders.regression(series, line[0], line[1], phase=BAD[:200], suspects=[suspect])
    builders.delivery(regression, "failed", address=f"{BAD}@example.org")
    failed = builders.run(line[2], case, Run.State.FAILED, reason=BAD, quick=True)
    active = builders.run(line[1], case, Run.State.MEASURING, activity=BAD, quick=True)
    RunLog.objects.bulk_create(RunLog(run=run, text=BAD) for run in (failed, active))
    Trigger.objects.create(
        project=found, source="hook", revisions={"commit": BAD}, benchmarks=[BAD], detail=BAD
    )
    assert Regression.objects.get() == regression
    return {
        "series": series.pk, "run": runs[2].pk, "failed": failed.pk, "active": active.pk,
        "regression": regression.pk,
    }  # fmt: skip


def additions() -> dict[str, Any]:
    """What a document may hold beside the rest, with as much text of ours as fits."""
    found = complete()
    for row in found["scaling"]["points"]:
        row["phases"] = {BAD: row["seconds"]}
    found["scaling"] |= {"parameter": BAD, "params": {BAD: BAD}}
    found["scaling"]["exponents"][1]["phase"] = found["limits"][0]["phase"] = BAD
    found["processes"][0]["name"] = found["job"]["unit"] = BAD
    found["protocol"]["variables"] = {BAD: BAD}
    return {name: found[name] for name in ("scaling", "limits", "processes", "job", "protocol")}


def test_no_text_becomes_a_tag(signed_in: Client) -> None:
    ids = poisoned()
    for where in PAGES:
        shown = signed_in.get(where.format(**ids)).content.decode()
        assert "<script>alert" not in shown, where
        assert "alert(1)" in shown, where


def test_a_log_is_never_read_as_a_page(client: Client) -> None:
    found = builders.project()
    run = builders.run(builders.commits(found, 1)[0], builders.case(found))
    RunLog.objects.create(run=run, text=BAD)
    answer = client.get(f"/runs/{run.pk}/log/")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"
