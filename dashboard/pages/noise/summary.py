"""A project's cases: what step each would show, and which are too noisy to be worth their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

from django.utils import timezone

from dashboard.pages.noise.machine_noise import ENOUGH_VALUES, LATER, SOON, MachineNoise, measure_all
from dashboard.querysets.case_grid import CaseState
from dashboard.querysets.noise import newest_points
from dashboard.sentences.series.noise import NoisyCase, found_sentence, noisy_sentence

# Values of one machine that lie closer together than this aren't noisy: of the noise at which a step of
# TOO_NOISY isn't found, six values spread over more.
CALM_SPREAD = 0.1
# So many cases that may be too noisy are looked at, those first that spread most.
MOST_LOOKED_AT = 40


@dataclass(frozen=True, slots=True)
class NoiseSummary:
    """`noisy` says which cases are too noisy and what would help; empty where none is.

    `found`: by series what step would be found, of those that were asked about.
    """

    noisy: str = ""
    found: Mapping[int, str] = field(default_factory=dict)


def summarize_noise(states: Sequence[CaseState], shown: Sequence[CaseState]) -> NoiseSummary:
    """Of all cases of a project those that are too noisy, and what each of those that are shown would find.

    The latest states tell which cases can't be: the points of the others alone are read.
    """
    spread = [(spread_on_machine(state), state.series) for state in states]
    doubtful = [key for width, key in sorted(spread, reverse=True) if width > CALM_SPREAD]
    keys = {*doubtful[:MOST_LOOKED_AT], *(state.series for state in shown)}
    if not keys:
        return NoiseSummary()
    measured = measure_all(newest_points(keys), timezone.now())
    noisy = [row for row in measured if row.is_too_noisy]
    named = [NoisyCase(str(row.case), row.machine.name, row.noise or 0.0, row.source) for row in noisy]
    return NoiseSummary(
        noisy_sentence(named),
        {state.series: describe_case(state, measured) for state in shown},
    )


def spread_on_machine(state: CaseState) -> float:
    """How far the newest untainted values of one machine lie apart, as a logarithm: the widest there is."""
    by_machine: dict[int, list[float]] = {}
    for value, machine in zip(state.recent, state.recent_machines, strict=False):
        if machine is not None and value > 0:
            by_machine.setdefault(machine, []).append(value)
    widths = [log(max(row) / min(row)) for row in by_machine.values() if len(row) >= ENOUGH_VALUES]
    return max(widths, default=0.0)


def describe_case(state: CaseState, measured: Sequence[MachineNoise]) -> str:
    """What step would be found on the machine that measured it last; empty where that isn't known."""
    own = [row for row in measured if row.series == state.series and row.noise is not None]
    last = max(own, key=newest_first, default=None)
    if last is None:
        return ""
    machine = last.machine.name if len(own) > 1 else ""
    return found_sentence([(SOON, last.soon), (LATER, last.later)], last.proven, machine)


def newest_first(row: MachineNoise) -> float:
    return row.newest.timestamp() if row.newest else 0.0
