"""The whole way of a commit with real parts: git hook, web server, queue, workers, harness, mail, webhook."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from dashboard import alerts, hosts, runs
from dashboard.models import Delivery, Document, Regression, Run
from dashboard.projects.registration import NewProject, add_project
from dashboard.triggers.hook_installation import install_hooks
from tests.dashboard.alerts.sinks import HttpSink, MailSink, serve_in_thread
from tests.processes import running_agent, running_worker
from tests.workers import repositories
from tests.workers.scripts import UNDISTURBED
from tests.workers.waiting import wait_until

MANIFEST = """
[benchmarks.tiny]
version = 1
script = "train.py"
warmup_steps = 20
steps = 150
counting_steps = 20
countings = 2
repetitions = 2
"""
TRAIN = (
    UNDISTURBED
    + """
import paceline
from replay import sample

for _ in paceline.steps(range(10**9)):
    with paceline.phase("learn"):
        sum(range(20_000))
    with paceline.phase("sample"):
        sample(list(range(500)))
"""
)
GOOD = "def sample(memory):\n    return memory[:32]\n"
# Each transition is looked up on its own, among all.
BAD = "def sample(memory):\n    return [find(memory, one) for one in memory]\n\n\n"
BAD += "def find(memory, wanted):\n    return memory.index(wanted)\n"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mail() -> Iterator[MailSink]:
    sink = MailSink()
    with serve_in_thread(sink):
        yield sink


@pytest.fixture
def web() -> Iterator[HttpSink]:
    with HttpSink().open() as sink:
        yield sink


@pytest.fixture
def site(
    live_server: LiveServer,
    site_environment: dict[str, str],
    settings: Any,
    mail: MailSink,
    tmp_path: Path,
) -> Iterator[None]:
    """A web server, a service worker and a host."""
    settings.PACELINE_URL = live_server.url
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True
    environment = {
        **site_environment,
        "PACELINE_URL": live_server.url,
        "PACELINE_ALLOW_INTERNAL_WEBHOOKS": "true",
        "EMAIL_URL": f"smtp://127.0.0.1:{mail.port}",
    }
    with ExitStack() as stack:
        stack.enter_context(running_worker(environment, "service", "fetches", log=tmp_path / "service.log"))
        code = hosts.create_join_code(runs.pool_named("default"), "a test")
        stack.enter_context(
            running_agent(tmp_path / "host", live_server.url, code, log=tmp_path / "host.log")
        )
        yield


@pytest.mark.timeout(300)
def test_a_commit_that_slows_training_is_told(
    site: None, mail: MailSink, web: HttpSink, tmp_path: Path
) -> None:
    files = {"paceline.toml": MANIFEST, "train.py": TRAIN, "replay.py": GOOD}
    repository = repositories.create_repository(tmp_path / "training", files)
    project = add_project(NewProject("training", str(repository)))
    alerts.add_channel(project, "email", "team@example.org")
    channel, _ = alerts.add_channel(project, "webhook", web.url)
    install_hooks(project, repository)
    commits = [
        repositories.commit_files(
            repository, {"notes.txt": str(number)} | ({"replay.py": BAD} if number == 2 else {})
        )
        for number in range(4)
    ]

    wait_until(lambda: Run.objects.filter(judged_at__isnull=False).count() == len(commits), 200)
    assert Document.objects.count() == len(commits)
    wait_until(
        lambda: Regression.objects.filter(withdrawn_at=None, state="confirmed", proving=False).exists(), 90
    )
    regression = Regression.objects.get(withdrawn_at=None)
    assert (regression.first_bad.hash, regression.phase) == (commits[2], "sample")
    assert regression.suspects[0]["function"] in ("sample", "find")

    wait_until(lambda: Delivery.objects.filter(state="delivered").count() == 2)
    (message,) = mail.messages
    assert message["To"] == "team@example.org"
    assert commits[2][:7] in message.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    (request,) = web.requests
    assert json.loads(request.body)["regression"]["commit"]["hash"] == commits[2]
    assert is_signed(request.headers, request.body, channel.secret)


def is_signed(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """As a receiver checks it; docs/alerts.md says how."""
    timestamp, signature = headers["Paceline-Timestamp"], headers["Paceline-Signature"]
    wanted = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(signature, f"sha256={wanted}")
