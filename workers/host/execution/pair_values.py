"""What the two documents of a pair say of what is weighed: values, steps, phases, and who was disturbed."""

from __future__ import annotations

import math
from dataclasses import asdict
from statistics import fmean
from typing import Any

from paceline import document
from paceline.document import Document
from paceline.document_rows import MetricValue

from dashboard.host_protocol import OtherMetric
from dashboard.host_protocol.message_fields import LONGEST_WORD
from dashboard.host_protocol.messages import GUARDING_KINDS, MOST_OTHERS, MOST_STEPS, PACE

SWEPT = "scaling_contention"
# A machine that changes its speed meanwhile does so for both that take turns.
MEETS_BOTH = {"clock_change", "calibration_drift"}
# How long other work kept a side from its processor is known, and taken off where a mean is weighed.
WAITED = "processor_contention"
# Metrics of turns, by the power in which time is in them.
POWERS_OF_TIME = {"step_time": 1, "phase_time": 1, "phase_self_time": 1, "throughput": -1}
# Who waited longer than this for a processor has measured little else.
MOST_WAITED = 0.8


def is_disturbed(measured: Document, in_turns: bool, metric: str = PACE) -> bool:
    """True where other work disturbed it: such a pair is measured, shown and not weighed."""
    disturbances = set(document.CODES_OF_DISTURBANCE)
    if in_turns:
        disturbances -= MEETS_BOTH
        if running_share(measured) < 1 - MOST_WAITED:
            return True
        if metric in POWERS_OF_TIME:
            disturbances.discard(WAITED)
    if measured.scaling:
        # The sweep is what is weighed: of a run it keeps nothing else out of judgement.
        disturbances.add(SWEPT)
    return any(
        doubt.code in disturbances and (doubt.taints or doubt.code == SWEPT) for doubt in measured.warnings
    )


def running_share(measured: Document) -> float:
    """Of the window of its only repetition, the part in which its thread wasn't kept from a processor."""
    return 1 - measured.repetitions[0].waited


def value_of_metric(row: MetricValue, measured: Document, in_turns: bool) -> float:
    """The metric's value; of steps that took turns without what its thread waited for a processor."""
    power = POWERS_OF_TIME.get(row.name, 0) if in_turns else 0
    return float(row.value * running_share(measured) ** power)


def steps_of_both(base: Document, head: Document) -> dict[str, list[float]]:
    """Seconds of the same steps of both, a few at a time of a long window; empty of unlike windows."""
    sides = {"base": base, "head": head}
    taken = {name: measured.repetitions[0].step_times["thinned"] for name, measured in sides.items()}
    counts = {(thinned["every"], len(thinned["values"])) for thinned in taken.values()}
    # A clock that doesn't move within a step has no ratios.
    if len(counts) > 1 or min(min(thinned["values"], default=0.0) for thinned in taken.values()) <= 0:
        return {}
    at_a_time = math.ceil(counts.pop()[1] / MOST_STEPS)
    return {
        name: [
            float(f"{fmean(thinned['values'][start : start + at_a_time]):.5g}")
            for start in range(0, len(thinned["values"]), at_a_time)
        ]
        for name, thinned in taken.items()
    }


def own_times_by_phase(base: Document, head: Document, in_turns: bool) -> dict[str, tuple[float, float]]:
    """Seconds per step in each phase itself, of both; 0 where one hasn't that phase.

    `in_turns`: less what they waited for a processor, of which each phase has its part.
    """
    sides = [
        {
            row.phase: row.value * (running_share(measured) if in_turns else 1)
            for row in measured.metrics
            if row.name == "phase_self_time" and row.phase
        }
        for measured in (base, head)
    ]
    return {phase: (sides[0].get(phase, 0.0), sides[1].get(phase, 0.0)) for phase in sides[0] | sides[1]}


def sweeps_of_both(base: Document, head: Document) -> dict[str, Any]:
    """The points of both sweeps and what else reads a metric off them; empty where they aren't alike."""
    if not base.scaling or not head.scaling:
        return {}
    if (base.scaling.parameter, base.scaling.params) != (head.scaling.parameter, head.scaling.params):
        return {}
    job = head.job
    return {
        "parameter": head.scaling.parameter,
        "amount": job.amount if job and job.source == "scaling" else None,
        "base": [asdict(point) for point in base.scaling.points],
        "head": [asdict(point) for point in head.scaling.points],
    }


def others_of_both(base: Document, head: Document, *, with_pace: bool = False) -> dict[str, OtherMetric]:
    """Memory and quality of the whole, where both documents have a value of them, by names that a site keeps.

    `with_pace`: the step's time as well.
    """
    sides = [
        {
            row.name: row
            for row in measured.metrics
            if not row.phase and (row.kind in GUARDING_KINDS or (with_pace and row.name == PACE))
            if len(row.name) <= LONGEST_WORD
        }
        for measured in (base, head)
    ]
    both = [(sides[0][name], row) for name, row in sides[1].items() if name in sides[0]]
    return {
        after.name: OtherMetric(after.unit, after.better, after.kind, before.value, after.value)
        for before, after in both[:MOST_OTHERS]
        if before.value is not None and after.value is not None
    }
