"""Which functions are to blame: what grew between two profiles, crossed with what the commits changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.regressions.phases import holds
from dashboard.regressions.touched import MODULE, Function, Touched

MOST = 10
SETUP = "(setup)"
BUILT_IN = "(built-in)"

Profile = Mapping[str, Any]
Key = tuple[str, str]

# How much each sign counts. A changed function is blamed for all that happens inside its calls, because a
# change moves time into what it calls; an unchanged one only for its own time, and less.
OWN_TIME = 0.25
CHANGED = 0.1
IN_PHASE = 0.1
# What other changed functions cost inside a changed function's calls is mostly theirs.
INSIDE = 0.3
# Where no changed function is called: for the innermost one whose calls hold this part of the phase's growth.
HOLDER = 0.4
HELD = 0.6
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
    """A function before and after."""

    file: str
    name: str
    before: Row
    after: Row
    changed: bool

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


def rank(
    before: Profile | None,
    after: Profile | None,
    touched: Touched,
    *,
    kind: str,
    phase: str,
    delta: float | None,
) -> list[dict[str, Any]]:
    """At most MOST suspects, likeliest first.

    `kind` is the metric's: time and rate, memory, counter. `phase` is the one that explains most. `delta` is
    what the metric lost: seconds per step for time, calls per step for counters, None for what isn't one of a
    step; for memory it isn't used.
    """
    suspects = paired(before, after, touched)
    if kind == "memory":
        scored = [(by_memory(one, phase), one) for one in suspects]
    else:
        measure = calls_of if kind == "counter" else own_of
        base = whole(suspects, measure, delta)
        times = whole(suspects, own_of, delta if measure is own_of else 0.0)
        new = own_growth([one for one in suspects if one.changed])
        holder = holder_of(suspects, phase)
        scored = [
            (
                by_cost(one, phase, grown(one, measure) / base, new.get(one, 0.0) / times, times)
                + HOLDER * (one is holder),
                one,
            )
            for one in called(suspects)
        ]
    scored = [pair for pair in scored if pair[0] >= LEAST_SCORE]
    scored.sort(key=lambda pair: (-pair[0], pair[1].file, pair[1].name))
    return [one.describe() for _, one in scored[:MOST]]


def paired(before: Profile | None, after: Profile | None, touched: Touched) -> list[Suspect]:
    """Every function of the profile after, with itself before, and those that only the diff has."""
    old, new = rows_of(before), rows_of(after)
    found, seen = [], set()
    for (file, name), row in new.items():
        function = touched.find(file, name, row.line)
        seen.add(function)
        earlier = old.get(touched.before(function, file, name), Row())
        found.append(Suspect(file, name, earlier, row, bool(function and function.changed)))
    unseen = (one for one in touched.functions if one.changed and one not in seen)
    found.extend(Suspect(one.file, one.name, Row(), Row(line=one.line), True) for one in unseen if named(one))
    return found


def called(suspects: Sequence[Suspect]) -> Sequence[Suspect]:
    """Those that a step calls; all of them where no changed one is: a constant's new value calls nothing."""
    found = [one for one in suspects if one.before.calls or one.after.calls]
    return found if any(one.changed for one in found) else suspects


def named(function: Function) -> bool:
    """Statements outside all functions can't be called, but what they set can cost memory at the start."""
    return function.name == MODULE or "<locals>" not in function.name


def rows_of(profile: Profile | None) -> dict[Key, Row]:
    """The functions by file and name; those that share both are one, with the phase of the most called."""
    rows: dict[Key, Row] = {}
    functions: Iterable[Mapping[str, Any]] = (profile or {}).get("functions") or ()
    for one in sorted(functions, key=lambda one: -float(one["calls"])):
        key = (one["file"], one["function"])
        known = rows.get(key, Row(line=one["line"], phase=one.get("phase") or ""))
        rows[key] = Row(
            line=known.line,
            calls=known.calls + one["calls"],
            own=known.own + one["self"],
            cumulative=known.cumulative + one["cumulative"],
            phase=known.phase,
        )
    return rows


def own_of(row: Row) -> float:
    return row.own


def calls_of(row: Row) -> float:
    return row.calls


def cumulative_of(row: Row) -> float:
    return row.cumulative


def grown(suspect: Suspect, measure: Callable[[Row], float]) -> float:
    return max(measure(suspect.after) - measure(suspect.before), 0.0)


def whole(suspects: Iterable[Suspect], measure: Callable[[Row], float], delta: float | None) -> float:
    """What a function's growth is a share of: the profiles' whole, no less than the metric's own delta.

    Where that is unknown: all that grew, whatever fell beside it.
    """
    if delta is None:
        return max(sum(grown(one, measure) for one in suspects), 1e-12)
    total = sum(measure(one.after) - measure(one.before) for one in suspects)
    return max(total, delta, 1e-12)


def own_growth(changed: Sequence[Suspect]) -> dict[Suspect, float]:
    """Seconds per step that each changed function's calls cost more, without the changed ones inside them.

    Who calls whom isn't known: a function is taken to be inside those that take longer and whose phase holds
    its own.
    """
    own: dict[Suspect, float] = {}
    for outer in sorted(changed, key=lambda one: (one.after.cumulative, one.file, one.name)):
        within = sum(own[inner] for inner in own if holds(outer.after.phase, inner.after.phase))
        own[outer] = max(grown(outer, cumulative_of) - within, 0.0)
    return own


def holder_of(suspects: Sequence[Suspect], phase: str) -> Suspect | None:
    """The innermost function in whose calls most of the growth is, where the diff names no called one itself.

    A constant's new value may make hundreds of small operations dearer: none of them says what is done more.
    Built-in functions do what they are called for.
    """
    changed = [one for one in suspects if one.changed]
    if not changed or any(one.after.calls for one in changed):
        return None
    inside = [one for one in suspects if one.file != BUILT_IN and (not phase or in_phase(one, phase))]
    most = max((grown(one, cumulative_of) for one in inside), default=0.0)
    holding = [one for one in inside if grown(one, cumulative_of) >= HELD * most > 0]
    return min(holding, key=lambda one: (one.after.cumulative, one.file, one.name), default=None)


def by_cost(suspect: Suspect, phase: str, share: float, new: float, times: float) -> float:
    """How much a function is to blame for lost time or for more calls.

    `share` of the growth is in its own body, `new` inside its calls but in no other changed function.
    """
    if suspect.name == MODULE and not suspect.after.calls:
        # A constant's new value: it costs nothing itself, and what it made dearer says more.
        return LEAST_SCORE
    fits = in_phase(suspect, phase)
    score = (OWN_TIME + IN_PHASE * fits) * min(share, 1.0)
    if suspect.changed:
        inside = min(grown(suspect, cumulative_of) / times, 1.0)
        score += CHANGED + IN_PHASE * fits + INSIDE * inside + min(new, 1.0)
    return score


def by_memory(suspect: Suspect, phase: str) -> float:
    """How much a function is to blame for lost memory: changed ones, those of the phase first.

    What runs before the first step isn't in the profile, nor is a function that a step never calls.
    """
    if not suspect.changed:
        return 0.0
    unseen = suspect.after.calls == 0
    fits = unseen if phase == SETUP else in_phase(suspect, phase)
    if unseen and suspect.name == MODULE:
        return 0.5
    return (
        1.0
        + fits
        + 0.5 * (suspect.after.calls > suspect.before.calls)
        + 0.25 * (suspect.after.own > suspect.before.own)
    )


def in_phase(suspect: Suspect, phase: str) -> bool:
    """Do most of the function's calls fall into the phase, or into one nested in it?"""
    return bool(phase) and holds(phase, suspect.after.phase)
