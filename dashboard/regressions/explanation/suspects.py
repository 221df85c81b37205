"""Which functions are to blame: what grew between two profiles, crossed with what the commits changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.phases.paths import is_in_phase
from dashboard.regressions.explanation.changed_functions import MODULE, Function, TouchedFunctions

MOST_SUSPECTS = 10
SETUP = "(setup)"
UNATTRIBUTED = "(unattributed)"
BUILT_IN = "(built-in)"

Profile = Mapping[str, Any]
Key = tuple[str, str]

# How much each sign counts. A changed function is blamed for all that happens inside its calls, because a
# change moves time into what it calls; an unchanged suspect only for its own time, and less.
OWN_TIME = 0.25
CHANGED_SCORE = 0.1
IN_PHASE_SCORE = 0.1
# What other changed functions cost inside a changed function's calls is mostly theirs.
INSIDE_SCORE = 0.3
# Where no changed function is called: for the innermost one whose calls hold this part of the phase's growth.
HOLDER_SCORE = 0.4
HELD_SHARE = 0.6
# Counts know their phase: where it holds this part of them, what runs elsewhere has so much of its blame.
NEARLY_ALL = 0.9
ELSEWHERE_FACTOR = 0.1
# What counts less than this isn't worth a line.
LEAST_SCORE = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """One function of a profile, per step: calls, seconds."""

    line: int = 0
    calls: float = 0.0
    own: float = 0.0
    cumulative: float = 0.0
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A function before and after; `added` where the profile doesn't have it and the old code neither."""

    file: str
    name: str
    before: Row
    after: Row
    changed: bool
    added: bool = False

    def describe(self) -> dict[str, Any]:
        """As the regression keeps it: calls and seconds per step."""
        return {
            "function": self.name,
            "file": self.file,
            "line": self.after.line or self.before.line,
            "phase": self.after.phase or self.before.phase,
            "calls_before": self.before.calls,
            "calls_after": self.after.calls,
            "self_before": self.before.own,
            "self_after": self.after.own,
            "cumulative_before": self.before.cumulative,
            "cumulative_after": self.after.cumulative,
            "changed": self.changed,
        }


def rank_suspects(
    before: Profile | None,
    after: Profile | None,
    touched: TouchedFunctions,
    *,
    kind: str,
    phase: str,
    delta: float | None,
    share: float | None = None,
) -> list[dict[str, Any]]:
    """At most MOST_SUSPECTS suspects, likeliest first.

    `kind` is the metric's: time and rate, memory, counter, quality. `phase` is the one that explains
    most, and `share` how much of it, where known: counted work isn't done by what runs in another phase.
    `delta` is what the metric lost: seconds per step for time, calls per step for counters, None for what
    isn't one of a step; for memory and quality it isn't used. Where a side has no profile, all that is
    known is what the commits changed, and each suspect says so by `"profiled": False`.
    """
    profiled = before is not None and after is not None
    if not profiled:
        before = after = None
    suspects = pair_functions(before, after, touched)
    if kind == "memory":
        scored = [(blame_for_memory(suspect, phase), suspect) for suspect in suspects]
    elif kind == "quality":
        scored = [(blame_for_quality(suspect), suspect) for suspect in suspects]
    else:
        placed = phase if kind == "counter" and (share or 0.0) >= NEARLY_ALL else ""
        measure = calls_per_step if kind == "counter" else own_seconds
        scored = score_costs(suspects, measure, delta, phase, placed)
    scored = [pair for pair in scored if pair[0] >= LEAST_SCORE]
    scored.sort(key=lambda pair: (-pair[0], pair[1].file, pair[1].name))
    found = [suspect.describe() for _, suspect in scored[:MOST_SUSPECTS]]
    return found if profiled else [{**described, "profiled": False} for described in found]


def score_costs(
    suspects: Sequence[Suspect],
    measure: Callable[[Row], float],
    delta: float | None,
    phase: str,
    placed: str,
) -> list[tuple[float, Suspect]]:
    """How much each called function is to blame for what the metric lost, by `measure` of its calls.

    `placed`: the phase in which counted work was done, where it is known; what runs elsewhere didn't do it.
    """
    base = whole_growth(suspects, measure, delta)
    times = whole_growth(suspects, own_seconds, delta if measure is own_seconds else 0.0)
    new = own_growth([suspect for suspect in suspects if suspect.changed])
    holder = holder_of_growth(suspects, phase)
    scored = []
    for suspect in called_functions(suspects, placed):
        share, own_share = growth_of(suspect, measure) / base, new.get(suspect, 0.0) / times
        score = blame_for_cost(suspect, phase, share, own_share, times)
        if placed and is_called_elsewhere(suspect, placed):
            score *= ELSEWHERE_FACTOR
        scored.append((score + HOLDER_SCORE * (suspect is holder), suspect))
    return scored


def pair_functions(before: Profile | None, after: Profile | None, touched: TouchedFunctions) -> list[Suspect]:
    """Every function of the profile after, with itself before, and those that only the diff has."""
    old, new = rows_of_profile(before), rows_of_profile(after)
    found, seen = [], set()
    for (file, name), row in new.items():
        function = touched.find(file, name, row.line)
        seen.add(function)
        earlier = old.get(touched.before(function, file, name), Row())
        found.append(Suspect(file, name, earlier, row, bool(function and function.changed)))
    unseen = (function for function in touched.functions if function.changed and function not in seen)
    found.extend(
        Suspect(function.file, function.name, Row(), Row(line=function.line), True, function.added)
        for function in unseen
        if can_be_blamed(function)
    )
    return found


def called_functions(suspects: Sequence[Suspect], placed: str = "") -> Sequence[Suspect]:
    """Those that a step calls; all of them where no changed one is: a constant's new value calls nothing.

    Nor does the function that holds the loop: no step calls it. `placed`: the phase that a changed one has to
    be called in, where it is known.
    """
    found = [suspect for suspect in suspects if suspect.before.calls or suspect.after.calls]
    changed = [suspect for suspect in found if suspect.changed]
    is_known = any(not placed or is_suspect_in_phase(suspect, placed) for suspect in changed)
    return found if is_known else suspects


def can_be_blamed(function: Function) -> bool:
    """Statements outside all functions can't be called, but what they set can cost memory at the start."""
    return function.name == MODULE or "<locals>" not in function.name


def rows_of_profile(profile: Profile | None) -> dict[Key, Row]:
    """The functions by file and name; those that share both are one, with the phase of the most called."""
    rows: dict[Key, Row] = {}
    functions: Iterable[Mapping[str, Any]] = (profile or {}).get("functions") or ()
    for function in sorted(functions, key=lambda function: -float(function["calls"])):
        key = (function["file"], function["function"])
        known = rows.get(key, Row(line=function["line"], phase=function.get("phase") or ""))
        rows[key] = Row(
            line=known.line,
            calls=known.calls + function["calls"],
            own=known.own + function["self"],
            cumulative=known.cumulative + function["cumulative"],
            phase=known.phase,
        )
    return rows


def own_seconds(row: Row) -> float:
    return row.own


def calls_per_step(row: Row) -> float:
    return row.calls


def cumulative_seconds(row: Row) -> float:
    return row.cumulative


def growth_of(suspect: Suspect, measure: Callable[[Row], float]) -> float:
    return max(measure(suspect.after) - measure(suspect.before), 0.0)


def whole_growth(suspects: Iterable[Suspect], measure: Callable[[Row], float], delta: float | None) -> float:
    """What a function's growth is a share of: the profiles' whole, no less than the metric's own delta.

    Where that is unknown: all that grew, whatever fell beside it.
    """
    if delta is None:
        return max(sum(growth_of(suspect, measure) for suspect in suspects), 1e-12)
    total = sum(measure(suspect.after) - measure(suspect.before) for suspect in suspects)
    return max(total, delta, 1e-12)


def own_growth(changed: Sequence[Suspect]) -> dict[Suspect, float]:
    """Seconds per step that each changed function's calls cost more, without the changed ones inside them.

    Who calls whom isn't known: a function is taken to be inside those that take longer and whose phase holds
    its own.
    """
    own: dict[Suspect, float] = {}
    for outer in sorted(changed, key=lambda suspect: (suspect.after.cumulative, suspect.file, suspect.name)):
        within = sum(own[inner] for inner in own if is_in_phase(inner.after.phase, outer.after.phase))
        own[outer] = max(growth_of(outer, cumulative_seconds) - within, 0.0)
    return own


def holder_of_growth(suspects: Sequence[Suspect], phase: str) -> Suspect | None:
    """The innermost function in whose calls most of the growth is, where the diff names no called one itself.

    A constant's new value may make hundreds of small operations dearer: none of them says what is done more.
    Built-in functions do what they are called for.
    """
    changed = [suspect for suspect in suspects if suspect.changed]
    if not changed or any(suspect.after.calls for suspect in changed):
        return None
    inside = [
        suspect
        for suspect in suspects
        if suspect.file != BUILT_IN and (not phase or is_suspect_in_phase(suspect, phase))
    ]
    most = max((growth_of(suspect, cumulative_seconds) for suspect in inside), default=0.0)
    holding = [
        suspect for suspect in inside if growth_of(suspect, cumulative_seconds) >= HELD_SHARE * most > 0
    ]
    return min(
        holding, key=lambda suspect: (suspect.after.cumulative, suspect.file, suspect.name), default=None
    )


def blame_for_cost(suspect: Suspect, phase: str, share: float, new: float, times: float) -> float:
    """How much a function is to blame for lost time or for more calls.

    `share` of the growth is in its own body, `new` inside its calls but in no other changed function.
    """
    if suspect.name == MODULE and not suspect.after.calls:
        # A constant's new value: it costs nothing itself, and what it made dearer says more.
        return LEAST_SCORE
    if suspect.added:
        # New code that no step calls: rather a constant did it, such as which model is trained by default.
        return LEAST_SCORE
    fits = is_suspect_in_phase(suspect, phase)
    score = (OWN_TIME + IN_PHASE_SCORE * fits) * min(share, 1.0)
    if suspect.changed:
        inside = min(growth_of(suspect, cumulative_seconds) / times, 1.0)
        score += CHANGED_SCORE + IN_PHASE_SCORE * fits + INSIDE_SCORE * inside + min(new, 1.0)
    return score


def blame_for_memory(suspect: Suspect, phase: str) -> float:
    """How much a function is to blame for lost memory: changed ones, those of the phase first.

    What runs before the first step isn't in the profile, nor is a function that a step never calls.
    """
    if not suspect.changed:
        return 0.0
    unseen = suspect.after.calls == 0
    fits = unseen if phase == SETUP else is_suspect_in_phase(suspect, phase)
    if unseen and suspect.name == MODULE:
        return 0.5
    return (
        1.0
        + fits
        + 0.5 * (suspect.after.calls > suspect.before.calls)
        + 0.25 * (suspect.after.own > suspect.before.own)
    )


def blame_for_quality(suspect: Suspect) -> float:
    """How much a function is to blame for what is lost: changed ones, those that a step calls first.

    No time tells why less is learned.
    """
    if not suspect.changed:
        return 0.0
    return 1.0 + 0.5 * (suspect.after.calls > 0) + 0.25 * (suspect.after.calls != suspect.before.calls)


def is_called_elsewhere(suspect: Suspect, phase: str) -> bool:
    """True where most of the function's calls fall into another phase, which neither holds this one nor lies
    within it. What no step calls, and what has no phase, may be anywhere.
    """
    own = suspect.after.phase
    if not own or phase == UNATTRIBUTED:
        return bool(own)
    return not is_in_phase(own, phase) and not is_in_phase(phase, own)


def is_suspect_in_phase(suspect: Suspect, phase: str) -> bool:
    """True where most of the function's calls fall into the phase, or into one that is nested in it.

    What is outside all phases is done by functions without one, and by the one that holds the loop.
    """
    if phase == UNATTRIBUTED:
        return not suspect.after.phase
    return bool(phase) and is_in_phase(suspect.after.phase, phase)
