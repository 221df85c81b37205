"""Exact counters of both sides of a bound: the repetitions that count functions tell them as well.

A counter that is the same in each process of one side, and another in each of the other's, proves a
difference without any pairs. What differs by enough to matter is counted again before it is believed; what
doesn't repeat tells nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dashboard.experiments.bounds import WORSE, BoundedDifference, MeasuredMetric
from dashboard.judged_counters import JUDGED_COUNTERS, LARGE_RATIO, READS, least_growth
from dashboard.measured_kinds import COUNTER

SIDES = ("base", "head")
# So many countings of each side, all of them alike, before a difference is believed. A counter that takes
# either of two values by chance is called worse once in 4,096 times, and as often better.
LEAST_COUNTINGS = 6
# Of an experiment's time: without the rest its pairs tell nothing of the step's.
COUNTING_SHARE = 0.5
# A smaller part of the whole reads as 0 %.
LEAST_SHOWN_CHANGE = 0.001

# Of one side, by name: the metric's `unit`, `better` and `headline`, and the `samples` of its countings.
Counters = Mapping[str, Mapping[str, Any]]


def counters_of_document(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Those that may matter; none of a side that has left no document."""
    kept = ("unit", "better", "headline", "samples")
    return {
        row["name"]: {name: row[name] for name in kept}
        for row in document.get("counters", ())
        if row["headline"] or row["name"] in JUDGED_COUNTERS
    }


def join_profiles(
    known: Mapping[str, Any], documents: Mapping[str, Mapping[str, Any]], *, with_counters: bool
) -> dict[str, Any]:
    """What is kept of counted repetitions: of each side the `functions` of its first, and its `counters`.

    `known`: what is kept of earlier ones, with what is known beside the sides.
    """
    joined = {}
    for side, document in documents.items():
        # Stacks are the larger part of a profile, and compared by nobody.
        functions = (document.get("profile") or {}).get("functions")
        counters = counters_of_document(document) if with_counters else {}
        if side in known:
            functions = known[side].get("functions")
            counters = join_counters(counters_of_side(known, side), counters)
        kept = {"functions": functions, "counters": counters}
        joined[side] = {name: value for name, value in kept.items() if value}
    return {**known, **joined}


def join_counters(known: Counters, counted: Counters) -> dict[str, dict[str, Any]]:
    """With the samples of another counting. What that doesn't have isn't known any more."""
    return {
        name: {**known[name], "samples": [*known[name]["samples"], *counter["samples"]]}
        for name, counter in counted.items()
        if name in known
    }


def wants_counting(profiles: Mapping[str, Any], spent: float) -> bool:
    """Whether a difference that matters, repeating on each side so far, is to be counted once more.

    `spent`: the share of the experiment's time that the countings took; where all of them would take more
    than COUNTING_SHARE there are no more.
    """
    uncertain = uncertain_counters(profiles)
    return any(
        spent * LEAST_COUNTINGS <= COUNTING_SHARE * fewest_countings(base, head)
        for name, base, head in repeating_counters(profiles)
        if name in uncertain
    )


def uncertain_counters(profiles: Mapping[str, Any]) -> list[str]:
    """The names of those that differ by as much as matters, and were counted too seldom to be believed."""
    return [
        name
        for name, base, head in repeating_counters(profiles)
        if fewest_countings(base, head) < LEAST_COUNTINGS and is_relevant(bound_counter(name, base, head))
    ]


def bound_counters(profiles: Mapping[str, Any], own: BoundedDifference | None) -> list[BoundedDifference]:
    """What the counters say, exactly; those that vary are left out, and relevant ones counted too seldom.

    `own`: what pairs say of the step's time. More calls that bought a faster step are nothing worse.
    """
    faster = own is not None and own.is_better
    uncertain = uncertain_counters(profiles)
    found = [
        bound_counter(name, base, head)
        for name, base, head in repeating_counters(profiles)
        if name not in uncertain
    ]
    return [replace(bounded, is_offset=faster and bounded.verdict == WORSE) for bounded in found]


def repeating_counters(profiles: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """The names, base and head of those that both sides have, and that repeat on each so far."""
    base, head = (counters_of_side(profiles, side) for side in SIDES)
    return [
        (name, base[name], head[name])
        for name in sorted(base.keys() & head.keys())
        if repeats_alike(base[name]) and repeats_alike(head[name])
    ]


def is_relevant(bounded: BoundedDifference) -> bool:
    """Whether it is worse, or better, by as much as matters."""
    return bounded.verdict == WORSE or bounded.is_better


def fewest_countings(base: Mapping[str, Any], head: Mapping[str, Any]) -> int:
    return min(len(side["samples"]) for side in (base, head))


def bound_counter(name: str, base: Mapping[str, Any], head: Mapping[str, Any]) -> BoundedDifference:
    """Of two sides that repeat: an interval without width, as a ratio where both counted any.

    As a difference where a ratio says less: of reads, and of what grows by next to nothing of itself.
    """
    metric = MeasuredMetric(name, head["unit"], head["better"], COUNTER)
    before, after = base["samples"][0], head["samples"][0]
    least = least_growth(name, before, headline=head["headline"]) or 0.0
    # How often the device is waited for says more than by how much more often.
    logarithmic = min(before, after) > 0 and name != READS
    if logarithmic and before != after and abs(math.log(after / before)) < LEAST_SHOWN_CHANGE:
        logarithmic = False
    moved = math.log(after / before) if logarithmic else after - before
    worse = metric.worse * moved
    floor = math.log1p(least / before) if logarithmic else least
    return BoundedDifference(metric, 0, logarithmic, floor, worse, worse, worse)


def largest_growth(profiles: Mapping[str, Any], name: str) -> float:
    """Up to how large a growth of a counter is as large as that of the head, as the logarithm of a ratio.

    Commits beside it move a ratio a little: by less than matters. Infinite from none to any.
    """
    before, after = (counters_of_side(profiles, side)[name]["samples"][0] for side in SIDES)
    return abs(math.log(after / before)) + math.log(LARGE_RATIO) if min(before, after) > 0 else math.inf


def counters_of_side(profiles: Mapping[str, Any], side: str) -> Counters:
    return (profiles.get(side) or {}).get("counters") or {}


def repeats_alike(counter: Mapping[str, Any]) -> bool:
    return len(set(counter["samples"])) == 1
