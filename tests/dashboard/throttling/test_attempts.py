"""Each failed attempt counts before it is looked at; delays double up to the longest."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from dashboard.models import Throttle
from dashboard.throttling.attempts import forget_attempts, forgive_attempt, reserve_attempt

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]


def try_again(longest: int = 900) -> int:
    return reserve_attempt("sign-in", "ada", free=3, longest=longest)


def pass_time(**spans: float) -> None:
    """So much later: all rows are as much older."""
    span = timedelta(**spans)
    Throttle.objects.update(started_at=F("started_at") - span, free_at=F("free_at") - span)


def test_the_first_attempts_cost_no_delay() -> None:
    assert [try_again() for _ in range(4)] == [0, 0, 0, 2]


def test_delays_double_up_to_the_longest() -> None:
    delays = []
    for _ in range(7):
        while (left := try_again(longest=20)) == 0:
            pass
        delays.append(left)
        pass_time(seconds=left)
    assert delays == [2, 4, 8, 16, 20, 20, 20]


def test_who_asks_within_the_delay_does_not_lengthen_it() -> None:
    for _ in range(3):
        try_again()
    assert [try_again() for _ in range(5)] == [2] * 5


def test_a_success_forgets_those_before() -> None:
    for _ in range(3):
        try_again()
    forget_attempts("sign-in", "ada")
    assert try_again() == 0
    assert Throttle.objects.get().count == 1


def test_a_success_that_is_forgiven_leaves_those_before() -> None:
    for _ in range(3):
        try_again()
    forgive_attempt("sign-in", "ada")
    assert (try_again(), try_again()) == (0, 2)


def test_a_day_without_an_attempt_forgets_all() -> None:
    for _ in range(3):
        try_again()
    pass_time(days=1, seconds=1)
    assert [try_again() for _ in range(3)] == [0, 0, 0]


def test_names_are_not_kept_in_plain() -> None:
    try_again()
    assert "ada" not in Throttle.objects.get().key
