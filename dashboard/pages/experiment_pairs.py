"""The pairs of an experiment, drawn."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.charts import pairs as pair_charts
from dashboard.charts import theme
from dashboard.models import Experiment, ExperimentPair

CAPTION = (
    "Each mark is one repetition of both sides, {}: {}. The line is the mean, the band is its interval; "
    "crosses were disturbed by other work and aren't weighed."
)
CAPTION_IN_SEQUENCE = CAPTION.format(
    "one after the other", "circles measured the base first, diamonds the head"
)
CAPTION_IN_TURNS = CAPTION.format(
    "whose steps took turns, thirty times a second",
    "circles began with the base, diamonds with the head",
)


def pairs_caption(experiment: Experiment) -> str:
    return CAPTION_IN_TURNS if experiment.in_turns else CAPTION_IN_SEQUENCE


def pairs_figure(experiment: Experiment, pairs: Sequence[ExperimentPair]) -> str:
    """The figure's JSON; empty where no pair can be drawn."""
    metric = experiment.metric
    drawn = [
        pair_charts.DrawnPair(pair.index + 1, pair.base, pair.head, pair.base_first, pair.disturbed)
        for pair in pairs
        if pair.base > 0 or metric.is_exponent
    ]
    if not drawn:
        return ""
    ratio, low, high = experiment.ratio, experiment.low, experiment.high
    return theme.figure_json(pair_charts.draw_pairs(drawn, metric.unit, ratio, low, high, metric.is_exponent))
