"""How a run stands to its guards: what was learned, over all its seeds, within bounds or not, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..document import LARGEST
from ..manifest.benchmarks import Guard
from ..statistics import mean

Raw = dict[str, Any]

KEPT, VIOLATED, MISSING, DIVERGED = "kept", "violated", "missing", "diverged"


def has_diverged(value: float) -> bool:
    """True for NaN, and for what no document can hold: a training that reports it went astray."""
    return not -LARGEST <= value <= LARGEST


def finite_qualities(qualities: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in qualities.items() if not has_diverged(value)}


def diverged_names(reported: Iterable[Mapping[str, float]]) -> list[str]:
    """The qualities that any process reported as no number, sorted."""
    return sorted({name for row in reported for name, value in row.items() if has_diverged(value)})


def values_by_seed(name: str, raw: Mapping[str, Any]) -> dict[int, float] | None:
    """What was learned with each seed; None where a process reported none. The repetitions have one seed.

    `raw` has the repetitions, the protocol and, where there were other seeds, what they led to.
    """
    values = [row["quality"].get(name) for row in raw["repetitions"]]
    others = {row["seed"]: row["quality"].get(name) for row in raw.get("learning", ())}
    if None in values or None in others.values():
        return None
    return {raw["protocol"]["seed"]: mean(values), **others}


def judge_guards(raw: Raw, guards: Mapping[str, Guard], diverged: Sequence[str]) -> list[Raw]:
    """A row for each guard: the mean over the seeds, and whether that is within the bounds."""
    return [_guard_row(name, guard, raw, name in diverged) for name, guard in guards.items()]


def _guard_row(name: str, guard: Guard, raw: Raw, diverged: bool) -> Raw:
    by_seed = values_by_seed(name, raw)
    value = mean(list(by_seed.values())) if by_seed else None
    if value is None:
        state = DIVERGED if diverged else MISSING
    else:
        state = KEPT if is_within(guard, value) else VIOLATED
    return {
        "quality": name,
        "better": guard.direction,
        "minimum": guard.minimum,
        "maximum": guard.maximum,
        "value": value,
        "seeds": 1 + len(raw.get("learning", ())),
        "state": state,
    }


def is_within(guard: Guard, value: float) -> bool:
    below = guard.minimum is not None and value < guard.minimum
    return not below and not (guard.maximum is not None and value > guard.maximum)
