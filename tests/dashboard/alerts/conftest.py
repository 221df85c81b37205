from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_django import Settings
from pytest_django.plugin import DjangoDbBlocker

from dashboard.models import Channel, Delivery, Regression
from tests.dashboard import factories
from tests.dashboard.alerts.sinks import HttpSink, MailSink, serve_in_thread
from tests.dashboard.shared_rows import share_rows

OPERATION = {
    "operation": "aten::stack",
    "phase": "replay/sample",
    "count_before": 1.0,
    "count_after": 256.0,
    "seconds_before": 0.0001,
    "seconds_after": 0.0021,
    "share": 0.8,
}
SUSPECT = {
    "function": "ReplayBuffer.sample",
    "file": "replay.py",
    "line": 41,
    "phase": "replay/sample",
    "calls_before": 1.0,
    "calls_after": 1.0,
    "self_before": 0.0002,
    "self_after": 0.0004,
    "cumulative_before": 0.0012,
    "cumulative_after": 0.0041,
    "changed": True,
}


@pytest.fixture(scope="module")
def confirmed_regression(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    """Its key. No test of such a module commits: that takes a module that makes its own."""
    with share_rows(django_db_blocker, lambda: create_regression().pk) as made:
        yield made


@pytest.fixture
def regression(confirmed_regression: int, db: None) -> Regression:
    return Regression.objects.get(pk=confirmed_regression)


def create_regression() -> Regression:
    """Confirmed, of a new project."""
    project = factories.create_project()
    good, bad = factories.create_commits(project, 2)
    run = factories.store_measured_run(
        bad, factories.create_case(project, variant="optimized"), {"step_time": 0.0138}
    )
    return Regression.objects.create(
        project=project,
        first_bad=bad,
        last_good=good,
        series=factories.get_series(run, "step_time"),
        state=Regression.State.CONFIRMED,
        before=0.010,
        after=0.0138,
        ratio=1.38,
        low=1.35,
        high=1.41,
        phase="replay/sample",
        phase_share=0.92,
        place=Regression.Place.HOST_ALONE,
        suspects=[SUSPECT],
        operations=[OPERATION],
    )


@pytest.fixture
def make_delivery(regression: Regression, sent: list[object]) -> Callable[..., Delivery]:
    from dashboard import alerts

    def make(kind: str, address: str, **fields: Any) -> Delivery:
        Channel.objects.create(project=regression.project, kind=kind, address=address, **fields)
        alerts.announce_regression(regression)
        return Delivery.objects.get(channel__address=address)

    return make


@pytest.fixture
def receiver(settings: Settings) -> Iterator[HttpSink]:
    settings.PACELINE_ALLOW_INTERNAL_WEBHOOKS = True
    with HttpSink().open() as sink:
        yield sink


@pytest.fixture
def mailbox(settings: Settings) -> Iterator[MailSink]:
    sink = MailSink()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", sink.port, 5
    with serve_in_thread(sink):
        yield sink
