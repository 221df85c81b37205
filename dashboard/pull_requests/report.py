"""What a check has to say, for its page, its comment, its command and the API: rows, causes, commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboard.experiments.bounds import GUARDED_KINDS, QUALITY, WORSE, BoundedDifference
from dashboard.experiments.counted_sides import uncertain_counters
from dashboard.experiments.paired_phases import paired_phases
from dashboard.measured_kinds import COUNTER
from dashboard.models import Check, CheckedCase, Experiment, Regression
from dashboard.pull_requests.answer import CaseEvaluation, moved_metrics
from dashboard.pull_requests.case_evaluation import evaluate_case
from dashboard.sentences.regressions.regressions import describe_function_change

# A phase or a function that has less of the difference isn't named as its cause.
LEAST_SHARE = 0.1
# A function in which so much of the largest difference lies holds it.
HELD_SHARE = 0.7
# What suspects explain. Of a time pairs tell its phases, and suspects what the head has changed in these:
# each side is profiled once, in which any function may take longer by chance.
TIME = "time"
EXPLAINED_KINDS = (TIME, *GUARDED_KINDS, COUNTER)
BUILT_IN = "(built-in)"  # the file of what Python itself and compiled code are made of
BODY = ("<module>",)
# Functions of a kind of metric.
MOST_SUSPECTS = 2


@dataclass(frozen=True, slots=True)
class Cause:
    """What a case's difference comes from: a phase with its share, or a function of changed calls.

    Or a suspect, as a regression keeps it, with the name of the metric that is worse.
    """

    case: str
    phase: str = ""
    share: float | None = None
    function: str = ""
    file: str = ""
    calls: tuple[float, float] = (0.0, 0.0)  # per step, of base and head
    metric: str = ""
    suspect: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One metric of one case."""

    case: str
    bounded: BoundedDifference
    experiment: int

    @property
    def differs(self) -> bool:
        """Surely, in either direction and by the floor or more."""
        return self.bounded.verdict == WORSE or self.bounded.is_better


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Rows: those that differ first, the worst before others. `control` is the base against itself."""

    check: Check
    rows: Sequence[CheckRow] = ()
    causes: Sequence[Cause] = ()
    commands: Sequence[str] = ()
    control: BoundedDifference | None = None
    # Pairs of the head and the merge base, and of the merge base and itself.
    pairs: int = 0
    control_pairs: int = 0
    # Of the head's: kept, and not weighed.
    disturbed: int = 0
    # Of all experiments: machines, and the part of the budget that is spent.
    machines: Sequence[str] = ()
    spent: float = 0.0
    # What a machine measures now, and what waits for one.
    measuring: Sequence[str] = ()
    waiting: Sequence[str] = ()
    # Of the cases that get more pairs, a metric of which isn't known yet whether it is worse.
    left: Mapping[str, str] = field(default_factory=dict)
    # What somebody ended before it was known.
    cancelled: bool = False
    # The counters that seem to differ in a case and were counted too seldom to be sure.
    uncertain_counters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # In these the base differs from itself: what is worse in them proves nothing.
    moved: frozenset[str] = frozenset()

    @property
    def differing(self) -> list[CheckRow]:
        return [row for row in self.shown if row.differs]

    @property
    def same(self) -> list[CheckRow]:
        return [row for row in self.shown if not row.differs]

    @property
    def shown(self) -> list[CheckRow]:
        """Without the counters that a sentence tells together."""
        unmoved = self.unmoved_counters
        return [row for row in self.rows if row.bounded.metric.name not in unmoved]

    @property
    def unmoved_counters(self) -> list[str]:
        """The names of those that are the same on both sides of each case that has them."""
        moved = {row.bounded.metric.name for row in self.rows if row.bounded.middle}
        counted = {row.bounded.metric.name for row in self.rows if row.bounded.is_counted}
        return sorted(counted - moved)

    @property
    def worst(self) -> CheckRow:
        """Of a check that is worse the row that says so: the largest, or what was published first."""
        proved = [row for row in self.rows if row.bounded.verdict == WORSE]
        counted = [row for row in proved if row.bounded.metric.name not in self.moved]
        answered = (self.check.reason.get("case"), self.check.reason.get("metric"))
        named = [row for row in self.rows if (row.case, row.bounded.metric.name) == answered]
        return next(iter(counted or named or self.rows))

    @property
    def learns_worse(self) -> bool:
        return any(row.bounded.metric.kind == QUALITY and row.bounded.verdict == WORSE for row in self.rows)


def read_report(check: Check) -> CheckReport:
    """As its experiments stand now."""
    rows: list[CheckRow] = []
    causes: list[Cause] = []
    left, uncertain = {}, {}
    related = check.cases.select_related(
        "configuration__case", "experiment__metric", "experiment__machine"
    ).prefetch_related("experiment__pairs")
    cases = list(related)
    evaluated = {row.pk: evaluate_case(row) for row in cases}
    control = next((evaluated[row.pk] for row in cases if row.is_control), None)
    moved = frozenset(bounded.metric.name for bounded in moved_metrics(control))
    wanted = [row for row in cases if not row.is_control]
    for row in wanted:
        # A counter that varies on the same code says nothing of the head's.
        measured = evaluated[row.pk].without_counters(moved)
        rows += [CheckRow(measured.case, bounded, row.experiment_id) for bounded in measured.all_bounded]
        causes += find_causes(row, measured)
        if not measured.ended:
            left[measured.case] = open_metric(row.experiment, measured)
        elif names := [name for name in uncertain_counters(row.experiment.profiles) if name not in moved]:
            uncertain[measured.case] = names
    experiments = [row.experiment for row in cases]
    return CheckReport(
        check,
        sorted(rows, key=_row_order),
        causes,
        next((row.experiment.commands for row in wanted if row.experiment.commands), ()),
        control.own if control else None,
        sum(len(row.experiment.pairs.all()) for row in wanted),
        sum(len(row.experiment.pairs.all()) for row in cases if row.is_control),
        sum(pair.disturbed for row in wanted for pair in row.experiment.pairs.all()),
        sorted({experiment.machine.name for experiment in experiments if experiment.machine}),
        min(1.0, sum(experiment.seconds for experiment in experiments) / (60 * check.minutes)),
        case_names(cases, Experiment.State.MEASURING),
        case_names(cases, Experiment.State.REQUESTED),
        left,
        any(experiment.state == Experiment.State.CANCELLED for experiment in experiments),
        uncertain,
        moved,
    )


def open_metric(experiment: Experiment, measured: CaseEvaluation) -> str:
    """What a case gets more pairs for: the metric that is judged, or once that is known what is learned."""
    waits = [bounded for bounded in measured.others if bounded.metric.kind == QUALITY]
    if measured.own is not None and measured.own.verdict:
        return next((each.metric.name for each in waits if not each.verdict), experiment.metric.name)
    return experiment.metric.name


def case_names(cases: Sequence[CheckedCase], state: Experiment.State) -> list[str]:
    """Those whose experiments are in this state."""
    named = [row for row in cases if row.experiment.state == state]
    return [
        "the merge base against itself" if row.is_control else str(row.configuration.case) for row in named
    ]


def _row_order(row: CheckRow) -> tuple[bool, bool, bool, float, str]:
    """What got worse, what got better, the rest; counters after what they explain; large before small."""
    bounded = row.bounded
    return (
        bounded.verdict != WORSE,
        not bounded.is_better,
        bounded.is_counted,
        -abs(bounded.middle),
        row.case,
    )


def find_causes(row: CheckedCase, measured: CaseEvaluation) -> list[Cause]:
    """The phases and functions that a case's differences come from; none where it has none."""
    own = measured.own
    suspects = suspected_causes(row.experiment, measured)
    if own is None or not (own.verdict == WORSE or own.is_better):
        return suspects
    timed = phase_causes(row.experiment, measured.case)
    # A changed function says the same, and that it was changed.
    if not any(cause.metric == own.metric.name for cause in suspects):
        timed += function_causes(row.experiment, measured.case)
    # What became faster is no reason to refuse it.
    return [*timed, *suspects] if own.verdict == WORSE else [*suspects, *timed]


def suspected_causes(experiment: Experiment, measured: CaseEvaluation) -> list[Cause]:
    """The changed functions that explain what is worse beside the time, of each kind of metric."""
    found: Mapping[str, Any] = experiment.profiles.get("suspects", {})
    worse = {bounded.metric.kind: bounded.metric.name for bounded in reversed(measured.worse)}
    return [
        Cause(measured.case, metric=worse[kind], suspect=suspect)
        for kind in EXPLAINED_KINDS
        if kind in worse
        for suspect in [row for row in found.get(kind, ()) if is_informative(row)][:MOST_SUSPECTS]
    ]


def is_informative(suspect: Mapping[str, Any]) -> bool:
    """Whether there is anything to say of it: nothing of one that is called a little more often."""
    return bool(suspect["changed"] or describe_function_change(suspect, ""))


def phase_causes(experiment: Experiment, case: str) -> list[Cause]:
    phases = paired_phases(experiment)
    whole = sum(phases.deltas.values()) if phases else 0.0
    if phases is None or not whole:
        return []
    shares = sorted(((delta / whole, phase) for phase, delta in phases.deltas.items()), reverse=True)
    # Others that got faster make it more than the whole.
    return [
        Cause(case, phase=phase, share=min(share, 1.0)) for share, phase in shares[:1] if share >= LEAST_SHARE
    ]


def function_causes(experiment: Experiment, case: str) -> list[Cause]:
    """The function of the code itself that has most of the difference, if it is called more or less often.

    By the time alone of two profiles any function may be the one.
    """
    profiles: Any = experiment.profiles
    if not all((profiles.get(side) or {}).get("functions") for side in ("base", "head")):
        return []
    before, after = (function_costs(profiles[side]["functions"]) for side in ("base", "head"))
    slower = 1 if (experiment.ratio or 1.0) > 1 else -1
    nothing = FunctionCost()
    moved = {
        name: slower * (after.get(name, nothing).seconds - before.get(name, nothing).seconds)
        for name in {**before, **after}
    }
    most = max(moved.values(), default=0.0)
    # Whoever calls it holds the difference as well: the innermost takes the least time of all that hold it.
    holding = [name for name in moved if most > 0 and moved[name] >= HELD_SHARE * most]
    holding.sort(key=lambda name: (max(cost_of(before, name), cost_of(after, name)), name))
    called = [(name, (before.get(name, nothing).calls, after.get(name, nothing).calls)) for name in holding]
    changed = [(name, calls) for name, calls in called if max(calls) >= Regression.MORE_CALLS * min(calls)]
    return [Cause(case, function=name[0], file=name[1], calls=calls) for name, calls in changed[:1]]


@dataclass(frozen=True, slots=True)
class FunctionCost:
    """Per step; the seconds are its own and those of what it calls."""

    calls: float = 0.0
    seconds: float = 0.0


def function_costs(functions: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], FunctionCost]:
    """By function and file, those of the language itself and the script's own body left out."""
    costs: dict[tuple[str, str], FunctionCost] = {}
    for row in functions:
        name = (str(row["function"]), str(row["file"]))
        if name[0] in BODY or name[1] == BUILT_IN:
            continue
        known = costs.get(name, FunctionCost())
        costs[name] = FunctionCost(known.calls + row["calls"], known.seconds + row["cumulative"])
    return costs


def cost_of(costs: Mapping[tuple[str, str], FunctionCost], name: tuple[str, str]) -> float:
    return costs[name].seconds if name in costs else 0.0
