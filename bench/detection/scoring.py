"""How good a change detector is: false alarms, recall and delay as a history grows; F1 on whole ones."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

import numpy as np

from bench.detection.trials import Trial

Detector = Callable[[Sequence[float]], Sequence[int]]

FIRST = 30  # points that are there before the first look
HORIZON = 30  # points after a step within which it has to be found
PLACE = 2  # points that an alarm may be off
SAME = 5  # points within which an alarm is the same as one before
MARGIN = 5  # points, on whole histories


@dataclass(frozen=True, slots=True)
class Alarms:
    """False alarms, and the points in which they came."""

    count: int = 0
    points: int = 0

    @property
    def per_1000(self) -> float:
        return 1000 * self.count / self.points if self.points else float("nan")


def detect_in_prefixes(
    detector: Detector, values: Sequence[float], first: int, last: int
) -> Iterator[tuple[int, set[int]]]:
    """What is found in each prefix from `first` to `last` points."""
    for n in range(first, last + 1):
        yield n, {int(i) for i in detector(list(values[:n])) if 0 < i < n}


def count_false_alarms(detector: Detector, trial: Trial) -> Alarms:
    """The alarms that a series without a change raises after its first points."""
    seen: list[int] = []
    count = 0
    for n, found in detect_in_prefixes(detector, trial.values, FIRST, len(trial.values)):
        fresh = [i for i in sorted(found) if all(abs(i - known) > SAME for known in seen)]
        seen += fresh
        count += len(fresh) if n > FIRST else 0
    return Alarms(count, len(trial.values) - FIRST)


def false_alarms_by(
    key: Callable[[Trial], str], detector: Detector, trials: Sequence[Trial]
) -> dict[str, Alarms]:
    """The false alarms of groups of series."""
    groups: dict[str, list[Alarms]] = defaultdict(list)
    for trial in trials:
        groups[key(trial)].append(count_false_alarms(detector, trial))
    return {
        name: Alarms(sum(a.count for a in found), sum(a.points for a in found))
        for name, found in sorted(groups.items())
    }


def detection_delay(detector: Detector, trial: Trial) -> float:
    """The points of the new level at which its step is first found at its place; infinite if never."""
    (tau,) = trial.taus
    known = dict(detect_in_prefixes(detector, trial.values, tau, tau))[tau]
    for n, found in detect_in_prefixes(
        detector, trial.values, tau + 1, min(len(trial.values), tau + HORIZON)
    ):
        if any(abs(i - tau) <= PLACE for i in found - known):
            return n - tau
    return float("inf")


def lower_median(delays: Sequence[float]) -> float:
    """The median; of two the smaller."""
    return sorted(delays)[(len(delays) - 1) // 2] if delays else float("nan")


def share_within(delays: Sequence[float], within: float = HORIZON) -> float:
    """How many are found within so many points."""
    return fmean(d <= within for d in delays) if delays else float("nan")


def count_matches(truth: Sequence[int], found: Sequence[int], margin: int = MARGIN) -> int:
    """How many true changes have a found one within the margin, each of its own, the nearest."""
    remaining = set(found)
    for tau in sorted(truth):
        near = min(remaining, key=lambda i: (abs(i - tau), i), default=None)
        if near is not None and abs(near - tau) <= margin:
            remaining.remove(near)
    return len(found) - len(remaining)


def f1_of_all(detector: Detector, trials: Sequence[Trial]) -> float:
    """F1 over all changes of all whole histories."""
    hits = truths = reports = 0
    for trial in trials:
        found = sorted({int(i) for i in detector(list(trial.values))})
        hits += count_matches(trial.taus, found)
        truths += len(trial.taus)
        reports += len(found)
    return 2 * hits / (truths + reports) if truths + reports else float("nan")


def f1_of_annotators(found: Sequence[int], annotations: Mapping[str, Sequence[int]]) -> float:
    """Precision against all annotators together, recall averaged over them; the first point is known."""
    reports = sorted({0, *found})
    each = [sorted({0, *marked}) for marked in annotations.values()]
    precision = count_matches(sorted(set().union(*each)), reports) / len(reports)
    recall = fmean(count_matches(marked, reports) / len(marked) for marked in each)
    return 2 * precision * recall / (precision + recall)


def covering_score(found: Sequence[int], annotations: Mapping[str, Sequence[int]], n: int) -> float:
    """How well the levels found cover those of each annotator (Jaccard, by length), averaged over them."""
    found_ranges = level_ranges(found, n)
    return fmean(
        sum(
            (b - a) * max(jaccard_overlap((a, b), own) for own in found_ranges)
            for a, b in level_ranges(marked, n)
        )
        / n
        for marked in annotations.values()
    )


def level_ranges(starts: Sequence[int], n: int) -> list[tuple[int, int]]:
    """Half-open ranges between starts."""
    edges = [0, *sorted({i for i in starts if 0 < i < n}), n]
    return list(pairwise(edges))


def jaccard_overlap(a: tuple[int, int], b: tuple[int, int]) -> float:
    """What two ranges share, of what they cover together."""
    common = max(0, min(a[1], b[1]) - max(a[0], b[0]))
    return common / (max(a[1], b[1]) - min(a[0], b[0])) if common else 0.0


def processor_milliseconds(detector: Detector, n: int) -> float:
    """The processor time for a history of n points with three steps; the median of some looks."""
    noise = np.random.default_rng(5).normal(0, 0.01, n)
    values = (100 * np.repeat([1.0, 1.05, 1.1, 1.16], n // 4) * (1 + noise)).tolist()
    taken = []
    for _ in range(5):
        begun = time.process_time()
        detector(values)
        taken.append(1000 * (time.process_time() - begun))
    return median(taken)
