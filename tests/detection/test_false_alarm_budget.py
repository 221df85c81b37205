"""The budget of false alerts per 100 commits."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.detection.false_alarm_budget import FalseAlarmBudget, reject_by_holm


def count_false_alerts(budget, rng, commits, series=6, power=1.0, checked=False):
    """False alerts of commits that change nothing; p-values are uniform, or worse with a `power` above 1."""
    false = 0
    for _ in range(commits):
        p_values = {str(i): float(p) for i, p in enumerate(rng.random(series) ** power)}
        decision, budget = budget.decide(p_values)
        if decision.raised:
            false += 1
            budget = budget.after_refutation() if checked else budget
    return false


def test_valid_p_values_cost_what_the_budget_allows():
    false = count_false_alerts(FalseAlarmBudget(per_100_commits=5), np.random.default_rng(1), 10_000)
    assert 420 <= false <= 520


def test_invalid_p_values_cost_it_too_once_alerts_are_checked():
    unchecked = count_false_alerts(
        FalseAlarmBudget(per_100_commits=5), np.random.default_rng(1), 4_000, power=4
    )
    checked = count_false_alerts(
        FalseAlarmBudget(per_100_commits=5), np.random.default_rng(1), 4_000, power=4, checked=True
    )
    assert unchecked > 1_000
    assert checked <= 0.05 * 4_000 + 20


def test_the_same_series_twice_is_one_alert():
    decision, _ = FalseAlarmBudget(per_100_commits=10).decide({"time": 0.01, "rate": 0.01, "memory": 0.9})
    assert decision.raised == ("rate", "time")


def test_more_series_share_one_risk():
    budget = FalseAlarmBudget(per_100_commits=10)
    alone, _ = budget.decide({"time": 0.06})
    among, _ = budget.decide({"time": 0.06, "memory": 0.5})
    assert (alone.raised, among.raised) == (("time",), ())


def test_series_that_cannot_tell_take_no_part():
    decision, _ = FalseAlarmBudget(per_100_commits=10).decide({"time": 0.05, "young": 1.0, "younger": 1.0})
    assert decision.raised == ("time",)


def test_an_alert_earns_a_reward_that_decays():
    budget = FalseAlarmBudget(per_100_commits=1, reward=0.1)
    _, after = budget.decide({"time": 0.0})
    assert after.risk == pytest.approx(0.02)
    for _ in range(100):
        _, after = after.decide({})
    assert after.risk == pytest.approx(0.01, rel=1e-3)


def test_a_refuted_alert_is_paid_back_by_quiet_commits():
    budget = FalseAlarmBudget(per_100_commits=2).after_refutation()
    assert budget.risk < 0.02 / 2
    for _ in range(50):
        _, budget = budget.decide({})
    assert budget.risk == pytest.approx(0.02)


def test_holm_asks_less_of_the_next_one():
    assert reject_by_holm({"a": 0.01, "b": 0.02, "c": 0.5}, 0.04) == ("a", "b")
    assert reject_by_holm({"a": 0.02, "b": 0.02, "c": 0.5}, 0.04) == ()


@pytest.mark.parametrize(
    ("settings", "named"), [({"per_100_commits": 0}, "per_100_commits"), ({"reward": 1}, "reward")]
)
def test_settings_without_meaning_are_refused(settings, named):
    with pytest.raises(ValueError, match=named):
        FalseAlarmBudget(**settings)


def test_a_p_value_that_is_none_is_refused():
    with pytest.raises(ValueError, match="p-value of time"):
        FalseAlarmBudget().decide({"time": 1.5})
