"""Exact counters of both sides: what differs is counted again, and matters as it does once it is merged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from paceline.metrics import describe_metric

from dashboard.experiments.bounds import NOT_WORSE, WORSE, BoundedDifference
from dashboard.experiments.counted_sides import (
    LEAST_COUNTINGS,
    bound_counters,
    join_profiles,
    wants_counting,
)
from dashboard.judged_counters import JUDGED_COUNTERS, READS
from dashboard.pull_requests.sentences import change_text
from dashboard.regressions.decision.facts import Metric
from dashboard.regressions.decision.series_kinds import may_open_regression
from dashboard.sentences.formatting.numbers import MINUS
from tests.dashboard.pull_requests.test_answer import FASTER, SAME
from tests.dashboard.regressions.decision.builders import make_change, make_series


def count_side(name: str = "function_calls", *samples: float, headline: bool = False) -> dict[str, Any]:
    """A counted repetition of one side."""
    counter = {"name": name, "unit": "calls/step", "better": "lower"}
    return {"counters": [{**counter, "headline": headline, "samples": list(samples)}]}


def count_both(base: float, head: float, name: str = "function_calls", **options: Any) -> dict[str, Any]:
    """As often as is believed."""
    documents = {
        side: count_side(name, value, value, **options) for side, value in (("base", base), ("head", head))
    }
    kept: dict[str, Any] = {}
    for _ in range(LEAST_COUNTINGS // 2):
        kept = join_profiles(kept, documents, with_counters=True)
    return kept


def bounded_by_name(
    profiles: dict[str, Any], own: BoundedDifference | None = None
) -> dict[str, BoundedDifference]:
    return {bounded.metric.name: bounded for bounded in bound_counters(profiles, own)}


def test_what_differs_is_counted_until_it_is_believed() -> None:
    documents = {"base": count_side("scalar_reads", 2, 2), "head": count_side("scalar_reads", 3, 3)}
    kept: dict[str, Any] = {}
    for known in (False, False, True):
        kept = join_profiles(kept, documents, with_counters=True)
        assert (wants_counting(kept, 0.1), bool(bounded_by_name(kept))) == (not known, known)
    assert bounded_by_name(kept)["scalar_reads"].is_surely_worse


@pytest.mark.parametrize(("spent", "again"), [(0.16, True), (0.17, False)])
def test_counting_leaves_half_of_the_time_to_pairs(spent: float, again: bool) -> None:
    """Two of six countings took it: the others would take twice as much."""
    documents = {"base": count_side("scalar_reads", 2, 2), "head": count_side("scalar_reads", 3, 3)}
    kept = join_profiles({}, documents, with_counters=True)
    assert wants_counting(kept, spent) is again
    assert not bounded_by_name(kept)


def test_a_difference_that_does_not_matter_is_counted_once() -> None:
    kept = join_profiles(
        {}, {"base": count_side("function_calls", 1000), "head": count_side("function_calls", 1010)},
        with_counters=True,
    )  # fmt: skip
    assert not wants_counting(kept, 0.0)
    calls = bounded_by_name(kept)["function_calls"]
    assert (calls.verdict, calls.middle) == (NOT_WORSE, pytest.approx(0.00995, abs=1e-5))


def test_what_is_the_same_is_counted_once() -> None:
    kept = join_profiles(
        {}, {side: count_side("graph_breaks", 1) for side in ("base", "head")}, with_counters=True
    )
    assert not wants_counting(kept, 0.0)
    assert bounded_by_name(kept)["graph_breaks"].verdict == NOT_WORSE


@pytest.mark.parametrize("again", [count_side("graph_breaks", 0, 2), count_side("recompilations", 2, 2), {}])
def test_what_does_not_repeat_tells_nothing(again: dict[str, Any]) -> None:
    base, head = count_side("graph_breaks", 0, 0), count_side("graph_breaks", 2, 2)
    kept = join_profiles({}, {"base": base, "head": head}, with_counters=True)
    assert wants_counting(kept, 0.0)
    kept = join_profiles(kept, {"base": base, "head": again}, with_counters=True)
    assert not wants_counting(kept, 0.0)
    assert not bounded_by_name(kept)


def test_the_functions_of_the_first_repetition_are_kept() -> None:
    first, second = ({"profile": {"functions": [{"function": name}], "stacks": [1]}} for name in "ab")
    kept = join_profiles({"suspects": {"memory": []}}, {"base": first, "head": {}}, with_counters=False)
    assert kept == {"suspects": {"memory": []}, "base": {"functions": [{"function": "a"}]}, "head": {}}
    assert join_profiles(kept, {"base": second, "head": {}}, with_counters=False) == kept


@pytest.mark.parametrize(("own", "verdict"), [(None, WORSE), (SAME, WORSE), (FASTER, NOT_WORSE)])
def test_more_calls_that_bought_a_faster_step_are_offset(own: BoundedDifference | None, verdict: str) -> None:
    bounded = bounded_by_name(count_both(100, 130), own)["function_calls"]
    assert (bounded.verdict, bounded.is_offset) == (verdict, verdict == NOT_WORSE)
    fewer = bounded_by_name(count_both(130, 100), own)["function_calls"]
    assert (fewer.is_better, fewer.is_offset) == (True, False)


@pytest.mark.parametrize("before", [0.4, 1.3, 3.1, 21.3])
def test_one_read_more_at_every_step_matters(before: float) -> None:
    """Also where its difference is a little less than 1, as numbers are kept."""
    assert bounded_by_name(count_both(before, (10 * before + 10) / 10, READS))[READS].verdict == WORSE


@pytest.mark.parametrize("headline", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        *JUDGED_COUNTERS,
        "count.episodes",
        "synchronisations:learn/push",
        "function_calls:learn",
        "scalar_reads:act",
    ],
)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (0, 0.5),
        (0, 1),
        (0.5, 2),
        (2, 2.5),
        (2, 3),
        (30, 31),
        (21.3, 22.3),
        (100, 104),
        (100, 106),
        (100, 90),
        (7, 7),
    ],
)
def test_a_check_calls_worse_what_opens_a_regression_once_merged(
    name: str, headline: bool, before: float, after: float
) -> None:
    series = make_series("function_calls")
    metric, _, phase = name.partition(":")
    series = replace(series, metric=Metric(metric, "counter", "lower"), phase=phase, headline=headline)
    ratio = after / before if before else None
    direction = "regression" if after > before else "improvement"
    change = replace(
        make_change(series, 5, 6, 1.0, before=before, after=after), ratio=ratio, direction=direction
    )
    bounded = bounded_by_name(count_both(before, after, name, headline=headline)).get(name)
    assert (bounded is not None and bounded.verdict == WORSE) == may_open_regression(change)


@pytest.mark.parametrize(
    ("name", "before", "after", "change"),
    [
        ("copied_bytes", 10**9, 10**9 + 4, "+4 B/step"),
        ("copied_bytes", 10**9, 10**9 - 4, f"{MINUS}4 B/step"),
        ("copied_bytes", 10**9, 1.1 * 10**9, "+10 %"),
        ("copied_bytes", 10**9, 10**9, "0 %"),
        ("scalar_reads", 2, 4, "+2 reads/step"),
        ("graph_breaks", 0, 1, "+1 breaks/step"),
    ],
)
def test_a_change_reads_as_none_only_where_there_is_none(
    name: str, before: float, after: float, change: str
) -> None:
    kept = count_both(before, after, name)
    for side in kept.values():
        side["counters"][name]["unit"] = describe_metric(name).unit
    assert change_text(bounded_by_name(kept)[name]) == change
