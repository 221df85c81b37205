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
from .claims import Claim
from .document import Document
from .fields import Scalar
from .trials import Bench, is_counted
from .units import format_count
from .watching.process import MeasurementError


@dataclass(frozen=True, slots=True)
class Group:
    """Claims that have one side in common."""

    shared: Mapping[str, Scalar]
    claims: tuple[Claim, ...]

    def other(self, claim: Claim) -> Mapping[str, Scalar]:
        """Return the side that is the claim's own."""
        before, after = _sides(claim)
        return after if case_key(before) == case_key(self.shared) else before


def measure(chosen: Sequence[Claim], bench: Bench) -> None:
    """Measure the claims about toggles together: the bench then knows what to judge each one by."""
    claims = [claim for claim in chosen if claim.toggle is not None and claim.before is not None]
    if any(claim.needs_cuda for claim in claims) and not bench.has_cuda():
        claims = [claim for claim in claims if not claim.needs_cuda]
    found = groups(claims)
    if found:
        bench.say(_estimate(found, bench))
    for group in found:
        _measure(group, bench)


def groups(claims: Sequence[Claim]) -> list[Group]:
    """Return the claims by the side that most of them share."""
    found: list[Group] = []
    left = list(claims)
    while left:
        frequent = Counter(place for claim in left for place in _places(claim)).most_common(1)[0][0]
        members = [claim for claim in left if frequent in _places(claim)]
        shared = next(side for side in _sides(members[0]) if case_key(side) == frequent[0])
        found.append(Group(shared, tuple(members)))
        left = [claim for claim in left if claim not in members]
    return found


def _sides(claim: Claim) -> tuple[Mapping[str, Scalar], Mapping[str, Scalar]]:
    return claim.before or {}, claim.after or {}


def _places(claim: Claim) -> list[tuple[str, int | None, int | None]]:
    """Return what tells each side from others: its case and the window."""
    return [(case_key(side), claim.warmup_steps, claim.steps) for side in _sides(claim)]


def _estimate(found: Sequence[Group], bench: Bench) -> str:
    """Take the time of one process that nobody looks at, and say how long all of them will take."""
    started = perf_counter()
    # One that fails does so again in its turn, where its reason is told.
    try:
        bench.measure(found[0].claims[0], found[0].shared, counts=False)
    except MeasurementError:
        return "how long it takes can't be said: the first process failed"
    one = perf_counter() - started
    timed = bench.pairs * sum(len(group.claims) + ceil(len(group.claims) / 2) for group in found)
    counting = sum(1 + sum(map(is_counted, group.claims)) for group in found)
    minutes = ceil(one * (timed + counting) / 60)
    return f"{timed} timed processes and {counting} that count: about {format_count(minutes, 'minute')}"


def _measure(group: Group, bench: Bench) -> None:
    pairs: dict[str, list[tuple[Document, Document]]] = {claim.key: [] for claim in group.claims}
    for at in range(bench.pairs):
        order = [claim for claim in group.claims if claim.key in pairs]
        if at % 2:
            order.reverse()
        bench.say(f"round {at + 1} of {bench.pairs}: {', '.join(str(claim.toggle) for claim in order)}")
        for start in range(0, len(order), 2):
            for key, pair in _beside(group, bench, order[start : start + 2]).items():
                if pair is None:
                    # It is asked for once more on its own, where the reason of its failure is told.
                    del pairs[key]
                else:
                    pairs[key].append(pair)
    for claim in group.claims:
        if pairs.get(claim.key):
            mine, shared = ([pair[side] for pair in pairs[claim.key]] for side in (0, 1))
            before = [mine, shared] if group.other(claim) is claim.before else [shared, mine]
            bench.known[bench.key(claim, _sides(claim))] = before


def _beside(
    group: Group, bench: Bench, claims: Sequence[Claim]
) -> dict[str, tuple[Document, Document] | None]:
    """Measure one or two claims' own sides with the shared one between them; None where a side failed."""
    first, *second = claims
    own = {first.key: _take(bench, first, group.other(first))}
    shared = _take(bench, first, group.shared)
    own |= {claim.key: _take(bench, claim, group.other(claim)) for claim in second}
    return {key: None if mine is None or shared is None else (mine, shared) for key, mine in own.items()}


def _take(bench: Bench, claim: Claim, params: Mapping[str, Scalar]) -> Document | None:
    try:
        return bench.take(claim, params)
    except MeasurementError:
        return None
