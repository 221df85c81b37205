"""Limits: absolute bounds that a manifest sets on metrics, and how a run stands to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import metrics
from ..phase_names import spell_metric
from .toml_table import TomlTable

SWEEP_METRICS = "scaling_exponent"  # and what begins with it: what a sweep measures
PROJECTED_TIME = "projected_time"
REPORTED_KINDS = ("count", "gauge", "quality")


@dataclass(frozen=True, slots=True)
class Bound:
    """What a metric, or one of its phases, must not go below or above."""

    metric: str
    phase: str | None
    minimum: float | None
    maximum: float | None

    @property
    def name(self) -> str:
        """The metric as a manifest spells it: `phase_time:learn`, or the bare name."""
        return spell_metric(self.metric, self.phase)

    def crossed_by(self, value: float) -> bool:
        """Return whether a value lies outside; the bound itself is still inside."""
        below = self.minimum is not None and value < self.minimum
        return below or (self.maximum is not None and value > self.maximum)


def parse_limits(table: TomlTable | None) -> tuple[Bound, ...]:
    """Read the manifest's table `limits`; raises ManifestError."""
    if table is None:
        return ()
    return tuple(_parse_bound(table, name) for name in table.names())


def _parse_bound(table: TomlTable, name: str) -> Bound:
    metric, _, phase = name.partition(":")
    if metric in REPORTED_KINDS:
        raise table.error(name, f'must be spelt with its name, in quotes: "{metric}.NAME" = {{ ... }}')
    if metrics.describe_metric(metric) is None:
        raise table.unknown_key_error(name, list(metrics.METRICS))
    problem = metrics.phase_problem(name)
    if problem is not None:
        raise table.error(name, problem)
    bounds = table.required_table(name)
    bound = Bound(metric, phase or None, bounds.number("minimum"), bounds.number("maximum"))
    bounds.refuse_unread_keys()
    if bound.minimum is None and bound.maximum is None:
        raise bounds.error("", "needs a minimum or a maximum")
    if bound.minimum is not None and bound.maximum is not None and bound.minimum > bound.maximum:
        raise bounds.error("minimum", f"is {bound.minimum:g}, above the maximum of {bound.maximum:g}")
    return bound


def judge_limits(bounds: Sequence[Bound], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the document's limits: each bound with the metric's value; null where it wasn't measured."""
    values = {(row["name"], row["phase"]): float(row["value"]) for row in rows}
    return [_judge_bound(bound, values.get((bound.metric, bound.phase))) for bound in bounds]


def _judge_bound(bound: Bound, value: float | None) -> dict[str, Any]:
    return {
        "metric": bound.metric,
        "phase": bound.phase,
        "minimum": bound.minimum,
        "maximum": bound.maximum,
        "value": value,
        "crossed": None if value is None else bound.crossed_by(value),
    }
