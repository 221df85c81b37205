from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.models import F

from dashboard.models import Throttle
from dashboard.throttling.rates import DEFAULT_RATES, Rate, count_request, parse_rates

THREE = Rate(3, 60)


@pytest.mark.django_db
def test_a_window_holds_so_many_requests() -> None:
    assert [count_request(THREE, "pages", "ada") for _ in range(4)] == [0, 0, 0, 60]
    assert count_request(THREE, "pages", "bob") == count_request(THREE, "triggers", "ada") == 0


@pytest.mark.django_db
def test_the_next_window_begins_anew() -> None:
    for _ in range(4):
        count_request(THREE, "pages", "ada")
    Throttle.objects.update(free_at=F("free_at") - timedelta(seconds=61))
    assert [count_request(THREE, "pages", "ada") for _ in range(4)] == [0, 0, 0, 60]


@pytest.mark.django_db(transaction=True)
def test_requests_at_the_same_time_are_all_counted() -> None:
    def count_once(_: int) -> int:
        try:
            return count_request(THREE, "pages", "ada")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        allowed = [seconds for seconds in threads.map(count_once, range(24)) if seconds == 0]
    assert (len(allowed), Throttle.objects.get().count) == (3, 24)


def test_rates_are_read() -> None:
    rates = parse_rates("PACELINE_RATES", ["triggers=5/10s", " pages = off", "codes=2/h"], DEFAULT_RATES)
    assert rates["triggers"] == Rate(5, 10)
    assert rates["pages"] is None
    assert rates["codes"] == Rate(2, 3600)
    assert rates["experiments"] == Rate(30, 60)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("runs=3/min", "has 'runs=3/min'; it must be like"),
        ("pages", "has 'pages'; it must be like"),
        ("pages=3", "pages must be like 30/min"),
        ("pages=0/min", "pages must be like 30/min"),
        ("pages=3/0s", "pages must be like 30/min"),
    ],
)
def test_a_wrong_rate_is_one_sentence(word: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=sentence):
        parse_rates("PACELINE_RATES", [word], DEFAULT_RATES)
