"""How a detector does, source by source: `python -m bench.detection.leave_one_out --series FOLDER`.

The folder is what `bench.detection.sources` wrote. Each source is scored by itself; below stand the mean over
sources and the worst of them. `--choose` scores variants of the alarm's rule and says which of them would be
chosen with each source left out, and how that choice does on the source it hasn't seen.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean

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
from dashboard.detection.changepoints import find_starts, scale_history
from dashboard.detection.rules import ALARM, Rule

PAGE = Path(__file__).parents[2] / "docs" / "method" / "sources.md"
PART = re.compile(r"(<!-- sources:[^>]*-->\n).*?(<!-- end of sources -->)", re.DOTALL)

Summary = Callable[[list[float]], float]

FEWEST_STRETCHES = 3  # a source with fewer says nothing
MOST_FALSE = 1.0  # per 1,000 points: of the rules that stay below it the one that finds most is chosen
VARIANTS = {
    "as it is": ALARM,
    "no noisy stretches": replace(ALARM, advantage=0.0),
    "no autocorrelation": replace(ALARM, evidence=0.0),
    "no wander in the noise": replace(ALARM, reach=1),
    "no least step": replace(ALARM, least_step=0.0),
    "least step 1.1": replace(ALARM, least_step=1.1),
    "evidence 8": replace(ALARM, evidence=8.0),
    "advantage 10": replace(ALARM, advantage=10.0),
}


@dataclass(frozen=True, slots=True)
class SourceScore:
    """How a detector does on one source, or on several together."""

    quiet: Alarms
    wandering: Alarms
    disturbed: Alarms
    recalls: tuple[float, ...]  # of PERCENTS
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


def detect_by_rule(rule: Rule, values: Sequence[float]) -> list[int]:
    """What `detect` finds, by another rule."""
    return find_starts(scale_history(values, rule.reach), rule)


def load_sources(folder: Path) -> list[SourceTrials]:
    """The sources of a folder that have stretches enough."""
    sources = [load_source(path) for path in sorted(folder.glob("*.json"))]
    return [trials for trials in sources if len(trials.change_free) >= FEWEST_STRETCHES]


def score_cells(rates: Sequence[float], recalls: Sequence[float]) -> list[str]:
    """The cells that all tables have."""
    return [", ".join(f"{rate:.2f}" for rate in rates), "/".join(f"{recall:.2f}" for recall in recalls)]


def source_rows(scores: Mapping[str, SourceScore]) -> Iterator[str]:
    """A line per source, the mean of them, and the worst value of each column."""
    rates_of = "false alarms /1000: quiet, wandering, disturbed"
    yield line_of(["source", rates_of, "recall 3/5/10 %", "delay 5/10 %", "steps nobody planted"])
    yield "|---|---|---|---|---|"
    for name, score in scores.items():
        rates = (score.quiet.per_1000, score.wandering.per_1000, score.disturbed.per_1000)
        delays = "/".join(f"{delay:g}" for delay in score.delays[1:])
        yield line_of([name, *score_cells(rates, score.recalls), delays, show_share(score.real_recall)])
    yield line_of(["mean", *summary_cells(scores, fmean, fmean), "", ""])
    yield line_of(["worst", *summary_cells(scores, max, min), "", ""])


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


def choose_variant(scores: Mapping[str, Mapping[str, SourceScore]], left_out: str) -> str:
    """The variant that finds most on the other sources, of those with few enough false alarms there."""

    def merit(variant: str) -> tuple[float, float]:
        others = [score for source, score in scores[variant].items() if source != left_out]
        false = fmean(score.false_alarms for score in others)
        recall = fmean(fmean(score.recalls) for score in others)
        return -max(false, MOST_FALSE), recall

    return max(scores, key=merit)


def variant_rows(scores: Mapping[str, Mapping[str, SourceScore]]) -> Iterator[str]:
    """A line per variant, and what would be chosen without each source."""
    yield "| rule | mean false alarms | mean recall | worst false alarms | worst recall |"
    yield "|---|---|---|---|---|"
    for variant, by_source in scores.items():
        mean, worst = summary_cells(by_source, fmean, fmean), summary_cells(by_source, max, min)
        yield line_of([variant, *mean, *worst])
    yield ""
    yield "| left out | chosen on the others | false alarms there, recall 3/5/10 % |"
    yield "|---|---|---|"
    for source in next(iter(scores.values())):
        chosen = choose_variant(scores, source)
        score = scores[chosen][source]
        recalls = "/".join(f"{recall:.2f}" for recall in score.recalls)
        yield line_of([source, chosen, f"{score.false_alarms:.2f}, {recalls}"])


def main(arguments: Sequence[str] | None = None) -> None:
    """The table of sources; with `--choose` the variants too."""
    parser = argparse.ArgumentParser(description="Score the detector source by source.")
    parser.add_argument("--series", type=Path, required=True, help="what bench.detection.sources wrote")
    parser.add_argument("--choose", action="store_true", help="score the rule's variants, a minute for each")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/method/sources.md")
    options = parser.parse_args(arguments)
    sources = load_sources(options.series)
    scores: dict[str, dict[str, SourceScore]] = {}
    for variant, rule in VARIANTS.items() if options.choose else [("as it is", ALARM)]:
        detector = partial(detect_by_rule, rule)
        scores[variant] = {trials.name: score_source(detector, trials) for trials in sources}
    lines = list(source_rows(scores["as it is"]))
    if options.choose:
        lines += ["", *variant_rows(scores)]
    print_published(lines, PAGE, PART, write=options.write)


if __name__ == "__main__":
    main()
