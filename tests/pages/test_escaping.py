"""What comes from repositories, logs and documents is shown as text, wherever it is shown."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard import dispatch, failed_jobs
from dashboard.access import AuditAction, Visitor, record_action
from dashboard.models import (
    Case,
    Commit,
    Configuration,
    ExperimentPair,
    Machine,
    Regression,
    Run,
    RunLog,
    Sentinel,
    Trigger,
)
from dashboard.templatetags.paceline import quoted_code
from tests.pages import builders
from tests.pages.documents import complete_document, create_document
from tests.pages.experiment_builders import create_ended

pytestmark = pytest.mark.django_db

BAD = "</script><script>alert(1)</script>"
PAGES = (
    "/",
    "/projects/snake/",
    "/projects/snake/runs/",
    "/projects/snake/commits/",
    "/projects/snake/compare/?base=run:{first}&head=run:{run}",
    "/projects/snake/compare/?base={bad}&head={bad}&case={bad}",
    *(f"/projects/snake/{part}/" for part in ("triggers", "regressions", "heatmap", "noise")),
    "/projects/snake/?q={bad}",
    "/projects/snake/?base={bad}",
    "/projects/snake/runs/?machine={bad}",
    "/projects/snake/commits/{commit}/?q={bad}",
    "/search/?q={bad}",
    "/search/?q=alert",
    "/queue/",
    "/projects/snake/triggers/{trigger}/",
    "/projects/snake/trigger/?which=commit&commit={bad}&benchmarks={bad}",
    "/projects/snake/experiments/",
    "/projects/snake/experiments/new/?base={bad}&head={bad}&case={bad}&toggle={bad}&metric={bad}",
    "/experiments/{experiment}/",
    "/experiments/{measuring}/status/",
    "/series/{series}/",
    "/runs/{run}/",
    "/runs/{run}/frames/",
    "/runs/{failed}/",
    "/runs/{active}/status/",
    "/regressions/",
    "/regressions/{regression}/",
    "/deliveries/",
    "/site/accounts/?q={bad}",
    "/site/accounts/{account}/",
    "/site/jobs/",
    "/audit/",
    "/machines/",
    "/machines/{machine}/",
    "/machines/{machine}/status/?seen=measuring",
)


def poison_site() -> dict[str, Any]:
    import random

    project = builders.create_project(branch="main")
    line = builders.create_commits(project, 3, subject=BAD)
    Commit.objects.update(author=BAD)
    case = builders.create_case(project, name=BAD)
    body = create_document(case, 0.001, random.Random(0))  # noqa: S311
    body["phases"][0]["path"] = body["profile"]["functions"][0]["function"] = BAD
    body["profile"]["functions"][0]["file"] = body["environment"]["os"] = body["harness"]["version"] = BAD
    body["environment"]["packages"] = body["environment"]["variables"] = {BAD: BAD}
    body["warnings"] = [{"code": "x", "message": BAD, "advice": BAD, "taints": False}]
    body["metrics"][-1]["phase"] = BAD
    body |= poisoned_members()
    body["profile"]["stacks"] = [{"stack": [BAD], "phase": BAD, "calls": 1.0, "self": 1e-3}]
    runs = [builders.create_measured_run(commit, case, 0.001, body=body) for commit in line]
    series = builders.headline_series(case)
    suspect = {**builders.SUSPECT, "function": BAD, "file": BAD, "phase": BAD}
    regression = builders.create_regression(series, line[0], line[1], phase=BAD[:200], suspects=[suspect])
    builders.create_delivery(regression, "failed", address=f"{BAD}@example.org")
    failed = builders.create_run(line[2], case, Run.State.FAILED, reason=BAD, quick=True)
    active = builders.create_run(line[1], case, Run.State.MEASURING, activity=BAD, quick=True)
    RunLog.objects.bulk_create(RunLog(run=run, text=BAD) for run in (failed, active))
    experiments = poison_experiments(line, case)
    machine = Machine.objects.get(name="bench-1")
    poisoned = dict.fromkeys(("cpu_model", "os", "kernel", "driver"), BAD) | {"gpus": [{"name": BAD}]}
    Machine.objects.update(fingerprint=poisoned, agent_version=BAD[:60])
    Run.objects.update(warning_codes=[BAD])
    Sentinel.objects.create(configuration=runs[0].configuration, machine=machine, commit=line[0])
    asked = Trigger.objects.create(
        project=project,
        source="hook",
        revisions={"commit": BAD},
        benchmarks=[BAD],
        detail=BAD,
        state="refused",
    )
    assert Regression.objects.get() == regression
    return {
        "series": series.pk, "run": runs[2].pk, "first": runs[0].pk, "failed": failed.pk, "active": active.pk,
        "trigger": asked.pk, "machine": machine.pk, "commit": line[1].hash, "account": poison_accounts(),
        "regression": regression.pk, **experiments,
    }  # fmt: skip


def poison_experiments(line: list[Commit], case: Case) -> dict[str, int]:
    """An ended and an active one, with all that comes from the code and from the machine."""
    function = {"function": BAD, "file": BAD, "line": 1, "phase": BAD, "cumulative": 1}
    profiles = {
        side: {"steps": 1, "functions": [{**function, "calls": calls, "self": 1}]}
        for side, calls in (("base", 1), ("head", 2))
    }
    texts: dict[str, Any] = {
        "profiles": profiles,
        "commands": [BAD],
        "reason": {"code": "side failed", "text": BAD},
        "activity": BAD,
        "phase": BAD,
        "head_configuration": create_toggled(case),
    }
    done = create_ended(line, **texts, verdict="untestable")
    measuring = create_ended(line, **texts, state="measuring", verdict="")
    ExperimentPair.objects.update(phases={BAD: [1, 2]})
    return {"experiment": done.pk, "measuring": measuring.pk}


def poison_accounts() -> int:
    """An account with what a provider may have said of a person, and a job that failed by what was read."""
    eve = User.objects.create_user(BAD, f"{BAD}@example.org")
    eve.groups.create(name=BAD)
    failed_jobs.note_failure(dispatch.JUDGE, (12,), KeyError(BAD))
    record_action(Visitor(eve), AuditAction.HISTORY_JUDGED)
    return eve.pk


def create_toggled(case: Case) -> Configuration:
    toggled = builders.create_case(case.project, name=f"other {BAD}")
    return Configuration.objects.create(case=toggled, version=1, pool=builders.get_pool())


def poisoned_members() -> dict[str, Any]:
    """What a document may hold beside the rest, with as much text of ours as fits."""
    document = complete_document()
    for row in document["scaling"]["points"]:
        row["phases"] = {BAD: row["seconds"]}
    document["scaling"] |= {"parameter": BAD, "params": {BAD: BAD}}
    document["scaling"]["exponents"][1]["phase"] = document["limits"][0]["phase"] = BAD
    document["processes"][0]["name"] = document["job"]["unit"] = BAD
    document["protocol"]["variables"] = {BAD: BAD}
    return {name: document[name] for name in ("scaling", "limits", "processes", "job", "protocol")}


def test_no_text_becomes_a_tag(signed_in: Client) -> None:
    ids = poison_site()
    for where in PAGES:
        shown = signed_in.get(where.format(**ids, bad=quote(BAD))).content.decode()
        assert "<script>alert" not in shown, where
        assert "alert(1)" in shown, where


def test_a_log_is_never_read_as_a_page(client: Client) -> None:
    project = builders.create_project()
    run = builders.create_run(builders.create_commits(project, 1)[0], builders.create_case(project))
    RunLog.objects.create(run=run, text=BAD)
    answer = client.get(f"/runs/{run.pk}/log/")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_what_is_between_backticks_is_code_and_nothing_else() -> None:
    assert quoted_code("a `<b>` & c") == "a <code>&lt;b&gt;</code> &amp; c"
