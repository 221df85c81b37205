"""Why a regression is there: code, a dependency, driver or system, the machine, the benchmark, or noise.

A proof holds the machine still: what it confirms the commits did, and what they touched says how. What it
refutes they didn't do: then what moved around them did, or nothing. `decide_cause` weighs facts alone and
reads nothing; docs/method/causes.md has the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dashboard.models import Regression
from dashboard.regressions.decision.facts import Evidence, ExperimentVerdict

Cause = Regression.Cause
State = Regression.State

# Of a step, at least this part must be seen in the sentinel or the calibration: then they explain it.
EXPLAINING_PART = 0.5
# A calibration loop wanders by itself.
CALIBRATION_FLOOR = 0.05
# Suspects that are looked at: the first may be a library's function that changed code calls.
MOST_SUSPECTS = 3
# As many of a list are kept as evidence.
MOST_KEPT = 20

# What differs between two sides: its name, and what it was before and after.
Difference = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class TouchedFiles:
    """The files of a commit range by what they can change; `known` is False where git can't tell.

    `definition`: how the benchmark is defined otherwise than before.
    """

    known: bool = False
    code: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    definition: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class SentinelMove:
    """How a machine's sentinel stood after a step to how it stood before; times as `2026-03-01 08:00`."""

    machine: str
    commit: str
    metric: str
    ratio: float
    low: float | None
    high: float | None
    after: str
    before: str
    moved: bool
    # Over 1 where it got worse, whichever way the metric goes.
    worse: float


@dataclass(frozen=True, slots=True)
class Confounders:
    """What moved beside the commits between the last run of the old level and the first of the new one."""

    system: tuple[Difference, ...] = ()
    software: tuple[Difference, ...] = ()
    machines: tuple[Difference, ...] = ()
    sentinel: SentinelMove | None = None
    # What the calibration loop took at the first bad commit to what it took at the last good one.
    calibration: float | None = None


@dataclass(frozen=True, slots=True)
class CauseFacts:
    """The evidence for each class of cause."""

    state: str
    # How many times worse, over 1 whichever way the metric goes; None from nothing to something.
    worse: float | None = None
    # Nothing but a limit of the manifest was crossed.
    limit_alone: bool = False
    # An exact counter stands for it.
    by_counter: bool = False
    # All its changes lie where the environment changed.
    environment_only: bool = False
    proof: ExperimentVerdict | None = None
    suspects: tuple[tuple[str, bool], ...] = ()  # place, and whether the commits changed it
    confounders: Confounders = field(default_factory=Confounders)
    touched: TouchedFiles = field(default_factory=TouchedFiles)


@dataclass(frozen=True, slots=True)
class CauseClass:
    """A cause class with its evidence, of which the first says what moved."""

    cause: str = ""
    evidence: tuple[Evidence, ...] = ()


def decide_cause(facts: CauseFacts) -> CauseClass:
    if facts.limit_alone:
        return CauseClass()
    if facts.environment_only and facts.proof is None:
        return cause_of_environment(facts)
    if facts.state == State.CONFIRMED:
        return cause_of_commits(facts)
    if facts.state in (State.REFUTED, State.UNDECIDED):
        return cause_beside_commits(facts)
    return CauseClass()


def cause_of_environment(facts: CauseFacts) -> CauseClass:
    """The environment changed at the very step, and no commit asked for it."""
    system, software = facts.confounders.system, facts.confounders.software
    if system:
        rest = (evidence_list("installed otherwise too", software),) if software else ()
        return CauseClass(
            Cause.SYSTEM, (evidence_list("system changed", system), *rest, *machine_evidence(facts))
        )
    installed = evidence_list("installed otherwise", software)
    return CauseClass(
        Cause.DEPENDENCY, (installed, Evidence.of("no commit asked for it"), *machine_evidence(facts))
    )


def cause_of_commits(facts: CauseFacts) -> CauseClass:
    """Confirmed: the commits did it. By what they changed: code, what is installed, or the benchmark."""
    touched, software, proof = facts.touched, facts.confounders.software, proof_evidence(facts)
    blamed = [place for place, changed in facts.suspects[:MOST_SUSPECTS] if changed]
    is_code_cleared = not touched.code or (bool(facts.suspects) and not blamed)
    if touched.definition and is_code_cleared:
        moved = evidence_list("definition changed", touched.definition)
        return CauseClass(Cause.DEFINITION, (moved, *other_code(touched), *proof))
    if touched.install and is_code_cleared and (software or not touched.code):
        found: tuple[Evidence, ...]
        if software:
            found = (
                evidence_list("installed otherwise", software),
                evidence_list("asked for in", touched.install),
            )
        else:
            found = (evidence_list("install files changed", touched.install),)
        return CauseClass(Cause.DEPENDENCY, (*found, *other_code(touched), *proof))
    first = Evidence.of("suspect changed", place=blamed[0]) if blamed else changed_code(touched)
    others = (evidence_list("installed otherwise too", software),) if software else ()
    redefined = (evidence_list("definition changed too", touched.definition),) if touched.definition else ()
    return CauseClass(Cause.CODE, (first, *proof, *others, *redefined, *machine_evidence(facts)))


def cause_beside_commits(facts: CauseFacts) -> CauseClass:
    """Refuted or undecided: what moved beside the commits is the cause; without any it was noise."""
    refuted, confounders = facts.state == State.REFUTED, facts.confounders
    proof, machine = proof_evidence(facts), machine_evidence(facts)
    if confounders.system:
        changed = evidence_list("system changed", confounders.system)
        return CauseClass(Cause.SYSTEM, (changed, *proof, *machine))
    moved, slower = moved_by(confounders.sentinel), calibration_ratio(confounders.calibration)
    if explains_step(moved, facts.worse) or explains_step(slower, facts.worse):
        return CauseClass(Cause.MACHINE, (*machine, *proof))
    if confounders.machines and refuted:
        other = evidence_list("other machine", confounders.machines)
        return CauseClass(Cause.MACHINE, (other, *proof, *machine))
    if refuted:
        return CauseClass(Cause.NOISE, (Evidence.of("no difference by pairs"), *proof, *machine))
    return CauseClass("", machine)


def moved_by(sentinel: SentinelMove | None) -> float | None:
    return sentinel.worse if sentinel and sentinel.moved else None


def calibration_ratio(calibration: float | None) -> float | None:
    """The calibration's ratio, where it is larger than what the loop wanders by itself."""
    if calibration is None or abs(math.log(calibration)) < math.log1p(CALIBRATION_FLOOR):
        return None
    return calibration


def explains_step(seen: float | None, step: float | None) -> bool:
    """True where at least half of a step for the worse is seen here too."""
    if seen is None or step is None or min(seen, step) <= 1:
        return False
    return math.log(seen) >= EXPLAINING_PART * math.log(step)


def proof_evidence(facts: CauseFacts) -> tuple[Evidence, ...]:
    if facts.by_counter:
        return (Evidence.of("exact counter"),)
    proof = facts.proof
    if proof is None or not proof.machine:
        return ()
    found, size = proof.by_phases, {}
    if found and facts.state == State.CONFIRMED:
        size = {"phases": found.phases, "phase": (found.ratio, found.low, found.high)}
    return (Evidence.of("experiment", machine=proof.machine, verdict=str(proof.verdict), **size),)


def machine_evidence(facts: CauseFacts) -> tuple[Evidence, ...]:
    """What the sentinel and the calibration loop say of the machine, moved or not."""
    evidence = []
    if moved := facts.confounders.sentinel:
        evidence.append(
            Evidence.of(
                "sentinel",
                machine=moved.machine,
                commit=moved.commit,
                metric=moved.metric,
                ratio=moved.ratio,
                low=moved.low,
                high=moved.high,
                after=moved.after,
                before=moved.before,
                moved=moved.moved,
            )
        )
    if (ratio := calibration_ratio(facts.confounders.calibration)) is not None:
        evidence.append(Evidence.of("calibration", ratio=ratio))
    return tuple(evidence)


def changed_code(touched: TouchedFiles) -> Evidence:
    if touched.code:
        return evidence_list("code changed", touched.code)
    return Evidence.of("commits changed it" if touched.known else "difference unreadable")


def other_code(touched: TouchedFiles) -> tuple[Evidence, ...]:
    return (Evidence.of("other code costs nothing" if touched.code else "no other code"),)


def evidence_list(code: str, found: tuple[Difference, ...] | tuple[str, ...]) -> Evidence:
    """Evidence that lists files, or differences of one side to the other; `count` is how many there are."""
    return Evidence.of(code, items=tuple(found[:MOST_KEPT]), count=len(found))
