"""Why a regression is there: code, a dependency, driver or system, the machine, the benchmark, or noise.

A confirmation holds the machine still: what it confirms the commits did, and what they touched says how. What
it refutes they didn't do: then what moved around them did, or nothing. `decide` weighs facts alone and reads
nothing; docs/regressions.md has the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dashboard.models import Confirmation, Regression
from dashboard.regressions.installed import Touched
from dashboard.regressions.sentinels import Moved

Cause = Regression.Cause
State = Regression.State

# Of a step, at least this part must be seen in the sentinel or the calibration: then they explain it.
PART = 0.5
# A calibration loop wanders by itself.
CALIBRATION_FLOOR = 0.05
MOST_NAMED = 3
# Suspects that are looked at: the first may be a library's function that changed code calls.
LIKELIEST = 3


@dataclass(frozen=True, slots=True)
class Facts:
    """All that speaks for one cause or another."""

    state: str
    # How many times worse, over 1 whichever way the metric goes; None from nothing to something.
    worse: float | None = None
    # Does nothing but a limit of the manifest speak for it?
    limit_alone: bool = False
    # Does an exact counter speak for it?
    by_counter: bool = False
    # Do all its changes lie where the surroundings changed?
    innocent: bool = False
    proof: Confirmation | None = None
    # As `driver 550.1 -> 560.2`, between the two runs at the step.
    system: tuple[str, ...] = ()
    software: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    touched: Touched = Touched()  # noqa: RUF009 - frozen
    suspects: tuple[tuple[str, bool], ...] = ()  # place, and whether the commits changed it
    sentinel: Moved | None = None
    # What the calibration loop took at the first bad commit to what it took at the last good one.
    calibration: float | None = None


@dataclass(frozen=True, slots=True)
class Class:
    """A cause class with its evidence: sentences, of which the first says what moved."""

    cause: str
    evidence: tuple[str, ...]


def decide(facts: Facts) -> Class:
    if facts.limit_alone:
        return Class("", ())
    if facts.innocent and facts.proof is None:
        return around(facts)
    if facts.state == State.CONFIRMED:
        return of_commits(facts)
    if facts.state in (State.REFUTED, State.UNDECIDED):
        return not_of_commits(facts)
    return Class("", ())


def around(facts: Facts) -> Class:
    """The surroundings changed at the very step, and no commit asked for it."""
    if facts.system:
        rest = (listed("Installed otherwise too", facts.software),) if facts.software else ()
        return Class(
            Cause.SYSTEM, (listed("Changed between the two runs", facts.system), *rest, *machine_says(facts))
        )
    nobody = "No commit between them touched a file that says what is installed."
    return Class(
        Cause.DEPENDENCY, (listed("Installed otherwise", facts.software), nobody, *machine_says(facts))
    )


def of_commits(facts: Facts) -> Class:
    """Confirmed: the commits did it. By what they changed: code, what is installed, or the benchmark."""
    touched, proof = facts.touched, proved(facts)
    blamed = [place for place, changed in facts.suspects[:LIKELIEST] if changed]
    # Where code changed too, it is code unless no function that it touched costs more.
    spared = not touched.code or (bool(facts.suspects) and not blamed)
    if touched.definition and spared:
        sentence = listed("The manifest measures it otherwise", touched.definition)
        return Class(Cause.DEFINITION, (sentence, *code_says(facts), *proof))
    if touched.install and spared and (facts.software or not touched.code):
        what = facts.software or touched.install
        word = "Installed otherwise" if facts.software else "Changed what is installed"
        files = (listed("Asked for in", touched.install),) if facts.software else ()
        return Class(Cause.DEPENDENCY, (listed(word, what), *files, *code_says(facts), *proof))
    first = f"The commits changed the suspect {blamed[0]}." if blamed else code_first(touched)
    others = (listed("Installed otherwise too", facts.software),) if facts.software else ()
    redefined = (
        (listed("The manifest measures it otherwise too", touched.definition),) if touched.definition else ()
    )
    return Class(Cause.CODE, (first, *proof, *others, *redefined, *machine_says(facts)))


def not_of_commits(facts: Facts) -> Class:
    """Refuted or undecided: what moved beside the commits is the cause; without any it was noise."""
    refuted = facts.state == State.REFUTED
    proof = proved(facts)
    if facts.system:
        return Class(
            Cause.SYSTEM, (listed("Changed between the two runs", facts.system), *proof, *machine_says(facts))
        )
    if explains(moved_by(facts.sentinel), facts.worse) or explains(slower(facts.calibration), facts.worse):
        return Class(Cause.MACHINE, (*machine_says(facts), *proof))
    if facts.machines and refuted:
        first = listed("Measured on another machine of the pool", facts.machines)
        return Class(Cause.MACHINE, (first, *proof, *machine_says(facts)))
    if refuted:
        return Class(
            Cause.NOISE,
            ("Measured in turn, the two commits don't differ so much.", *proof, *machine_says(facts)),
        )
    return Class("", machine_says(facts))


def moved_by(sentinel: Moved | None) -> float | None:
    return sentinel.worse if sentinel and sentinel.moved else None


def slower(calibration: float | None) -> float | None:
    if calibration is None or abs(math.log(calibration)) < math.log1p(CALIBRATION_FLOOR):
        return None
    return calibration


def explains(found: float | None, step: float | None) -> bool:
    """Is at least half of a step for the worse seen here too?"""
    if found is None or step is None or min(found, step) <= 1:
        return False
    return math.log(found) >= PART * math.log(step)


def proved(facts: Facts) -> tuple[str, ...]:
    if facts.by_counter:
        return ("Exact counters say so, which no machine and no driver moves.",)
    row = facts.proof
    if row is None or row.machine is None:
        return ()
    said = {
        Confirmation.Verdict.CONFIRMED: "confirm it",
        Confirmation.Verdict.REFUTED: "refute it",
    }.get(Confirmation.Verdict(row.verdict), "don't decide it")
    return (f"Interleaved runs on {row.machine}, which stood still for both commits, {said}.",)


def machine_says(facts: Facts) -> tuple[str, ...]:
    """What the sentinel and the calibration loop say of the machine, moved or not."""
    said = []
    if facts.sentinel:
        said.append(sentinel_sentence(facts.sentinel))
    if (ratio := slower(facts.calibration)) is not None:
        took, was = ("longer", "slower") if ratio > 1 else ("less", "faster")
        said.append(
            f"Beside the first run that saw it a fixed piece of arithmetic took {100 * abs(ratio - 1):.0f} % "
            f"{took} than beside the last one before: the machine was {was}."
        )
    return tuple(said)


def sentinel_sentence(moved: Moved) -> str:
    """`The machine bench-1 moved: its sentinel a1b2c3d4e5, ..., had step time +12 % [10, 14] between ...`."""
    name, machine = moved.metric.replace("_", " "), moved.sentinel.machine
    when = f"between {moved.after:%Y-%m-%d %H:%M} and {moved.before:%Y-%m-%d %H:%M} UTC"
    size = f"{name} {percent(moved.ratio):+.1f} %"
    if moved.low is not None and moved.high is not None:
        size += f" [{percent(moved.low):.1f}, {percent(moved.high):.1f}]"
    pinned = f"its sentinel {moved.sentinel.commit.short}, always the same code,"
    if moved.moved:
        return f"The machine {machine} moved: {pinned} had {size} {when}."
    return f"The machine {machine} stood: {pinned} had {size} {when}."


def code_first(touched: Touched) -> str:
    if touched.code:
        return listed("The commits changed code", touched.code)
    return (
        "The commits changed it." if touched.known else "The commits did it; what they changed can't be read."
    )


def code_says(facts: Facts) -> tuple[str, ...]:
    if not facts.touched.code:
        return ("No other file of the commits is code.",)
    return ("They changed code too, but none of its functions costs more.",)


def listed(word: str, found: tuple[str, ...]) -> str:
    """`Installed otherwise: numpy 1.26 -> 2.0, torch 2.12 -> 2.13 and 4 more.`"""
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    # An arrow of one character isn't broken at a line's end.
    return f"{word}: {', '.join(found[:MOST_NAMED])}{more}.".replace(" -> ", " → ")


def percent(ratio: float) -> float:
    return 100 * (ratio - 1)
