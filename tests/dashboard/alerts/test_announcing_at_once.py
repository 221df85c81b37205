"""Two workers that announce the same regression at the same time tell it once."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from dashboard import alerts
from dashboard.models import Channel, Delivery
from tests.dashboard.alerts.conftest import create_regression


@pytest.mark.django_db(transaction=True)
def test_two_workers_announce_once() -> None:
    regression = create_regression()
    Channel.objects.create(project=regression.project, kind="email", address="a@example.org")
    start = threading.Barrier(2)

    def work() -> None:
        start.wait()
        alerts.announce_regression(regression)
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert Delivery.objects.count() == 1
