"""How a detector does, source by source: `python -m bench.detection.leave_one_out --series FOLDER`.

The folder is what `bench.detection.sources` wrote. Each source is scored by itself, beside an oracle; below
stand the mean over sources and the worst of them. `--choose` takes models out of the alarm's rule and moves
each of its constants, and says which value would be chosen with each source left out, and how it does on that
source.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean

from bench.detection.oracle import oracle_recalls
from bench.detection.printing import print_published
from bench.detection.scoring import (
    Alarms,
    Detector,
    count_false_alarms,
    detection_delay,
    lower_median,
    share_within,
)
from bench.detection.source_trials import PERCENTS, SourceTrials, load_source
from bench.detection.trials import Trial
from dashboard.detection.history_fit import (
    Candidates,
    History,
    find_candidates,
    proven_starts,
    scale_history,
)
from dashboard.detection.rules import ALARM, Rule

PAGE = Path(__file__).parents[2] / "docs" / "method" / "sources.md"
SOURCE_PART = re.compile(r"(<!-- sources:[^>]*-->\n).*?(<!-- end of sources -->)", re.DOTALL)
CHOICE_PART = re.compile(r"(<!-- choices:[^>]*-->\n).*?(<!-- end of choices -->)", re.DOTALL)

Summary = Callable[[list[float]], float]
Recalls = tuple[float, ...]  # of PERCENTS

FEWEST_STRETCHES = 3  # a source with fewer says nothing
# In 1,000 commits there are so many steps; missing one costs as much as a false alarm.
STEPS_PER_1000 = 10
AS_IT_IS = "as it is"
MODELS = {
    AS_IT_IS: ALARM,
    "no noisy stretches": replace(ALARM, advantage=0.0),
    "no autocorrelation": replace(ALARM, evidence=0.0),
    "no wander in the noise": replace(ALARM, reach=1),
    "no least step": replace(ALARM, least_step=0.0),
    "paid by all points": replace(ALARM, paid_within=0),
}
# Two values below and two above that of the rule.
NEIGHBOURS: dict[str, tuple[float, ...]] = {
    "cap": (4.0, 4.5, 5.5, 6.0),
    "growth": (2.0, 2.5, 3.5, 4.0),
    "reach": (6, 8, 12, 15),
    "baseline": (10, 12, 18, 22),
    "least_step": (0.7, 0.8, 1.0, 1.1),
    "evidence": (6.0, 8.0, 12.0, 15.0),
    "advantage": (5.0, 6.5, 10.0, 12.0),
    "over_slope": (0.0, 0.5, 1.5, 2.0),
    "paid_within": (20, 25, 40, 60),
}
Scores = Mapping[str, Mapping[str, "SourceScore"]]  # by rule and source
Remembered = dict[int, tuple[History, Candidates] | None]


@dataclass(frozen=True, slots=True)
class SourceScore:
    """How a detector does on one source, or on several together."""

    quiet: Alarms
    wandering: Alarms
    disturbed: Alarms
    recalls: Recalls
    delays: tuple[float, ...]
    real_recall: float

    @property
    def false_alarms(self) -> float:
        """Per 1,000 points of all stretches that nobody disturbed."""
        return sum_alarms([self.quiet, self.wandering]).per_1000


def score_source(detector: Detector, trials: SourceTrials) -> SourceScore:
    """All tracks of a source."""
    delays = [
        [detection_delay(detector, trial) for trial in trials.steps if trial.percent == percent]
        for percent in PERCENTS
    ]
    return SourceScore(
        count_alarms(detector, trials.change_free),
        count_alarms(detector, trials.wandering),
        count_alarms(detector, trials.disturbed),
        tuple(share_within(each) for each in delays),
        tuple(lower_median(each) for each in delays),
        share_within([detection_delay(detector, trial) for trial in trials.real_steps]),
    )


def count_alarms(detector: Detector, trials: Sequence[Trial]) -> Alarms:
    """The false alarms of several series."""
    return sum_alarms(count_false_alarms(detector, trial) for trial in trials)


def sum_alarms(each: Iterable[Alarms]) -> Alarms:
    """The alarms of several groups together."""
    alarms = list(each)
    return Alarms(sum(a.count for a in alarms), sum(a.points for a in alarms))


def moved_constants(constant: str) -> dict[str, Rule]:
    """The rule with each neighbour of a constant, and as it is, by name."""
    values = sorted((*NEIGHBOURS[constant], getattr(ALARM, constant)))
    return {name_rule(constant, value): replace(ALARM, **{constant: value}) for value in values}


def name_rule(constant: str, value: float) -> str:
    """What a rule with another value of one constant is called."""
    return AS_IT_IS if value == getattr(ALARM, constant) else f"{constant} {value:g}"


def score_rules(rules: Mapping[str, Rule], trials: SourceTrials) -> dict[str, SourceScore]:
    """How each rule does on a source; rules that differ in what they ask of candidates share these."""

    def fitted_by(name: str) -> tuple[float, ...]:
        rule = rules[name]
        return rule.cap, rule.growth, rule.reach, rule.baseline, bool(rule.evidence)

    scores: dict[str, SourceScore] = {}
    for _, names in groupby(sorted(rules, key=fitted_by), fitted_by):
        remembered: Remembered = {}
        for name in names:
            scores[name] = score_source(partial(detect_by_rule, rules[name], remembered), trials)
    return scores


def detect_by_rule(rule: Rule, remembered: Remembered, values: Sequence[float]) -> list[int]:
    """What `detect` finds, by another rule; the candidates of rules that agree on them are remembered."""
    key = hash(tuple(values))
    if key not in remembered:
        history = scale_history(values, rule.reach)
        candidates = find_candidates(history, rule)
        remembered[key] = (history, candidates) if candidates.starts else None
    found = remembered[key]
    return proven_starts(found[0], rule, found[1]) if found else []


def load_sources(folder: Path, each: Callable[..., Iterable[SourceTrials]] = map) -> list[SourceTrials]:
    """The sources of a folder that have stretches enough; `each` may be a pool's map."""
    sources = each(load_source, sorted(folder.glob("*.json")))
    return [trials for trials in sources if len(trials.change_free) >= FEWEST_STRETCHES]


def score_cells(rates: Sequence[float], recalls: Sequence[float]) -> list[str]:
    """The cells that all tables have."""
    return [", ".join(f"{rate:.2f}" for rate in rates), show_recalls(recalls)]


def show_recalls(recalls: Sequence[float]) -> str:
    """The recall of each size."""
    return "/".join(f"{recall:.2f}" for recall in recalls)


def source_rows(scores: Mapping[str, SourceScore], oracle: Mapping[str, Recalls]) -> Iterator[str]:
    """A line per source, the mean of them, and the worst value of each column; beside them the oracle's."""
    rates_of = "false alarms /1000: quiet, wandering, disturbed"
    recalls_of = ["recall 3/5/10 %", "the oracle's"]
    yield line_of(["source", rates_of, *recalls_of, "delay 5/10 %", "steps nobody planted"])
    yield "|---|---|---|---|---|---|"
    for name, score in scores.items():
        rates = (score.quiet.per_1000, score.wandering.per_1000, score.disturbed.per_1000)
        delays = "/".join(f"{delay:g}" for delay in score.delays[1:])
        cells = [*score_cells(rates, score.recalls), show_recalls(oracle[name])]
        yield line_of([name, *cells, delays, show_share(score.real_recall)])
    for title, worst, least in (("mean", fmean, fmean), ("worst", max, min)):
        told = show_recalls([least(list(each)) for each in zip(*oracle.values(), strict=True)])
        yield line_of([title, *summary_cells(scores, worst, least), told, "", ""])


def summary_cells(scores: Mapping[str, SourceScore], worst: Summary, least: Summary) -> list[str]:
    """False alarms and recalls over all sources, by one function for the first and one for the others."""
    all_scores = scores.values()
    rates = [
        worst([alarms.per_1000 for alarms in each])
        for each in zip(*((s.quiet, s.wandering, s.disturbed) for s in all_scores), strict=True)
    ]
    recalls = [least(list(each)) for each in zip(*(s.recalls for s in all_scores), strict=True)]
    return score_cells(rates, recalls)


def show_share(share: float) -> str:
    """A share, or a dash where there was nothing to find."""
    return "-" if math.isnan(share) else f"{share:.2f}"


def line_of(cells: Sequence[str]) -> str:
    """A line of a table."""
    return "| " + " | ".join(cells) + " |"


def mean_recall(score: SourceScore) -> float:
    """Over the sizes of steps."""
    return fmean(score.recalls)


def choose_variant(scores: Scores, left_out: str) -> str:
    """The variant that costs least on the other sources, in false alarms and missed steps."""

    def cost(variant: str) -> float:
        others = [score for source, score in scores[variant].items() if source != left_out]
        false = fmean(score.false_alarms for score in others)
        return false + STEPS_PER_1000 * (1 - fmean(map(mean_recall, others)))

    return min(scores, key=cost)


def model_rows(scores: Scores) -> Iterator[str]:
    """A line for the rule as it is, and for it without each of its models."""
    yield "| rule | mean false alarms | mean recall | worst false alarms | worst recall |"
    yield "|---|---|---|---|---|"
    for model in MODELS:
        mean, worst = summary_cells(scores[model], fmean, fmean), summary_cells(scores[model], max, min)
        yield line_of([model, *mean, *worst])


def constant_rows(scores: Scores, constants: Sequence[str]) -> Iterator[str]:
    """A line per constant: what would be chosen without each source, and how that does on these."""
    yield (
        "| constant | as it is | chosen, each source left out once | false alarms there: as it is, chosen | "
        "recall there: as it is, chosen | the worst source's false alarms, recall: as it is, chosen |"
    )
    yield "|---|---|---|---|---|---|"
    for constant in constants:
        rules = moved_constants(constant)
        tried = {name: scores[name] for name in rules}
        chosen = {source: choose_variant(tried, source) for source in scores[AS_IT_IS]}
        pairs = [scores[AS_IT_IS], {source: scores[name][source] for source, name in chosen.items()}]
        false = [[score.false_alarms for score in each.values()] for each in pairs]
        recall = [[mean_recall(score) for score in each.values()] for each in pairs]
        counts = Counter(f"{getattr(rules[name], constant):g}" for name in chosen.values())
        yield line_of(
            [
                constant.replace("_", " "),
                f"{getattr(ALARM, constant):g}",
                ", ".join(f"{value} ({count})" for value, count in counts.most_common()),
                ", ".join(f"{fmean(each):.2f}" for each in false),
                ", ".join(f"{fmean(each):.3f}" for each in recall),
                ", ".join(f"{max(f):.2f} {min(r):.2f}" for f, r in zip(false, recall, strict=True)),
            ]
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """The table of sources; with `--choose` the variants too."""
    parser = argparse.ArgumentParser(description="Score the detector source by source.")
    parser.add_argument("--series", type=Path, required=True, help="what bench.detection.sources wrote")
    parser.add_argument(
        "--choose",
        nargs="*",
        choices=[*NEIGHBOURS],
        metavar="CONSTANT",
        help="move these constants, or all: most of an hour of a core",
    )
    parser.add_argument("--models", action="store_true", help="the rule without each of its models too")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/method/sources.md")
    options = parser.parse_args(arguments)
    constants = [] if options.choose is None else options.choose or list(NEIGHBOURS)
    rules = dict(MODELS) if options.models else {AS_IT_IS: ALARM}
    for constant in constants:
        rules |= moved_constants(constant)
    with Pool(os.cpu_count()) as pool:
        sources = load_sources(options.series, pool.map)
        of_sources = pool.map(partial(score_rules, rules), sources, chunksize=1)
    scores = {
        name: {trials.name: of[name] for trials, of in zip(sources, of_sources, strict=True)}
        for name in rules
    }
    rows = source_rows(scores[AS_IT_IS], oracle_recalls(sources))
    print_published(rows, PAGE, SOURCE_PART, write=options.write)
    choices = [*(model_rows(scores) if options.models else ()), ""]
    choices += constant_rows(scores, constants) if constants else ()
    if options.models or constants:
        print_published(choices, PAGE, CHOICE_PART, write=options.write)


if __name__ == "__main__":
    main()
