"""What step a series would show, as its page says before it is needed."""

from __future__ import annotations

from typing import cast

from dashboard import detection
from dashboard.detection.types import Better, Kind
from dashboard.models import Metric, Series
from dashboard.pages.noise.machine_noise import (
    ENOUGH_VALUES,
    LATER,
    SOON,
    estimate_effects,
    proven_effect,
    towards_worse,
)
from dashboard.pages.series.trend import SeriesTrend
from dashboard.querysets.noise import NEWEST_POINTS, make_spread
from dashboard.sentences.series.noise import effect_sentence


def describe_effect(series: Series, trend: SeriesTrend) -> str:
    """Of the newest untainted points of the machine that measured last; empty of fewer than ENOUGH_VALUES.

    `series` has what `with_noise_facts` adds.
    """
    rows = [row for row in trend.rows if not row.tainted and row.machine]
    machine = rows[-1].machine if rows else None
    newest = trend.details_of([row for row in rows if row.machine == machine][-NEWEST_POINTS:])
    if machine is None or len(newest) < ENOUGH_VALUES:
        return ""
    one_seed = all(len(set(point.samples)) < 2 for point in newest)
    if series.metric.kind == Metric.Kind.QUALITY and one_seed:
        # Repeated it has no noise, and another one would have learned otherwise: nothing is known.
        return ""
    points = tuple(detection.Point(point.value, tuple(point.samples)) for point in newest)
    better, kind = cast(Better, series.metric.better), cast(Kind, series.metric.kind)
    _, effects = estimate_effects(points, series.__dict__["judged"], better, kind, series.exact)
    proven = series_proves(series)
    if not series.metric.has_sign:
        effects = [towards_worse(effect, better) for effect in effects]
        proven = None if proven is None else towards_worse(proven, better)
    return effect_sentence(list(zip((SOON, LATER), effects, strict=True)), proven, machine)


def series_proves(series: Series) -> float | None:
    known = series.__dict__["pair_spread"]
    spread = make_spread(**known) if known else None
    return proven_effect(spread) if spread else None
