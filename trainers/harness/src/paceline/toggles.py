"""Toggles, off against on: claims that share a side are measured in rounds, the side less often.

In a round the shared side stands between two others: off, on, off; off, on, off. So each is measured right
beside the one that it is weighed against. Every second round runs backwards: what drifts over one drifts the
other way over the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from time import perf_counter

from .benchmarks import case_key
from .claim_testing import ClaimBench, needs_counting
from .claims import Claim
from .document import Document
from .toml_table import Scalar
from .units import format_count
from .watching.process import MeasurementError


@dataclass(frozen=True, slots=True)
class ToggleGroup:
    """Claims that have one side in common."""

    shared: Mapping[str, Scalar]
    claims: tuple[Claim, ...]

    def own_side(self, claim: Claim) -> Mapping[str, Scalar]:
        """Return the side that is the claim's own."""
        before, after = _claim_sides(claim)
        return after if case_key(before) == case_key(self.shared) else before


def measure_toggles(chosen: Sequence[Claim], bench: ClaimBench) -> None:
    """Measure the claims about toggles together, and keep each one's documents with the bench."""
    claims = [claim for claim in chosen if claim.toggle is not None and claim.before is not None]
    if any(claim.needs_cuda for claim in claims) and not bench.has_cuda():
        claims = [claim for claim in claims if not claim.needs_cuda]
    groups = group_by_shared_case(claims)
    if groups:
        bench.print_message(_estimate_duration(groups, bench))
    for group in groups:
        _measure_group(group, bench)


def group_by_shared_case(claims: Sequence[Claim]) -> list[ToggleGroup]:
    """Return the claims by the side that most of them share."""
    groups: list[ToggleGroup] = []
    left = list(claims)
    while left:
        frequent = Counter(key for claim in left for key in _side_keys(claim)).most_common(1)[0][0]
        members = [claim for claim in left if frequent in _side_keys(claim)]
        shared = next(side for side in _claim_sides(members[0]) if case_key(side) == frequent[0])
        groups.append(ToggleGroup(shared, tuple(members)))
        left = [claim for claim in left if claim not in members]
    return groups


def _claim_sides(claim: Claim) -> tuple[Mapping[str, Scalar], Mapping[str, Scalar]]:
    return claim.before or {}, claim.after or {}


def _side_keys(claim: Claim) -> list[tuple[str, int | None, int | None]]:
    """Return what identifies each side: its case and the window."""
    return [(case_key(side), claim.warmup_steps, claim.steps) for side in _claim_sides(claim)]


def _estimate_duration(groups: Sequence[ToggleGroup], bench: ClaimBench) -> str:
    """Time one process whose results are not used, and say how long all of them will take."""
    started = perf_counter()
    # A process that fails does so again in its turn, where its reason is told.
    try:
        bench.measure_case(groups[0].claims[0], groups[0].shared, counts=False)
    except MeasurementError:
        return "how long it takes can't be said: the first process failed"
    duration = perf_counter() - started
    timed = bench.pairs * sum(len(group.claims) + ceil(len(group.claims) / 2) for group in groups)
    counting = sum(1 + sum(map(needs_counting, group.claims)) for group in groups)
    minutes = ceil(duration * (timed + counting) / 60)
    return f"{timed} timed processes and {counting} that count: about {format_count(minutes, 'minute')}"


def _measure_group(group: ToggleGroup, bench: ClaimBench) -> None:
    pairs: dict[str, list[tuple[Document, Document]]] = {claim.key: [] for claim in group.claims}
    for number in range(bench.pairs):
        order = [claim for claim in group.claims if claim.key in pairs]
        if number % 2:
            order.reverse()
        names = ", ".join(str(claim.toggle) for claim in order)
        bench.print_message(f"round {number + 1} of {bench.pairs}: {names}")
        for start in range(0, len(order), 2):
            for key, pair in _measure_beside_shared(group, bench, order[start : start + 2]).items():
                if pair is None:
                    # It is asked for once more on its own, where the reason of its failure is told.
                    del pairs[key]
                else:
                    pairs[key].append(pair)
    for claim in group.claims:
        if pairs.get(claim.key):
            own, shared = ([pair[side] for pair in pairs[claim.key]] for side in (0, 1))
            sides = [own, shared] if group.own_side(claim) is claim.before else [shared, own]
            bench.documents[bench.cache_key(claim, _claim_sides(claim))] = sides


def _measure_beside_shared(
    group: ToggleGroup, bench: ClaimBench, claims: Sequence[Claim]
) -> dict[str, tuple[Document, Document] | None]:
    """Measure one or two claims' own sides with the shared one between them; None where a side failed."""
    first, *second = claims
    own_sides = {first.key: _measure_or_none(bench, first, group.own_side(first))}
    shared = _measure_or_none(bench, first, group.shared)
    own_sides |= {claim.key: _measure_or_none(bench, claim, group.own_side(claim)) for claim in second}
    return {key: None if own is None or shared is None else (own, shared) for key, own in own_sides.items()}


def _measure_or_none(bench: ClaimBench, claim: Claim, params: Mapping[str, Scalar]) -> Document | None:
    try:
        return bench.measure_for_claim(claim, params)
    except MeasurementError:
        return None
