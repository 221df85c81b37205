"""The pairs of an experiment, drawn."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.charts import theme
from dashboard.charts.pairs import DrawnPair, Effect, EffectEstimate, draw_pairs
from dashboard.experiments.single_steps import looks_at_steps
from dashboard.models import Experiment, ExperimentPair

CAPTION = (
    "Each mark is one repetition of both sides, {}: {}. The line is the mean, the band its interval after so "
    "many pairs; hollow marks were disturbed by other work and aren't weighed."
)
CAPTION_IN_SEQUENCE = CAPTION.format(
    "one after the other", "circles measured the base first, diamonds the head"
)
CAPTION_IN_TURNS = CAPTION.format(
    "whose steps took turns, thirty times a second",
    "circles began with the base, diamonds with the head",
)


CAPTION_BY_STEPS = (
    " A mark compares the means of both windows. Once single steps tell more, the line and the band compare "
    "those instead, each step with the same one of the other side: marks may lie outside the band."
)


def pairs_caption(experiment: Experiment, pairs: Sequence[ExperimentPair]) -> str:
    caption = CAPTION_IN_TURNS if experiment.in_turns else CAPTION_IN_SEQUENCE
    return caption + CAPTION_BY_STEPS if looks_at_steps(experiment, pairs) else caption


def pairs_figure(experiment: Experiment, pairs: Sequence[ExperimentPair]) -> str:
    """The figure's JSON; empty where no pair can be drawn."""
    figure = draw_experiment_pairs(experiment, pairs)
    return theme.figure_json(figure) if figure else ""


def draw_experiment_pairs(experiment: Experiment, pairs: Sequence[ExperimentPair]) -> theme.Figure | None:
    """None where no pair can be drawn: what an unreported quality counts as, nobody has measured."""
    effect = drawn_effect(experiment)
    estimate = None if any(pair.unreported for pair in pairs) else known_effect(experiment, effect)
    drawn = [
        DrawnPair(
            *(pair.index + 1, pair.base, pair.head, pair.base_first, pair.disturbed),
            known_effect(pair, effect) if estimate else None,
        )
        for pair in pairs
        if not pair.unreported
        if effect != "ratio" or pair.base > 0
    ]
    if not drawn:
        return None
    return draw_pairs(drawn, experiment.metric.unit, effect, estimate)


def drawn_effect(experiment: Experiment) -> Effect:
    """What its values have: a ratio, unless they are exponents or not all positive."""
    if experiment.metric.is_exponent:
        return "exponent"
    return "ratio" if experiment.difference is None else "difference"


def known_effect(row: Experiment | ExperimentPair, effect: Effect) -> EffectEstimate | None:
    """None while the pairs so far don't tell."""
    if effect == "difference":
        value, low, high = row.difference, row.difference_low, row.difference_high
    else:
        value, low, high = row.ratio, row.low, row.high
    return (
        EffectEstimate(value, low, high)
        if value is not None and low is not None and high is not None
        else None
    )
