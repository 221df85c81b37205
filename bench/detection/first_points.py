"""Alarms in the first points of histories: `python -m bench.detection.first_points --series FOLDER`.

The folder is what `bench.detection.sources` wrote. Stretches in which nothing changes are cut into short
histories, as they are and with a step, and judged at each point: by the rule of longer histories, and by that
of short ones with each of its constants moved.
"""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean

import numpy as np

from bench.detection.leave_one_out import STEPS_PER_1000, line_of, load_sources
from bench.detection.printing import print_published
from bench.detection.scoring import PLACE, SAME, Alarms, Detector, detect_in_prefixes
from bench.detection.source_trials import SourceTrials
from bench.detection.trials import Trial
from dashboard.detection.history_fit import find_starts, scale_history
from dashboard.detection.rules import ALARM, CLEAR, ShortRule
from dashboard.detection.short_histories import SHORT_HISTORY, clear_starts

PAGE = Path(__file__).parents[2] / "docs" / "method" / "sources.md"
PART = re.compile(r"(<!-- first_points:[^>]*-->\n).*?(<!-- end of first_points -->)", re.DOTALL)

FIRST_LOOK = CLEAR.before + CLEAR.after  # points
PERCENTS = (10, 20, 50, 100)
AFTER_POINTS = (6, 9, 12, 15)
SOON = 5  # points
EVERY_WINDOW = 4  # one of so many gets steps
EVERY_DISTURBED = 5  # there are four of each stretch, so it is another kind each time
MOVED: dict[str, tuple[float, ...]] = {
    "chance": (1e-4, 1e-6, 1e-7),
    "before": (4, 5, 8),
    "after": (3, 5),
    "over_line": (1.0, 1.5, 3.0),
}
OF_LONGER = "the rule of longer histories"


@dataclass(frozen=True, slots=True)
class FirstScore:
    """How a rule does on a source: alarms by kind of stretch, and the share of steps found soon, by size."""

    alarms: tuple[Alarms, ...]
    recalls: tuple[float, ...]

    @property
    def cost(self) -> float:
        """Of false alarms in quiet and wandering stretches, and of steps that aren't found soon."""
        undisturbed = self.alarms[:2]
        points = sum(each.points for each in undisturbed)
        false = 1000 * sum(each.count for each in undisturbed) / points
        return false + STEPS_PER_1000 * (1 - fmean(self.recalls))


def moved_rules() -> dict[str, dict[str, ShortRule]]:
    """For each constant the rule as it is and with each other value, by the value."""
    return {
        name: {f"{value:g}": replace(CLEAR, **{name: value}) for value in (getattr(CLEAR, name), *others)}
        for name, others in MOVED.items()
    }


def find_by_longer_rule(values: Sequence[float]) -> list[int]:
    """What `find_starts` finds, however short the history."""
    return find_starts(scale_history(values, ALARM.reach), ALARM)


def find_by_short_rule(rule: ShortRule, values: Sequence[float]) -> list[int]:
    """What another rule finds clear."""
    return clear_starts(np.array(values), rule)


def short_windows(trials: Sequence[Trial]) -> Iterator[list[float]]:
    """The stretches, cut into short histories."""
    for trial in trials:
        for begin in range(0, len(trial.values) - SHORT_HISTORY + 1, SHORT_HISTORY):
            yield list(trial.values[begin : begin + SHORT_HISTORY])


def count_first_alarms(detector: Detector, trials: Sequence[Trial]) -> Alarms:
    """The alarms in short histories, one for what stays near a place."""
    count = points = 0
    for values in short_windows(trials):
        seen: list[int] = []
        for _, found in detect_in_prefixes(detector, values, FIRST_LOOK, SHORT_HISTORY):
            seen += [i for i in sorted(found) if all(abs(i - known) > SAME for known in seen)]
        count += len(seen)
        points += SHORT_HISTORY - FIRST_LOOK + 1
    return Alarms(count, points)


def is_found_soon(detector: Detector, values: list[float], tau: int) -> bool:
    """Whether a step is found at its place within so many points."""
    prefixes = detect_in_prefixes(detector, values, tau + 1, tau + SOON)
    return any(abs(i - tau) <= PLACE for _, found in prefixes for i in found)


def score_source(detector: Detector, trials: SourceTrials) -> FirstScore:
    """All of a source."""
    rng = np.random.default_rng(sum(trials.name.encode()))
    found: dict[int, list[bool]] = {percent: [] for percent in PERCENTS}
    for values in list(short_windows(trials.change_free))[::EVERY_WINDOW]:
        for percent in PERCENTS:
            for tau in AFTER_POINTS:
                stepped = np.array(values)
                stepped[tau:] *= (1 + percent / 100) ** int(rng.choice([-1, 1]))
                found[percent].append(is_found_soon(detector, stepped.tolist(), tau))
    kinds = (trials.change_free, trials.wandering, trials.disturbed[::EVERY_DISTURBED])
    alarms = tuple(count_first_alarms(detector, each) for each in kinds)
    return FirstScore(alarms, tuple(fmean(each) for each in found.values()))


def score_all(trials: SourceTrials) -> dict[str, dict[str, FirstScore]]:
    """A source by all rules: of each constant by its values, and the rule of longer histories."""
    scored: dict[ShortRule, FirstScore] = {}
    for rules in moved_rules().values():
        for rule in rules.values():
            if rule not in scored:
                scored[rule] = score_source(partial(find_by_short_rule, rule), trials)
    scores = {
        name: {value: scored[rule] for value, rule in rules.items()} for name, rules in moved_rules().items()
    }
    return {OF_LONGER: {"": score_source(find_by_longer_rule, trials)}, **scores}


def table_rows(of_sources: Sequence[dict[str, dict[str, FirstScore]]]) -> Iterator[str]:
    """A line per rule: means over sources, the worst, and how often it is chosen with a source left out."""
    yield line_of(
        [
            "rule",
            "false alarms /1000: quiet, wandering, disturbed",
            "the worst source's",
            f"10/20/50/100 % found within {SOON} points",
            "chosen, each source left out once",
        ]
    )
    yield "|---|---|---|---|---|"
    for name, by_value in of_sources[0].items():
        chosen = Counter(choose_value(name, of_sources, k) for k in range(len(of_sources)))
        for place, value in enumerate(by_value):
            scores = [scores[name][value] for scores in of_sources]
            rates = [
                [alarms.per_1000 for alarms in kind] for kind in zip(*(s.alarms for s in scores), strict=True)
            ]
            recalls = [fmean(each) for each in zip(*(s.recalls for s in scores), strict=True)]
            as_it_is = ", as it is" if value and not place else ""
            yield line_of(
                [
                    f"{name.replace('_', ' ')} {value}{as_it_is}".strip(),
                    ", ".join(f"{fmean(each):.2f}" for each in rates),
                    ", ".join(f"{max(each):.1f}" for each in rates),
                    "/".join(f"{recall:.2f}" for recall in recalls),
                    str(chosen[value]) if value else "",
                ]
            )


def choose_value(name: str, of_sources: Sequence[dict[str, dict[str, FirstScore]]], left_out: int) -> str:
    """The value of a constant that costs least on the other sources."""
    others = [scores[name] for k, scores in enumerate(of_sources) if k != left_out]
    return min(others[0], key=lambda value: fmean(by_value[value].cost for by_value in others))


def main(arguments: Sequence[str] | None = None) -> None:
    """The table."""
    parser = argparse.ArgumentParser(description="Score the rule of short histories source by source.")
    parser.add_argument("--series", type=Path, required=True, help="what bench.detection.sources wrote")
    parser.add_argument("--write", action="store_true", help="put the table into docs/method/sources.md")
    options = parser.parse_args(arguments)
    with Pool(os.cpu_count()) as pool:
        of_sources = pool.map(score_all, load_sources(options.series, pool.map), chunksize=1)
    print_published(table_rows(of_sources), PAGE, PART, write=options.write)


if __name__ == "__main__":
    main()
