"""Comparisons that share a side are measured in rounds, the shared side less often.

In a round the shared side stands between two others: off, on, off; off, on, off. So each is measured right
beside the one that it is weighed against. Every second round runs backwards: what drifts over one drifts the
other way over the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from time import perf_counter

from ..document import Document
from ..manifest.benchmarks import case_key
from ..units import format_count
from ..watching.measurement_errors import MeasurementError
from .bench import ClaimBench
from .claim import Claim, Comparison, Params


@dataclass(frozen=True, slots=True)
class RoundGroup:
    """Comparisons in one window that have one side in common."""

    shared: Params
    comparisons: tuple[Comparison, ...]

    def own_side(self, comparison: Comparison) -> Params:
        """Return the side that is the comparison's own."""
        before, after = comparison.cases
        return after if case_key(before) == case_key(self.shared) else before


def timed_comparisons(claims: Iterable[Claim]) -> list[Comparison]:
    """Return what has to be measured in pairs for the claims, each comparison once."""
    found: dict[str, Comparison] = {}
    for claim in claims:
        main = None if claim.is_counted else claim.main_comparison
        for comparison in (main, claim.equal_comparison):
            if comparison is not None and len(comparison.cases) == 2 and not comparison.sweeps:
                found.setdefault(comparison.key, comparison)
    return list(found.values())


def group_by_shared_case(comparisons: Sequence[Comparison]) -> list[RoundGroup]:
    """Return the comparisons by the side that most of them share."""
    groups: list[RoundGroup] = []
    left = list(comparisons)
    while left:
        frequent = Counter(key for comparison in left for key in _side_keys(comparison)).most_common(1)[0][0]
        members = [comparison for comparison in left if frequent in _side_keys(comparison)]
        shared = next(case for case in members[0].cases if case_key(case) == frequent[0])
        groups.append(RoundGroup(shared, tuple(members)))
        left = [comparison for comparison in left if comparison not in members]
    return groups


def estimate_duration(groups: Sequence[RoundGroup], bench: ClaimBench) -> str:
    """Time one process whose results are not used, and say how long all of them will take."""
    first = groups[0].comparisons[0]
    started = perf_counter()
    # A process that fails does so again in its turn, where its reason is reported.
    try:
        bench.measure_uncounted(first, groups[0].shared)
    except MeasurementError:
        return "how long it takes can't be said: the first process failed"
    duration = perf_counter() - started
    timed = sum(
        bench.rounds(group.comparisons[0]) * (len(group.comparisons) + ceil(len(group.comparisons) / 2))
        for group in groups
    )
    measured = {
        case_key(case) for group in groups for comparison in group.comparisons for case in comparison.cases
    }
    counting = len(measured & bench.cases_to_count)
    minutes = ceil(duration * (timed + counting) / 60)
    return f"{timed} timed processes and {counting} that count: about {format_count(minutes, 'minute')}"


def measure_group(group: RoundGroup, bench: ClaimBench) -> None:
    """Measure the group's comparisons and keep their documents with the bench.

    One of which a side fails is left out: it is asked for once more on its own, where the reason is reported.
    """
    pairs: dict[str, list[tuple[Document, Document]]] = {
        comparison.key: [] for comparison in group.comparisons
    }
    rounds = bench.rounds(group.comparisons[0])
    for number in range(rounds):
        order = [comparison for comparison in group.comparisons if comparison.key in pairs]
        if number % 2:
            order.reverse()
        names = "; ".join(case_key(group.own_side(comparison)) for comparison in order)
        bench.print_message(f"round {number + 1} of {rounds}: {case_key(group.shared)} beside {names}")
        for start in range(0, len(order), 2):
            for key, pair in _measure_beside_shared(group, bench, order[start : start + 2], number).items():
                if pair is None:
                    del pairs[key]
                else:
                    pairs[key].append(pair)
    for comparison in group.comparisons:
        if pairs.get(comparison.key):
            own, shared = ([pair[side] for pair in pairs[comparison.key]] for side in (0, 1))
            is_before = group.own_side(comparison) is comparison.cases[0]
            bench.keep(comparison, [own, shared] if is_before else [shared, own])


def _side_keys(comparison: Comparison) -> list[tuple[str, tuple[object, ...]]]:
    """Return what identifies each side: its case and the window."""
    return [(case_key(case), comparison.window) for case in comparison.cases]


def _measure_beside_shared(
    group: RoundGroup, bench: ClaimBench, comparisons: Sequence[Comparison], number: int
) -> dict[str, tuple[Document, Document] | None]:
    """Measure one or two own sides with the shared one between them; None where a side failed."""
    own_sides = [(comparison, group.own_side(comparison)) for comparison in comparisons]
    sides = [own_sides[0], (comparisons[0], group.shared), *own_sides[1:]]
    before, shared, *after = (
        None if isinstance(side, MeasurementError) else side for side in bench.measure_block(sides, number)
    )
    return {
        comparison.key: None if own is None or shared is None else (own, shared)
        for comparison, own in zip(comparisons, (before, *after), strict=True)
    }
