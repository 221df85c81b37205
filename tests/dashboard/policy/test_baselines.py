"""Which baseline the policy chooses for a branch, and how a value stands to it."""

from __future__ import annotations

import pytest

from dashboard.models import Metric
from dashboard.policy.baselines import MeasuredValue, compare_to_baseline, default_baseline
from dashboard.policy.effective import EffectivePolicy

STEP_TIME = Metric(name="step_time", better="lower")
CALM = [1.0, 1.001, 0.999, 1.0005, 0.9995, 1.0]


def measured_value(*samples: float) -> MeasuredValue:
    return MeasuredValue(sorted(samples)[len(samples) // 2], samples)


@pytest.mark.parametrize(
    ("branch", "baseline"),
    [
        ("main", "v1.2"),
        ("topic", "merge-base"),
        ("release/1", "v1.0"),
        ("long/one", "rolling"),
    ],
)
def test_the_policy_says_it_by_branch(branch: str, baseline: str) -> None:
    policy = EffectivePolicy(
        ("main",), pinned="v1.2", branch_baselines={"release/*": "v1.0", "long/*": "rolling"}
    )
    assert default_baseline(policy, branch, "main") == baseline


def test_without_a_policy_it_is_rolling_on_the_projects_branch() -> None:
    policy = EffectivePolicy(("main",))
    assert default_baseline(policy, "main", "main") == "rolling"
    assert default_baseline(policy, "topic", "main") == "merge-base"


def test_a_slower_point_is_told_with_an_interval() -> None:
    new = measured_value(1.2, 1.201, 1.199, 1.2, 1.202)
    found = compare_to_baseline(STEP_TIME, [measured_value(*CALM)], new, CALM, exact=False)
    assert found.verdict == "higher"
    assert found.low is not None
    assert found.low < 1.2 < found.high


def test_what_the_runs_of_one_commit_differ_by_is_no_difference() -> None:
    new = measured_value(1.02, 1.021, 1.019, 1.02, 1.0205)
    restless = [1.0, 1.05, 0.97, 1.04, 0.96, 1.03, 0.98, 1.05]
    assert compare_to_baseline(STEP_TIME, [measured_value(*CALM)], new, CALM, exact=False).verdict == "higher"
    assert compare_to_baseline(STEP_TIME, [measured_value(*CALM)], new, restless, exact=False).verdict == "~"


def test_of_few_repetitions_nothing_is_said() -> None:
    found = compare_to_baseline(STEP_TIME, [measured_value(1.0)], measured_value(2.0), CALM, exact=False)
    assert (found.ratio, found.verdict) == (pytest.approx(2), "?")


def test_what_repeats_exactly_needs_no_repetitions() -> None:
    calls = Metric(name="function_calls", better="lower")
    found = compare_to_baseline(calls, [measured_value(100.0)], measured_value(101.0), [], exact=True)
    assert (found.ratio, found.low, found.verdict) == (pytest.approx(1.01), None, "higher")
    assert (
        compare_to_baseline(calls, [measured_value(7.0)], measured_value(7.0), [], exact=True).verdict == "~"
    )
