"""`judge_series`: a series with all that the site knows of it, to the changes in it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dashboard.detection import doubts
from dashboard.detection.changepoints import detect_again
from dashboard.detection.drift import drop_slopes
from dashboard.detection.exact_levels import points_of_levels, varies_near
from dashboard.detection.identity import same_change, same_location
from dashboard.detection.levels import LEVEL_WINDOW, estimate_step, level_ranges, ratio_interval
from dashboard.detection.medians import fast_median
from dashboard.detection.readings import ADDITIVE_KINDS, Readings, prepare_readings, repeats_exactly
from dashboard.detection.relevance import WANDER_POINTS, exceeds_floor
from dashboard.detection.rules import ALARM
from dashboard.detection.scaling import safe_median
from dashboard.detection.segmentation import Floats, Loss, segment_levels
from dashboard.detection.segmentation_batch import Segmented, segment_all
from dashboard.detection.types import Better, Change, Direction, Doubt, Series

FEWEST_POINTS = 4  # two of each level
# Fewer points don't show how far a history goes by itself within ten of them.
DETECT_FROM = 3 * ALARM.reach
MOST_LOOKS = 5  # one is enough nearly always
# What a level of the average repetition costs more than one of the best, while a history is short.
AVERAGE_PENALTY = 2.0
# A machine may be busy for a day's runs.
FEWEST_OF_AVERAGE = 12
SHOWN_BY_BEST = 0.5  # of a step of the average repetition
LOCATION_DOUBT = 3.84  # of a squared residual: the 95 % point of chi square


def loss_for(n: int) -> Loss:
    """In a short history two points, each 2.5 noises off, pay for a step (2 * 2.5² > 11).

    One point never does, whatever it is: the cap is below the penalty. A history that is longer has more
    places at which noise could pass for a step, and asks for more.
    """
    return Loss(cap=9.0, penalty=11.0 + 3.0 * math.log(max(n / WANDER_POINTS, 1.0)))


def judge_series(series: Series, known: Collection[int] = ()) -> list[Change]:
    """The changes of a series, in order; empty where there is none or there are too few points to tell.

    `known` are the indices at which changes have been reported: a little noise neither moves nor removes
    those. Judged again with what it found as known, a series has the same changes.
    Raises ValueError for a value that isn't finite.
    """
    best = prepare_readings(series)
    if not best.by_best:
        (changes,) = judge_readings([series], [best], known)
        return changes
    average = prepare_readings(series, "mean")
    for _ in range(MOST_LOOKS):
        changes = judge_best_and_average(series, best, average, known)
        found = {change.index for change in changes}
        if found == set(known):
            break
        known = found
    return changes


def judge_best_and_average(
    series: Series, best: Readings, average: Readings, known: Collection[int]
) -> list[Change]:
    """The changes that the best repetitions of the points show, and those that only their average shows.

    A cause that slows some of the processes leaves the best one as it was. So does a busy machine: what only
    the average shows has to be clearer, and to stay. At one place both are one change, that of the best; but
    where the best got faster and the average slower, or the reverse, it is that of the average.
    """
    (of_best,) = judge_readings([series], [best], known)
    of_average = [
        change
        for change in describe_changes(series, average, average_starts(average, known_places(average, known)))
        if not any(same_change(change, other) for other in of_best)
    ]
    if not of_average:
        return of_best
    of_best = [change for change in of_best if not any(same_location(change, new) for new in of_average)]
    by_average = {change.index for change in of_average}
    indices = sorted(by_average | {change.index for change in of_best})
    levels = level_ranges([best.kept.index(index) for index in indices], len(best.values))
    return [
        describe_average_change(series, best, average, before, after)
        if index in by_average
        else describe_change(series, best, before, after, exact=False)
        for index, (before, after) in zip(indices, pairwise(levels), strict=True)
    ]


def average_starts(readings: Readings, known: Collection[int]) -> list[int]:
    """The starts of levels of the average repetition: by what the history shows, once it is long enough.

    Until then samples say how noisy points are, and that from so few points is trusted half as much.
    """
    n, loss = len(readings.values), loss_for(len(readings.values))
    loss = replace(loss, penalty=AVERAGE_PENALTY * loss.penalty)
    if n < FEWEST_POINTS:
        return []
    if n >= DETECT_FROM:
        starts = detect_again(readings.scale.values(readings.scaled).tolist(), known)
        if not set(known) <= set(starts):
            # `detect` knows one noise, and a level of slow and fast processes has a larger one of its own.
            held = segment_levels(readings.scaled, readings.noise, loss, known)
            starts = sorted({*starts, *(set(held) & set(known))})
    else:
        starts = segment_levels(readings.scaled, readings.noise, loss, known)
        if n >= WANDER_POINTS:
            starts = drop_slopes(starts, readings.scaled, readings.noise, loss.cap)
    return drop_irrelevant(lasting_starts(starts, n, known), readings)


def lasting_starts(starts: Sequence[int], n: int, known: Collection[int]) -> list[int]:
    """Those starts of levels of n points that last; what is shorter joins the next.

    One that was reported stays where another start follows soon, but needs as many points behind it: it may
    have been the best repetition's.
    """
    lasting: list[int] = []
    end = n
    for start in reversed(starts):
        if (n if start in known else end) - start >= FEWEST_OF_AVERAGE:
            lasting.append(start)
            end = start
    return lasting[::-1]


def describe_average_change(
    series: Series, best: Readings, average: Readings, before: tuple[int, int], after: tuple[int, int]
) -> Change:
    """A change of the average repetition; with a doubt where the best ones show less than half of it.

    Its level after is the average's too: that is what pairs of single processes can prove.
    """
    change = describe_change(series, average, before, after, exact=False)
    (a, b), (_, c) = before, after
    of_average = estimate_step(average.scaled[a:b], average.scaled[b:c], 0.0).size
    change = replace(change, after=average.scale.level_after(of_average, change.before))
    of_best = step_size(best.scaled, before, after)
    if of_best * np.sign(of_average) >= SHOWN_BY_BEST * abs(of_average):
        return change
    only = Doubt(doubts.NOT_IN_BEST, {"ratio_of_best": best.scale.ratio(of_best, change.before)})
    return replace(change, doubts=(*change.doubts, only))


def known_places(readings: Readings, known: Collection[int]) -> set[int]:
    """The places of known changes among the readings.

    Of a change at the very first point the level before isn't there any more.
    """
    return {readings.kept.index(i) for i in known if i in readings.kept[1:]}


def judge_readings(
    series: Sequence[Series], readings: Sequence[Readings], known: Collection[int] = ()
) -> list[list[Change]]:
    """The changes of each of several series that are prepared, by the values that were chosen then; `known`
    holds for all of them."""
    noisy = [index for index, each in enumerate(series) if not repeats_exactly(each)]
    before = [known_places(each, known) for each in readings]
    found = stable_starts([readings[index] for index in noisy], [before[index] for index in noisy])
    starts = dict(zip(noisy, found, strict=True))
    return [
        describe_changes(each, readings[index], starts[index])
        if index in starts
        else describe_exact_changes(each, readings[index], before[index])
        for index, each in enumerate(series)
    ]


def describe_changes(series: Series, readings: Readings, starts: Sequence[int]) -> list[Change]:
    """The changes between the levels of a noisy series that begin at `starts`."""
    ranges = level_ranges(starts, len(readings.values))
    return [
        describe_change(series, readings, before, after, exact=False) for before, after in pairwise(ranges)
    ]


def describe_exact_changes(series: Series, readings: Readings, known: Collection[int]) -> list[Change]:
    """The changes between the levels of an exact counter; those near which it varies say so."""
    level_points = points_of_levels(readings.values, known if series.is_cut else None)
    levels = replace(readings, values=readings.values[level_points], scaled=readings.scaled[level_points])
    varying = np.flatnonzero(levels.values != readings.values)
    ranges = pairwise(level_ranges(exact_starts(levels), len(levels.values)))
    found = [(b, describe_change(series, levels, (a, b), (b, c), exact=True)) for (a, b), (_, c) in ranges]
    return [
        replace(change, doubts=(*change.doubts, Doubt(doubts.VARIES))) if varies_near(varying, at) else change
        for at, change in found
    ]


def exact_starts(readings: Readings) -> list[int]:
    """Every difference between neighbours, known at its first point."""
    return [int(i) + 1 for i in np.flatnonzero(np.diff(readings.values))]


def stable_starts(readings: Sequence[Readings], known: Sequence[Collection[int]]) -> list[list[int]]:
    """Of each the starts of levels that are found again when they are known, from those known now."""
    found, before = noisy_starts(readings, known), list(known)
    for _ in range(MOST_LOOKS):
        moving = [index for index, starts in enumerate(found) if set(starts) != set(before[index])]
        if not moving:
            break
        again = noisy_starts([readings[index] for index in moving], [found[index] for index in moving])
        for index, starts in zip(moving, again, strict=True):
            before[index], found[index] = found[index], starts
    return found


def noisy_starts(readings: Sequence[Readings], known: Sequence[Collection[int]]) -> list[list[int]]:
    """Of each the starts of levels that are both significant and relevant.

    Samples say how noisy each point is. Without them a history says so by itself, once it is long enough:
    `detect` is asked then.
    """
    found: list[list[int]] = [[] for _ in readings]
    segmented: dict[int, Segmented] = {}
    for index, (each, before) in enumerate(zip(readings, known, strict=True)):
        n = len(each.values)
        if n >= DETECT_FROM and not each.sampled:
            found[index] = detect_again(each.values.tolist(), before)
        elif n >= FEWEST_POINTS:
            segmented[index] = Segmented(each.scaled, each.noise, loss_for(n), before)
    for index, starts in zip(segmented, segment_all(list(segmented.values())), strict=True):
        each = readings[index]
        if len(each.values) >= WANDER_POINTS:
            starts = drop_slopes(starts, each.scaled, each.noise, segmented[index].loss.cap)
        found[index] = starts
    return [drop_irrelevant(starts, each) for starts, each in zip(found, readings, strict=True)]


def drop_irrelevant(starts: list[int], readings: Readings) -> list[int]:
    """Starts without steps below the effect floor: the smallest goes first, and its levels become one."""
    while starts:
        ranges = list(pairwise(level_ranges(starts, len(readings.values))))
        sizes = [abs(step_size(readings.scaled, before, after)) for before, after in ranges]
        smallest = int(np.argmin(sizes))
        if reaches_floor(readings, *ranges[smallest]):
            return starts
        starts = [start for start in starts if start != ranges[smallest][1][0]]
    return starts


def reaches_floor(readings: Readings, before: tuple[int, int], after: tuple[int, int]) -> bool:
    """True where the step between two levels reaches both parts of the effect floor."""
    level = safe_median(readings.values[before[0] : before[1]])
    ratio = readings.scale.ratio(step_size(readings.scaled, before, after), level)
    difference = abs(step_size(readings.values / 2, before, after))
    return exceeds_floor(ratio, readings.floor) and difference >= readings.least / 2


def step_size(values: Floats, before: tuple[int, int], after: tuple[int, int]) -> float:
    """The difference of two levels of values (n,), half-open ranges of them."""
    old, new = (values[a:b] for a, b in (before, after))
    return fast_median(new) - fast_median(old)


def describe_change(
    series: Series, readings: Readings, before: tuple[int, int], after: tuple[int, int], *, exact: bool
) -> Change:
    """The change between two neighbouring levels, half-open ranges of readings."""
    (a, b), (_, c) = before, after
    sigma = 0.0 if exact else fast_median(readings.noise[a:c])
    step = estimate_step(readings.scaled[a:b], readings.scaled[b:c], sigma)
    level, level_after = (safe_median(readings.values[part]) for part in (slice(a, b), slice(b, c)))
    if (level_after - level) * step.size < 0:
        # The medians of the repetitions went the other way than what is judged.
        level_after = readings.scale.level_after(step.size, level)
    ratio, low, high = ratio_interval(step, level, readings.scale)
    earliest, latest = (b, b) if exact else location_range(readings, before, after)
    found = doubts.location_doubts(readings.kept[b - 1], readings.kept[b])
    if not readings.scale.logarithmic and series.kind not in ADDITIVE_KINDS:
        found += (Doubt(doubts.NO_RATIO),)
    if not exact:
        near_floor = not (exceeds_floor(low, readings.floor) and exceeds_floor(high, readings.floor))
        found += doubts.size_doubts(b - a, c - b, near_floor)
    return Change(
        index=readings.kept[b],
        before=level,
        after=level_after,
        ratio=ratio,
        low=low,
        high=high,
        direction=step_direction(step.size, series.better),
        confidence=step.confidence,
        earliest=readings.kept[earliest],
        latest=readings.kept[latest],
        doubts=found,
    )


def location_range(readings: Readings, before: tuple[int, int], after: tuple[int, int]) -> tuple[int, int]:
    """The first and the last reading at which the step between two levels may as well have started."""
    (a, b), (_, c) = before, after
    near = slice(max(a + 1, b - LEVEL_WINDOW), min(c, b + LEVEL_WINDOW))
    old, new = (fast_median(readings.scaled[part]) for part in (slice(a, b), slice(b, c)))
    loss = loss_for(len(readings.values))
    # What it costs to count each point to the level before instead of to its own; summed up, to start later.
    z_old, z_new = ((readings.scaled[near] - level) / readings.noise[near] for level in (old, new))
    costs = np.concatenate([[0.0], np.cumsum(loss.evaluate(z_old) - loss.evaluate(z_new))])
    fits = np.flatnonzero(costs <= costs[b - near.start] + LOCATION_DOUBT)
    return near.start + int(fits[0]), min(near.start + int(fits[-1]), c - 1)


def step_direction(step: float, better: Better) -> Direction:
    """Whether a step of this sign is for the worse."""
    return "improvement" if (step < 0) == (better == "lower") else "regression"
