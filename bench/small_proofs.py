"""Real experiments on commits without a step and with a small one: how often they err, and what they take.

    python -m bench.small_proofs measure /tmp/pairs --minutes 30 --neighbour
    python -m bench.small_proofs measure /tmp/pairs --minutes 30 --neighbour --step 0.01
    python -m bench.small_proofs judge /tmp/pairs
    python -m bench.small_proofs draw /tmp/pairs --experiments 40

Pairs are measured as a worker measures them: by the harness, in turns, and read by what reads them there.
They are weighed one after the other as the site does, until a verdict; the next pair begins another
experiment. Of few pairs many experiments are drawn, with steps planted in the head's.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

import django
import numpy as np
from paceline import document
from paceline.measured.turns import FIRST, SECOND

from bench.lines import Line, format_part
from bench.robustness.null_commits import coming_and_going_neighbour
from dashboard.detection.paired_steps import OF_MEDIAN_DEVIATION, bound_far, comparable_pairs
from dashboard.detection.segmentation import Floats
from workers.host.execution import pair_values
from workers.host.execution.experiment_executor import is_base_first, seed_of_pair

if TYPE_CHECKING:
    from dashboard.models import Experiment, ExperimentPair

# A step of some 2 ms. What a head does more is in `learn`, in every step, or in each twentieth alone.
SCRIPT = """
import argparse
import paceline

parser = argparse.ArgumentParser()
parser.add_argument("--work", type=int)
parser.add_argument("--rare", type=int)
options = parser.parse_args()
for step in paceline.steps(range(10**9)):
    with paceline.phase("act"):
        sum(range(20_000))
    with paceline.phase("learn"):
        sum(number * number for number in range(options.work))
    if step % 20 == 0:
        with paceline.phase("evaluate"):
            sum(number * number for number in range(options.rare))
"""
MANIFEST = """
[benchmarks.loop]
version = 1
script = "train.py"
warmup_steps = 10
steps = 200
counting_steps = 4
repetitions = 3
time_limit = 120
cases = [{ work = 40000, rare = 80000 }]
"""
# A whole step in units of `work`, with what the phase `act` takes.
OF_THE_STEP = 40_000 + 80_000 / 20 + 6_000
SUSPECTED = (0.01, 0.03)
# So many neighbouring pairs are drawn together: what correlates them stays.
DRAWN_TOGETHER = 4
# The script evaluates each time after so many steps.
RARE_EVERY = 20
PLANTED = {"nothing": (0.0, False), "1 % in all steps": (0.01, False), "1 % in each twentieth": (0.01, True)}
# A line is put through no fewer pairs.
FEWEST_TO_FIT = 20
UNSUSPECTED: dict[str, dict[str, Any]] = {
    "check of 3%": {"question": "bound", "floor": 0.03, "error": 0.002},
    "estimate to 1%": {"question": "estimate", "precision": 0.01, "error": 0.01},
}


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """As a host hands a pair in; with how many seconds it took, and the load before it.

    `calibration`: seconds of the calibration loop around both sides' windows, the mean of before and behind.
    """

    base_first: bool
    base: float
    head: float
    disturbed: bool
    steps: dict[str, list[float]]
    waited: tuple[float, float]
    seconds: float
    load: float
    calibration: tuple[float, float] | None = None


def measure_pairs(folder: Path, minutes: float, step: float, in_rare_steps: bool, neighbour: bool) -> None:
    """Add pairs to the folder's file until the minutes are over."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{'rare-' if in_rare_steps else ''}{step:g}.jsonl"
    until, dice = time.monotonic() + 60 * minutes, random.Random(1)
    with (
        tempfile.TemporaryDirectory() as place,
        coming_and_going_neighbour(dice) if neighbour else nullcontext(),
    ):
        Path(place, "train.py").write_text(SCRIPT)
        Path(place, "paceline.toml").write_text(MANIFEST)
        indices = itertools.takewhile(lambda _: time.monotonic() < until, itertools.count())
        keep_pairs(
            folder / name, (measure_pair(Path(place), index, step, in_rare_steps) for index in indices)
        )


def keep_pairs(path: Path, pairs: Iterable[MeasuredPair]) -> None:
    """Add them to a file, each as soon as it is known."""
    with path.open("a") as kept:
        for pair in pairs:
            print(json.dumps(asdict(pair)), file=kept, flush=True)


def measure_pair(place: Path, index: int, step: float, in_rare_steps: bool) -> MeasuredPair:
    """One repetition of both sides in turns; the head's step takes longer by this part."""
    more = round(step * OF_THE_STEP)
    longer = f"--set=rare={80_000 + 20 * more}" if in_rare_steps else f"--set=work={40_000 + more}"
    load, started = os.getloadavg()[0], time.monotonic()
    base, head = measure_sides(place, index, [longer])
    values = [step_time(measured) for measured in (base, head)]
    return MeasuredPair(
        base_first=is_base_first(1, index),
        base=values[0],
        head=values[1],
        disturbed=any(pair_values.is_disturbed(measured, True) for measured in (base, head)),
        steps=pair_values.steps_of_both(base, head),
        waited=(base.repetitions[0].waited, head.repetitions[0].waited),
        seconds=time.monotonic() - started,
        load=load,
        calibration=(calibration_of(base), calibration_of(head)),
    )


def calibration_of(measured: document.Document) -> float:
    (repetition,) = measured.repetitions
    return (repetition.calibration_before + repetition.calibration_after) / 2


def measure_sides(
    place: Path, index: int, words: Sequence[str] = ()
) -> tuple[document.Document, document.Document]:
    """The documents of base and head, which took turns; the head is measured with these words more."""
    base_first = is_base_first(1, index)
    order = ("base", "head") if base_first else ("head", "base")
    running = []
    for side, pipe in zip(order, (FIRST, SECOND), strict=True):
        (place / pipe).unlink(missing_ok=True)
        command = [sys.executable, "-P", "-m", "paceline", "run", "loop", "--repetitions=1", "--timed-only"]
        command += [f"--document={side}.json", f"--turns={pipe}", f"--hash-seed={seed_of_pair(1, index)}"]
        command += words if side == "head" else ()
        running.append(
            subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
    if any([process.wait() for process in running]):  # noqa: C419  # all are waited for
        raise SystemExit(f"a repetition failed; run it by hand in {place}")
    base, head = (document.read_document((place / f"{side}.json").read_bytes()) for side in ("base", "head"))
    return base, head


def step_time(measured: document.Document) -> float:
    row = next(row for row in measured.metrics if row.name == "step_time" and row.phase is None)
    return pair_values.value_of_metric(row, measured, in_turns=True)


def read_pairs(path: Path) -> list[MeasuredPair]:
    return [MeasuredPair(**json.loads(line)) for line in path.read_text().splitlines()]


def judge_pairs(
    measured: Iterable[MeasuredPair], experiment: Experiment, *, by_steps: bool = True
) -> Iterator[tuple[str, int, float]]:
    """The verdict of each experiment in turn, its pairs and its seconds; the last one may be without.

    `by_steps`: or else by the means of pairs alone.
    """
    from dashboard.experiments.single_steps import compare_newest
    from dashboard.experiments.verdicts import evaluate_experiment

    taken, seconds = list[Any](), 0.0
    for pair in measured:
        seconds += pair.seconds
        row = pair_row(len(taken), pair)
        if by_steps:
            compare_newest(row, [before for before in taken if not before.disturbed])
        taken.append(row)
        result = evaluate_experiment(experiment, taken, seconds)
        if result.verdict:
            yield result.verdict, len(taken), seconds
            taken, seconds = [], 0.0


def suspected_step(suspected: float) -> Experiment:
    """A proof of a step of this part, as a regression asks for it; of one that only a phase shows."""
    from dashboard.models import Experiment, Metric

    metric = Metric(name="step_time", unit="s", better="lower", kind="time")
    return Experiment(
        question="test",
        purpose="proof",
        metric=metric,
        before=1.0,
        after=1 + suspected,
        in_turns=True,
        phases_with_step=["learn"] if suspected < 0.03 else [],
    )


def unsuspected_difference(question: str, **asked: float) -> Experiment:
    """What a check asks (`bound`, with its floor and its error), or a person (`estimate`, to a precision)."""
    from dashboard.models import Experiment, Metric

    metric = Metric(name="step_time", unit="s", better="lower", kind="time")
    return Experiment(question=question, purpose="check", metric=metric, in_turns=True, **asked)


def pair_row(index: int, pair: MeasuredPair) -> ExperimentPair:
    from dashboard.models import ExperimentPair

    return ExperimentPair(
        index=index,
        base_first=pair.base_first,
        base=pair.base,
        head=pair.head,
        disturbed=pair.disturbed,
        steps=pair.steps,
        seconds=pair.seconds,
    )


def draw_pairs(measured: Sequence[MeasuredPair], dice: random.Random) -> Iterator[MeasuredPair]:
    """Pairs without end, some neighbours at a time."""
    while True:
        first = dice.randrange(len(measured) - DRAWN_TOGETHER + 1)
        yield from measured[first : first + DRAWN_TOGETHER]


def rare_steps(times: Floats) -> slice:
    """Of the times of steps (n,) each twentieth: those that take longest."""
    places = (slice(place, None, RARE_EVERY) for place in range(RARE_EVERY))
    return max(places, key=lambda place: float(np.median(times[place])))


def without_difference(measured: Sequence[MeasuredPair]) -> list[MeasuredPair]:
    """Undisturbed pairs of as many steps each, less what their sides differ by: what is planted is all."""
    base, head = (np.array([pair.steps[side] for pair in measured]) for side in ("base", "head"))
    rare = rare_steps(np.median(base, axis=0))
    ratios = np.log(head / base)
    typical = np.median(ratios, axis=1)
    head[:, rare] /= math.exp(np.median(ratios[:, rare] - typical[:, None]))
    first = np.array([pair.base_first for pair in measured])
    comparable, _ = comparable_pairs(np.median(np.log(head / base), axis=1), first)
    head /= math.exp(comparable.mean())
    means = math.exp(bound_far(np.log([pair.head / pair.base for pair in measured])).mean())
    return [
        replace(pair, head=pair.head / means, steps={**pair.steps, "head": steps.tolist()})
        for pair, steps in zip(measured, head, strict=True)
    ]


def with_longer_head(pair: MeasuredPair, step: float, in_rare_steps: bool) -> MeasuredPair:
    """The pair as if the head's step took longer by this part: all steps, or each twentieth alone."""
    longer = {side: np.array(values) for side, values in pair.steps.items()}
    if in_rare_steps:
        base, rare = longer["base"], rare_steps(longer["base"])
        longer["head"][rare] *= 1 + step * base.sum() / base[rare].sum()
    else:
        longer["head"] *= 1 + step
    steps = {side: values.tolist() for side, values in longer.items()}
    return replace(pair, head=pair.head * (1 + step), steps=steps)


def describe_drawn(path: Path, experiments: int) -> str:
    """The verdicts of so many drawn experiments for each step that is planted, where 1 % is suspected."""
    undisturbed = [pair for pair in read_pairs(path) if not pair.disturbed]
    most = max(len(pair.steps.get("base", ())) for pair in undisturbed)
    measured = without_difference([pair for pair in undisturbed if len(pair.steps.get("base", ())) == most])
    lines: list[Line] = []
    for name, planted in PLANTED.items():
        pairs = [with_longer_head(pair, *planted) for pair in measured]
        judged = (
            next(judge_pairs(draw_pairs(pairs, random.Random(seed)), suspected_step(SUSPECTED[0])))
            for seed in range(experiments)
        )
        lines += verdict_lines(name, judged)
    return format_part(f"{path.stem}: drawn from {len(measured)} pairs", ["", "", ""], lines)


def describe_folder(folder: Path, describe: Callable[[Path], str]) -> str:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    return "\n".join(describe(path) for path in sorted(folder.glob("*.jsonl")))


def describe_file(path: Path) -> str:
    measured = read_pairs(path)
    undisturbed = [pair for pair in measured if not pair.disturbed]
    waited = mean(share for pair in measured for share in pair.waited)
    load = mean(pair.load for pair in measured)
    title = (
        f"{path.stem}: {len(measured)} pairs, {len(measured) - len(undisturbed)} disturbed, "
        f"{mean(pair.seconds for pair in measured):.1f} s each; "
        f"load {load:.1f}, {waited:.0%} of the time a processor was waited for"
    )
    lines = list(noise_lines(undisturbed))
    for suspected in SUSPECTED:
        lines += verdict_lines(f"{suspected:.0%} suspected", judge_pairs(measured, suspected_step(suspected)))
    for name, asked in UNSUSPECTED.items():
        for look, by_steps in (("by means", False), ("by single steps too", True)):
            judged = judge_pairs(measured, unsuspected_difference(**asked), by_steps=by_steps)
            lines += verdict_lines(f"{name}, {look}", judged)
    return format_part(title, ["", "", ""], lines)


def noise_lines(undisturbed: Sequence[MeasuredPair]) -> Iterator[Line]:
    """How far pairs lie apart, by what is compared."""
    with_waiting = [
        math.log(pair.head / (1 - pair.waited[1]) * (1 - pair.waited[0]) / pair.base) for pair in undisturbed
    ]
    less_waiting = [math.log(pair.head / pair.base) for pair in undisturbed]
    steps = [
        float(np.median(np.log(np.array(pair.steps["head"]) / np.array(pair.steps["base"]))))
        for pair in undisturbed
    ]
    yield Line("deviation of a pair, by the means of its window", describe_deviation(with_waiting))
    yield Line("less what was waited", describe_deviation(less_waiting))
    yield Line("by single steps", describe_deviation(steps))
    loops = [math.log(pair.calibration[1] / pair.calibration[0]) for pair in undisturbed if pair.calibration]
    if len(loops) == len(undisturbed) > FEWEST_TO_FIT:
        corrected = {
            "less waiting and calibration loops": less_waiting,
            "by single steps, less calibration loops": steps,
        }
        for name, values in corrected.items():
            yield Line(name, describe_deviation(less_calibration(np.array(values), np.array(loops))))


def less_calibration(values: Floats, loops: Floats) -> Floats:
    """Log ratios of pairs (n,) less what those of their calibration loops tell, by a line through the others.

    Where that lowers the deviation, the loops would be a control variate.
    """
    design = np.column_stack([np.ones(len(values)), loops])
    projection = design @ np.linalg.pinv(design)
    # Each pair's distance from the line through all others (leave one out).
    return np.asarray((values - projection @ values) / (1 - np.diag(projection)))


def describe_deviation(values: Sequence[float] | Floats) -> str:
    """A pair far from all others doesn't count: by the median distance from the median."""
    off = np.abs(np.array(values) - np.median(values))
    return f"{100 * OF_MEDIAN_DEVIATION * np.median(off):.2f} %"


def verdict_lines(asked: str, judged: Iterable[tuple[str, int, float]]) -> Iterator[Line]:
    found = list(judged)
    verdict_counts = Counter(verdict for verdict, _, _ in found)
    if found:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdict_counts.items()))
        pairs, took = mean(count for _, count, _ in found), [seconds / 60 for _, _, seconds in found]
        yield Line(
            f"{asked}, {len(found)} experiments",
            counts,
            f"{pairs:.1f} pairs, {mean(took):.1f} min, at most {max(took):.1f}",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=["measure", "judge", "draw"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--step", type=float, default=0.0, help="by which part the head takes longer")
    parser.add_argument("--rare", action="store_true", help="in each twentieth step alone")
    parser.add_argument("--neighbour", action="store_true", help="a core is used by another, now and then")
    parser.add_argument("--experiments", type=int, default=40, help="to be drawn for each planted step")
    options = parser.parse_args()
    if options.what == "measure":
        measure_pairs(options.folder, options.minutes, options.step, options.rare, options.neighbour)
    drawn = partial(describe_drawn, experiments=options.experiments)
    print(describe_folder(options.folder, drawn if options.what == "draw" else describe_file))


if __name__ == "__main__":
    main()
