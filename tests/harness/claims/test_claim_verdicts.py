"""A claim holds where the interval lies within it, is refuted where it lies outside, and else not known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paceline.claims import Claim, Estimate
from paceline.claims.claims_file import parse_claims
from paceline.claims.readings import read_metric
from paceline.claims.verdicts import (
    HOLDS,
    LARGER,
    MEASURED,
    NOT_KNOWN,
    REFUTED,
    accepted_range,
    invert_ratio,
    judge_estimate,
)
from paceline.manifest.toml_table import ManifestError

Interval = tuple[float, float, float]


def ratio_claim(line: str = "value = [2]") -> Claim:
    return read_claim(f"before = {{}}\nafter = {{ fast = true }}\n{line}")


def read_claim(lines: str) -> Claim:
    text = f'document = "A plan"\n[[claims]]\nid = "one"\nclaim = "It is fast"\n{lines}'
    return parse_claims(text, "claims.toml").claims[0]


@pytest.mark.parametrize(
    ("line", "measured", "verdict"),
    [
        ("value = [2]", (2.0, 1.92, 2.08), "holds"),
        ("value = [2]", (2.5, 2.4, 2.6), "larger"),
        ("value = [2]", (1.5, 1.2, 2.05), "not known"),
        ("value = [2]", (2.0, 1.5, 2.6), "not known"),
        ("value = [2]", (1.3, 1.2, 1.4), "smaller"),
        ("value = [2]", (1.1, 0.9, 1.3), "smaller"),
        ("value = [2]", (1.01, 1.005, 1.015), "none"),
        ("value = [2]", (0.7, 0.6, 0.8), "opposite"),
        ("value = [2, 5]", (4.0, 3.0, 5.3), "holds"),
        ("value = [2]\ntolerance = 0", (2.0, 1.99, 2.01), "not known"),
        ("value = [2]\ntolerance = 0.5", (2.0, 1.55, 2.45), "holds"),
        # No difference never agrees with a gain, however small the gain that is claimed.
        ("value = [1.01]", (1.0, 1.0, 1.0), "none"),
        ("at_least = 2", (9.0, 8.0, 10.0), "holds"),
        ("at_least = 2", (2.0, 1.8, 2.2), "not known"),
        ("at_most = 2", (9.0, 8.0, 10.0), "larger"),
        ("", (1.5, 1.4, 1.6), "holds"),
        ("", (1.05, 0.99, 1.1), "not known"),
        ("", (1.0, 0.99, 1.01), "none"),
        ('direction = "same"\nvalue = [1.05]', (1.0, 0.97, 1.03), "holds"),
        ('direction = "same"\nvalue = [1.05]', (1.0, 0.9, 1.1), "not known"),
        ('direction = "same"\nvalue = [1.05]', (1.2, 1.1, 1.3), "larger"),
        ('direction = "same"\nvalue = [1.05]', (0.8, 0.7, 0.9), "opposite"),
        ('direction = "worse"\nvalue = [2]', (0.5, 0.49, 0.51), "holds"),
        ('direction = "worse"\nvalue = [2]', (1.5, 1.4, 1.6), "opposite"),
    ],
)
def test_a_ratio_is_judged_by_where_its_interval_lies(line: str, measured: Interval, verdict: str) -> None:
    assert judge_estimate(ratio_claim(line), Estimate(*measured)) == verdict


@pytest.mark.parametrize(
    ("line", "measured", "verdict"),
    [
        ("value = [768]", (768, 768, 768), "holds"),
        ("value = [768]", (700, 695, 710), "holds"),
        ("value = [768]", (700, 600, 800), "not known"),
        ("value = [768]", (500, 490, 510), "smaller"),
        ("at_most = 768", (900, 890, 910), "larger"),
        ("", (900, 890, 910), "measured"),
    ],
)
def test_a_value_is_judged_by_where_its_interval_lies(line: str, measured: Interval, verdict: str) -> None:
    assert judge_estimate(read_claim(f"case = {{}}\n{line}"), Estimate(*measured)) == verdict


@pytest.mark.parametrize(
    ("lines", "high"),
    [
        ('metric = "phase_share:learn"\nfactor = 100\nunit = "%"\nvalue = [10, 95]', 100),
        ('metric = "phase_share:learn"\nvalue = [0.95]', 1),
        ('metric = "phase_share:learn"\nvalue = [0.5]', 0.55),
        ('metric = "gpu_utilization"\nvalue = [98]', 100),
        # Of four threads.
        ('metric = "phase_share:collect"\nfactor = 100\nunit = "%"\nvalue = [380]', 418),
        ('metric = "cpu_utilization"\nvalue = [98]', 107.8),
        ('metric = "phase_share:learn"\nat_least = 0.95', math.inf),
    ],
)
def test_no_more_than_all_of_something_agrees(lines: str, high: float) -> None:
    accepted = accepted_range(read_claim(f"case = {{}}\n{lines}"))
    assert accepted is not None
    assert accepted.high == pytest.approx(high)


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        ((100.4, 99.8, 100.9), HOLDS),
        ((100.4, 100.2, 100.9), HOLDS),
        ((104, 103, 105), LARGER),
        ((101, 99, 105), NOT_KNOWN),
        ((80, 70, 100.4), NOT_KNOWN),
    ],
)
def test_phases_that_add_up_to_a_little_more_than_the_step_are_all_of_it(
    measured: Interval, verdict: str
) -> None:
    """Medians of parts don't add up to that of the whole."""
    claim = read_claim(
        'case = {}\nmetric = "phase_share:collect+learn"\nfactor = 100\nunit = "%"\nvalue = [90, 100]'
    )
    assert judge_estimate(claim, Estimate(*measured)) == verdict


positive = st.floats(1e-3, 1e3)
bounds = st.lists(positive, min_size=2, max_size=2).map(sorted)
intervals = st.lists(positive, min_size=3, max_size=3).map(sorted)
claims = st.one_of(
    st.builds(
        lambda ends, direction: Claim("one", "", *ends, direction=direction, before={}, after={"a": 1}),
        bounds,
        st.sampled_from(["better", "worse"]),
    ),
    st.builds(lambda ends: Claim("one", "", *ends, after={}), bounds),
    st.builds(lambda low: Claim("one", "", low, None, before={}, after={"a": 1}), positive),
    st.just(Claim("one", "", None, None, before={}, after={"a": 1})),
)


@given(claims, intervals)
def test_a_verdict_is_sure_of_the_whole_interval(claim: Claim, ends: list[float]) -> None:
    low, value, high = ends
    measured = Estimate(value, low, high)
    verdict, accepted = judge_estimate(claim, measured), accepted_range(claim)
    assert accepted is not None
    effect = invert_ratio(measured) if claim.direction == "worse" else measured
    inside = accepted.low <= effect.low and effect.high <= accepted.high
    outside = effect.high < accepted.low or effect.low > accepted.high
    assert (verdict == HOLDS) == inside
    assert (verdict in REFUTED) == outside
    assert (verdict == NOT_KNOWN) == (not inside and not outside)
    assert verdict != MEASURED


@given(claims, intervals, st.floats(0, 1))
def test_a_narrower_interval_never_contradicts_a_wider_one(
    claim: Claim, ends: list[float], part: float
) -> None:
    low, value, high = ends
    wide = judge_estimate(claim, Estimate(value, low, high))
    narrow = judge_estimate(
        claim, Estimate(value, value - part * (value - low), value + part * (high - value))
    )
    if wide != NOT_KNOWN:
        assert (narrow == HOLDS, narrow in REFUTED) == (wide == HOLDS, wide in REFUTED)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("value = [2]\nat_least = 2", "claims[0].at_least: says the same as value, write one of them"),
        ("at_least = 1\nat_most = 2", "claims[0].at_most: and at_least are a range, write value"),
        ("at_least = -1", "claims[0].at_least: is -1, a ratio must be above 0"),
        ("value = [2]\ntolerance = 1", "claims[0].tolerance: is 1, must be a part from 0 to below 1"),
        ("tolerance = 0.1", "claims[0].tolerance: needs a value that it is a part of"),
        ("value = [2]\ntolerence = 0.1", "claims[0].tolerence: is unknown"),
        ('metric = "phase_time:a+"', "claims[0].metric: phase_time needs phases, write phase_time:PHASE"),
        (
            'metric = "phase_memory:a+b"',
            "claims[0].metric: phase_memory of several phases has no sum, write one phase",
        ),
    ],
)
def test_a_wrong_bound_gets_one_sentence(lines: str, sentence: str) -> None:
    with pytest.raises(ManifestError) as raised:
        ratio_claim(lines)
    assert sentence in str(raised.value)


def test_sums_shares_and_calls_are_read_from_single_readings() -> None:
    values = {
        ("step_time", None): 10.0,
        ("phase_time", "act"): 2.0,
        ("phase_time", "env"): 3.0,
        ("function_calls", None): 50.0,
        ("function_calls", "act"): 7.0,
        ("count.episodes", None): 5.0,
    }

    def read(spelling: str) -> float | None:
        return read_metric(spelling, lambda name, phase: values.get((name, phase)))

    assert read("phase_time:act+env") == 5
    assert read("phase_share:act+env") == 0.5
    assert read("phase_share:act+gone") is None
    # A phase that calls nothing has no counter of its own.
    assert read("function_calls:act+env") == 7
    assert read("seconds_per.episodes") == 2
    assert read("throughput") is None
