"""`paceline push` and `paceline check` as somebody's CI calls them: a served site, a real repository."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from pytest_django.live_server_helper import LiveServer

from dashboard import pull_requests
from dashboard.access import Visitor, make_token, revoke_token
from dashboard.models import ApiToken, Check, Project, Run
from dashboard.pull_requests import sentences
from dashboard.pull_requests.report import read_report
from tests.dashboard.access.conftest import create_member
from tests.dashboard.documents import encoded_document
from tests.pages.builders import create_commits
from tests.pages.check_builders import create_check, measure_case
from tests.workers import repositories
from tests.workers.conftest import Host
from tests.workers.host.execution.test_measured_checks import MANIFEST, SLOWER, TRAIN, short_control

__all__ = ["short_control"]
TINY = MANIFEST.replace("benchmarks.loop", "benchmarks.tiny") + "cases = [{ size = 1 }]\n"
CallCommand = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return repositories.create_repository(tmp_path / "source", {"paceline.toml": TINY, "train.py": TRAIN})


@pytest.fixture
def project(home: Path, checkout: Path, live_server: LiveServer, settings: LazySettings) -> Project:
    settings.PACELINE_RATES = {}
    # Other tests run beside it.
    return Project.objects.create(slug="demo", repository=str(checkout), check_floor=0.5)


@pytest.fixture
def token(project: Project) -> str:
    return make_token(Visitor(create_member("ada", "admin", project)), project, "ci", ("view", "operate"))[1]


@pytest.fixture
def start(project: Project, checkout: Path, live_server: LiveServer, token: str) -> Callable[..., Any]:
    def start_command(*words: str, **variables: str) -> subprocess.Popen[str]:
        known = {"PACELINE_SITE": live_server.url, "PACELINE_TOKEN": token, **variables}
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "paceline", *words],
            cwd=checkout,
            env={**os.environ, **known},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start_command


@pytest.fixture
def call(start: Callable[..., Any]) -> CallCommand:
    def call_command(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        process = start(*words, **variables)
        output, errors = process.communicate(timeout=100)
        return subprocess.CompletedProcess(words, process.returncode, output, errors)

    return call_command


def test_a_document_is_pushed_as_a_run(call: CallCommand, checkout: Path) -> None:
    (checkout / "document.json").write_bytes(encoded_document())
    done = [call("push", "document.json", "--machine", "runner") for _ in range(2)]
    run = Run.objects.get()
    assert [(each.returncode, each.stderr) for each in done] == [(0, ""), (0, "")]
    commit = repositories.head_commit(checkout)
    assert done[0].stdout == done[1].stdout
    assert done[0].stdout.startswith(f"tiny[size=1] at {commit[:10]}: ")
    assert done[0].stdout.strip().endswith(f"/runs/{run.pk}/")
    assert (run.origin, run.posted.machine, run.commit.hash) == ("posted", "runner", commit)


def test_what_cannot_be_pushed_is_said_in_one_sentence(call: CallCommand, checkout: Path) -> None:
    (checkout / "document.json").write_bytes(encoded_document())
    (checkout / "other.json").write_text("{}")
    for words, sentence in (
        (("push", "nowhere.json"), "nowhere.json: No such file or directory"),
        (("push", "other.json"), "other.json: "),
        (("push", "document.json", "--commit", "f" * 40), "document.json: commit: "),
        (("push", "document.json", "--machine", "A B"), "document.json: machine: 'A B' isn't 1 to 40"),
        (("push", "document.json", "--site", "ftp://x"), "--site: 'ftp://x' must be like https://"),
    ):
        done = call(*words)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"paceline: {sentence}"), done.stderr
        assert done.stderr.count("\n") == 1
    assert not Run.objects.exists()


def test_a_token_that_is_refused_is_never_shown(call: CallCommand, checkout: Path, token: str) -> None:
    (checkout / "document.json").write_bytes(encoded_document())
    revoke_token(Visitor(ApiToken.objects.get().made_by), ApiToken.objects.get())
    done = call("push", "document.json")
    assert done.returncode == 1
    assert "refuses the token: " in done.stderr
    assert token not in done.stderr
    assert call("check").returncode == 2


@pytest.mark.usefixtures("short_control")
def test_a_slower_head_fails_the_check_and_is_explained(
    call: CallCommand, start: Callable[..., Any], host: Host, checkout: Path
) -> None:
    repositories.run_git(checkout, "checkout", "--quiet", "-b", "feature")
    repositories.commit_files(checkout, {"train.py": SLOWER})
    process = start("check", "--base", "main", "--minutes", "6")
    while process.poll() is None:
        for check in Check.objects.filter(state="requested"):
            pull_requests.prepare_check(check.pk)
        if not host.execute_next():
            pull_requests.sweep_checks()
            time.sleep(0.2)
    output, errors = process.communicate()
    assert process.returncode == 1, output + errors
    base = repositories.run_git(checkout, "rev-parse", "main").strip()
    assert f"against {base[:10]}, its merge base with main\nWorse: step time +" in output
    assert re.search(r"^tiny\[size=1\] +step_time +\+\d+ %", output, re.MULTILINE)
    assert "/checks/" in errors
    again = call("check", "--base", "main", "--json")
    assert (again.returncode, json.loads(again.stdout)["answer"]) == (1, "worse")
    check = Check.objects.get()
    assert (check.state, check.answer, sentences.status_state(check)) == ("done", "worse", "failure")
    report = read_report(check)
    assert sentences.answer_headline(report).startswith("Worse: step time +")
    worst = report.rows[0].bounded
    assert worst.metric.name == "step_time"
    # Planted is a step of 42 ms for one of 10: the logarithm of their ratio is 1.4.
    assert worst.middle > 0.7
    assert report.causes[0].phase == "learn"
    calls = next(row.bounded for row in report.rows if row.bounded.metric.name == "function_calls")
    assert (calls.is_counted, calls.is_surely_worse) == (True, True)


def test_what_is_interrupted_is_cancelled(start: Callable[..., Any], project: Project) -> None:
    process = start("check", "--again")
    # Before it knows the check's address it has nothing to cancel.
    assert "/checks/" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 2
    assert "the check is cancelled" in process.stderr.read()
    assert Check.objects.get().state == "cancelled"


@pytest.mark.parametrize(
    ("answer", "ratio", "words", "status"),
    [("not worse", 1.001, (), 0), ("not known", 1.02, (), 0), ("not known", 1.02, ("--strict",), 3)],
)
def test_the_exit_status_says_how_it_ended(
    call: CallCommand,
    project: Project,
    checkout: Path,
    answer: str,
    ratio: float,
    words: tuple[str, ...],
    status: int,
) -> None:
    line = create_commits(project, 2)
    check = create_check(line, answer=answer, head_hash=repositories.head_commit(checkout))
    measure_case(check, line, ratio)
    done = call("check", *words)
    assert done.returncode == status
    assert done.stdout.splitlines()[-1].endswith(f"/checks/{check.pk}/")


def test_a_head_that_was_not_pushed_is_named(
    call: CallCommand, project: Project, checkout: Path, tmp_path: Path
) -> None:
    elsewhere = repositories.create_repository(
        tmp_path / "pushed", {"paceline.toml": TINY, "train.py": TRAIN}
    )
    Project.objects.update(repository=str(elsewhere))
    repositories.commit_files(checkout, {"train.py": SLOWER})
    done = call("check")
    assert done.returncode == 2
    assert done.stderr.endswith("Push it first: the site reads the repository.\n")
