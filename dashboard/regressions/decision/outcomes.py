"""What a decision says: what becomes of each regression, of the changes, and what is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dashboard.models import Regression as Row
from dashboard.regressions.decision.cause_class import CauseClass
from dashboard.regressions.decision.facts import Commit, Evidence, Regression, Series
from dashboard.regressions.decision.primary_change import Size
from dashboard.regressions.decision.requested_facts import Request, StepExplanation
from dashboard.regressions.decision.wanted_measurements import NextStep, ResidualCause, says_answered_often


@dataclass(frozen=True, slots=True)
class DecidedRow:
    """What a regression's row is to say. `explained` is None where its explanation stays as it is."""

    last_good: Commit
    first_bad: Commit
    series: Series
    size: Size
    state: str
    proving: bool
    recovered_by: int | None = None
    culprit: Commit | None = None
    bisection: Evidence | None = None
    cause: CauseClass = field(default_factory=CauseClass)
    decided_for: str = ""
    explained: StepExplanation | None = None
    explained_for: str = ""
    learning: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of one regression. `key` None: it opens; `decided` None: it is withdrawn.

    `changes` are those that it holds on the snapshot's branch, `limits` the crossed ones that it tells,
    `absorbed` the regressions that turned out to be it, `experiments` those of another one that turned out to
    speak of it. `opened`: it is new, or it came back. `announce`: nothing more is measured, its channels are
    notified now. `resized`: its size was another one, `ratio_before` (None: none was known).
    `announce_again`: it has grown by so much that all are notified, once more where they were before. `stop`:
    what is under way for it ends. `release_branches`: what it held on other branches is left to these.
    `intended_by_check`: of which somebody has said that its slowdown is intended. `withdrawal`: why it is
    withdrawn.
    """

    key: int | None
    decided: DecidedRow | None
    changes: tuple[int, ...] = ()
    limits: tuple[int, ...] = ()
    absorbed: tuple[int, ...] = ()
    experiments: tuple[int, ...] = ()
    next_step: NextStep = field(default_factory=NextStep)
    opened: bool = False
    resized: bool = False
    ratio_before: float | None = None
    announce_again: bool = False
    announce: bool = False
    stop: bool = False
    release_branches: bool = False
    intended_by_check: int | None = None
    withdrawal: str = Row.Withdrawal.NOT_FOUND


@dataclass(frozen=True, slots=True)
class BranchCause:
    """Changes whose cause came from another branch: the regression there, and the commit that repaired it
    here.

    `repair_known` is False where nobody has looked for one.
    """

    key: int
    changes: tuple[int, ...]
    recovered_by: int | None = None
    repair_known: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """All that follows from a snapshot; nothing where facts are `missing`.

    `released` are changes that no regression holds any more, `released_limits` crossed limits that the one
    which did tells of no more. `residuals` are what is left of steps: they become regressions of their own.
    """

    outcomes: tuple[Outcome, ...] = ()
    branch_causes: tuple[BranchCause, ...] = ()
    released: tuple[int, ...] = ()
    residuals: tuple[ResidualCause, ...] = ()
    missing: frozenset[Request[object]] = frozenset()
    released_limits: tuple[int, ...] = ()


def row_as_stored(regression: Regression, state: str, *, proving: bool) -> DecidedRow:
    """What its row says already, but for its state and whether it goes on being proved.

    What pairs left unknown was said of the state that it had.
    """
    outdated = says_answered_often(regression.bisection) and (proving or regression.state != state)
    return DecidedRow(
        last_good=regression.last_good,
        first_bad=regression.first_bad,
        series=regression.series,
        size=Size(
            regression.before,
            regression.after,
            regression.ratio,
            regression.low,
            regression.high,
            regression.paired_before,
        ),
        state=state,
        proving=proving,
        recovered_by=regression.recovered_by,
        culprit=regression.culprit,
        bisection=None if outdated else regression.bisection,
        cause=CauseClass(regression.cause, regression.cause_evidence),
        decided_for=regression.decided_for,
        explained_for=regression.explained_for,
        learning=regression.learning,
    )


def opens_at(outcome: Outcome, commit: Commit) -> bool:
    """True for a regression that is new, with this first bad commit."""
    decided = outcome.decided
    return outcome.key is None and decided is not None and decided.first_bad.pk == commit.pk


def as_decided(stored: Mapping[int, Regression], outcomes: Iterable[Outcome]) -> list[Regression]:
    """Regressions as they will stand once the outcomes are written."""
    rows = dict(stored)
    for outcome in outcomes:
        for key in outcome.absorbed:
            rows.pop(key, None)
        row, decided = rows.get(outcome.key or 0), outcome.decided
        if row is None:
            continue
        if decided is None:
            rows[row.pk] = replace(row, withdrawn=True)
        else:
            rows[row.pk] = replace(
                row,
                first_bad=decided.first_bad,
                last_good=decided.last_good,
                series=decided.series,
                withdrawn=False,
            )
    return [rows[key] for key in sorted(rows)]
