from __future__ import annotations

from typing import Any

import pytest

from dashboard import alerts
from dashboard.alerts.rules import matches_pattern
from dashboard.models import AlertRule, Channel, Regression


@pytest.fixture
def channel(regression: Regression, sent: list[object]) -> Channel:
    return Channel.objects.create(project=regression.project, kind="email", address="team@example.org")


def is_told(channel: Channel, *rules: dict[str, Any]) -> bool:
    for position, rule in enumerate(rules):
        AlertRule.objects.create(channel=channel, position=position, **({"states": ["confirmed"]} | rule))
    return bool(alerts.announce_regression(Regression.objects.get()))


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({}, True),
        ({"case": "snake_*"}, True),
        ({"case": "snake_dqn[variant=opt*]"}, True),
        ({"case": "zelda*"}, False),
        ({"metric": "step_*"}, True),
        ({"metric": "*memory"}, False),
        ({"branch": "main"}, True),
        ({"branch": "release/*"}, False),
        ({"minimum_percent": 38.5}, False),
        ({"states": ["suspected"]}, False),
        ({"notifies": False}, False),
    ],
)
def test_a_rule_asks_for_each_of_its_conditions(channel: Channel, rule: dict[str, Any], told: bool) -> None:
    assert is_told(channel, rule) is told


@pytest.mark.parametrize("leave_out_first", [True, False])
def test_the_first_rule_that_is_met_decides(channel: Channel, leave_out_first: bool) -> None:
    rules: list[dict[str, Any]] = [{"case": "snake*", "notifies": False}, {}]
    assert is_told(channel, *(rules if leave_out_first else rules[::-1])) is not leave_out_first


def test_rules_take_the_place_of_the_channels_own_minimum(channel: Channel) -> None:
    Channel.objects.update(minimum_percent=90)
    assert is_told(channel) is False
    assert is_told(channel, {"minimum_percent": 10}) is True


def test_a_suspicion_goes_to_those_whose_rule_asks_for_it(channel: Channel) -> None:
    Regression.objects.update(state="suspected")
    assert is_told(channel, {"states": ["suspected", "confirmed"]}) is True


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "anything", True),
        ("a*c", "abc", True),
        ("a*a", "a", False),
        ("*b*d*", "abcde", True),
        ("*d*b*", "abcde", False),
        ("a[b]", "a[b]", True),
        ("*a" * 100, "a" * 400, True),
        ("*a" * 100 + "b", "a" * 400, False),
    ],
)
def test_a_star_stands_for_any_letters(pattern: str, text: str, expected: bool) -> None:
    assert matches_pattern(pattern, text) is expected
