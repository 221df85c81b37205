"""What a check answers: of what its experiments say of each case, and of the base against itself. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dashboard.experiments.bounds import NOT_WORSE, WORSE, BoundedDifference
from dashboard.measured_kinds import CLOCKED_KINDS

NOT_KNOWN = "not known"
# Codes of reasons: what is worse was proved while other things were measured; the base against itself moved.
PROVED, CONTROL_MOVED = "proved", "control moved"
# What a forge named as the tip of the target isn't in the repository: another history has replaced it.
BASE_GONE = "base is gone"


@dataclass(frozen=True, slots=True)
class CaseEvaluation:
    """What one case's pairs say: of the metric that is judged, and of memory, quality and counters beside it.

    `own` is None where no pair tells; `failure` says why a side doesn't run, empty where both do. `ended`: it
    gets no more pairs.
    """

    case: str
    own: BoundedDifference | None
    others: Sequence[BoundedDifference] = ()
    failure: str = ""
    ended: bool = True

    @property
    def all_bounded(self) -> list[BoundedDifference]:
        return [*([self.own] if self.own else []), *self.others]

    def without_counters(self, names: Collection[str]) -> CaseEvaluation:
        kept = [other for other in self.others if not (other.is_counted and other.metric.name in names)]
        return replace(self, others=kept)

    @property
    def worse(self) -> list[BoundedDifference]:
        return [bounded for bounded in self.all_bounded if bounded.verdict == WORSE]

    @property
    def verdict(self) -> str:
        if self.worse:
            return WORSE
        if self.own is None or self.failure:
            return NOT_KNOWN
        return NOT_WORSE if self.own.verdict == NOT_WORSE else NOT_KNOWN


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """worse, not worse or not known; why it isn't known, or what proved it early, as a code with values."""

    answer: str
    reason: dict[str, Any] = field(default_factory=dict)


def answer_check(cases: Sequence[CaseEvaluation], control: CaseEvaluation | None) -> CheckAnswer:
    """Worse is what is proved of one case; not worse takes all of them. All else isn't known, and no reason
    to refuse a pull request.

    A machine on which the base differs from itself by the floor proves nothing of the head: of that metric
    nothing worse, and where it is the step's time nothing good either. A counter that varies by itself is
    none that repeats exactly: it is left out.
    """
    moved = {bounded.metric.name: bounded for bounded in moved_metrics(control)}
    cases = [case.without_counters(moved) for case in cases]
    own = control.own if control else None
    doubt = moved.get(own.metric.name) if own else None
    reason = {"code": CONTROL_MOVED, "ratio": ratio_of(doubt)} if doubt else {}
    if prove_worse(cases, control):
        return CheckAnswer(WORSE, reason)
    if doubt:
        return CheckAnswer(NOT_KNOWN, reason)
    verdicts = [case.verdict for case in cases]
    if WORSE in verdicts:
        first = next(moved[bounded.metric.name] for case in cases for bounded in case.worse)
        return CheckAnswer(NOT_KNOWN, {"code": CONTROL_MOVED, "ratio": ratio_of(first)})
    if cases and all(verdict == NOT_WORSE for verdict in verdicts):
        return CheckAnswer(NOT_WORSE)
    failed = next((case for case in cases if case.failure), None)
    if failed is not None:
        return CheckAnswer(NOT_KNOWN, {"code": "side failed", "case": failed.case, "text": failed.failure})
    return CheckAnswer(NOT_KNOWN, {"code": "both answers possible", "visible": smallest_visible(cases)})


def prove_worse(cases: Sequence[CaseEvaluation], control: CaseEvaluation | None) -> CheckAnswer | None:
    """What is worse whatever is still to be measured; None while nothing is.

    Of a case that gets more pairs only what they can't take back. Times wait for the base against itself: it
    is for times that a machine may be too busy to tell.
    """
    moved = {bounded.metric.name for bounded in moved_metrics(control)}
    knows_pace = control is None or control.ended
    for case in cases:
        for bounded in case.worse:
            metric = bounded.metric
            if metric.name in moved or (metric.kind in CLOCKED_KINDS and not knows_pace):
                continue
            # More of a counter may still turn out to have bought a faster step.
            may_be_offset = bounded.is_counted and (case.own is None or case.own.may_be_better)
            if case.ended or (bounded.is_surely_worse and not may_be_offset):
                return CheckAnswer(WORSE, {"code": PROVED, "case": case.case, "metric": metric.name})
    return None


def moved_metrics(control: CaseEvaluation | None) -> list[BoundedDifference]:
    """Those in which the base differs from itself by the floor or more."""
    bounded = control.all_bounded if control else []
    return [each for each in bounded if each.verdict == WORSE or each.is_better]


def smallest_visible(cases: Sequence[CaseEvaluation]) -> float | None:
    """The part by which each open case would have had to be worse to be seen; the largest of them.

    None where nothing would have been.
    """
    widths = [case.own.smallest_visible if case.own else None for case in cases if case.verdict == NOT_KNOWN]
    known = [width for width in widths if width is not None]
    return math.expm1(max(known)) if known and len(known) == len(widths) else None


def ratio_of(bounded: BoundedDifference) -> float | None:
    """head / base, where values have ratios."""
    return math.exp(bounded.metric.worse * bounded.middle) if bounded.logarithmic else None
