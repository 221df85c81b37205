"""Real pairs in turns, with a step put into one phase: is it named, and what do claims about phases become.

    python -m bench.phase_pairs measure /tmp/pairs/busy.jsonl --minutes 5 --neighbour
    python -m bench.phase_pairs judge /tmp/pairs/busy.jsonl

Both sides do the same. Pairs are measured and read as a worker does it; the head's time in one phase is then
made longer, by a part of the whole step. Many draws of some of the pairs are asked what the site asks them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

import django
import numpy as np
from paceline.document import Document

from bench.detection.planted_parts import PLANTED, SHARES, STEPS
from bench.robustness.null_commits import coming_and_going_neighbour
from bench.small_proofs import describe_deviation, measure_sides
from workers.host.execution import pair_values
from workers.host.execution.experiment_executor import is_base_first
from workers.host.execution.typical_times import Times, typical_times_by_phase

if TYPE_CHECKING:
    from dashboard.models import ExperimentPair

SCRIPT = f"""
import argparse
import paceline

parser = argparse.ArgumentParser()
parser.add_argument("--work", type=int)
work = parser.parse_args().work
shares = {SHARES}
for step in paceline.steps(range(10**9)):
    for name, share in shares.items():
        with paceline.phase(name):
            sum(number * number for number in range(int(share * work)))
"""
MANIFEST = """
[benchmarks.loop]
version = 1
script = "train.py"
warmup_steps = 10
steps = 300
counting_steps = 4
repetitions = 3
time_limit = 120
cases = [{ work = 40000 }]
"""
DRAWS, DRAWN = 400, (8, 24)
LOOKS = ("means", "steps")
# As claims spell them.
CLAIMED = (
    "phase_time:log",
    "phase_time:sample",
    "phase_time:update",
    "phase_time:act+env",
    "phase_share:update",
)


@dataclass(frozen=True, slots=True)
class PhasesOfPair:
    """What a host hands in of a pair's phases, seconds per step; with the load before it."""

    base_first: bool
    phases: Mapping[str, Times]
    typical: Mapping[str, Times]
    waited: float
    seconds: float
    load: float

    def with_longer_phase(self, name: str, factor: float) -> PhasesOfPair:
        """The head's time in this phase times a factor."""
        by_mean, typical = (
            {
                phase: (base, head * factor if phase == name else head)
                for phase, (base, head) in phases.items()
            }
            for phases in (self.phases, self.typical)
        )
        return PhasesOfPair(self.base_first, by_mean, typical, self.waited, self.seconds, self.load)


def measure_pairs(path: Path, minutes: float, neighbour: bool) -> None:
    """Add undisturbed pairs to the file until the minutes are over."""
    path.parent.mkdir(parents=True, exist_ok=True)
    until, index = time.monotonic() + 60 * minutes, 0
    beside = coming_and_going_neighbour(random.Random(1)) if neighbour else nullcontext()
    with tempfile.TemporaryDirectory() as folder, beside, path.open("a") as kept:
        place = Path(folder)
        (place / "train.py").write_text(SCRIPT)
        (place / "paceline.toml").write_text(MANIFEST)
        while time.monotonic() < until:
            if pair := measure_pair(place, index):
                print(json.dumps(asdict(pair)), file=kept, flush=True)
            index += 1


def measure_pair(place: Path, index: int) -> PhasesOfPair | None:
    """None of one that other work disturbed."""
    load, started = os.getloadavg()[0], time.monotonic()
    base, head = measure_sides(place, index)
    if any(pair_values.is_disturbed(measured, True) for measured in (base, head)):
        return None
    return read_phases(base, head, index=index, seconds=time.monotonic() - started, load=load)


def read_phases(base: Document, head: Document, *, index: int, seconds: float, load: float) -> PhasesOfPair:
    phases = pair_values.own_times_by_phase(base, head, in_turns=True)
    waited = fmean(measured.repetitions[0].waited for measured in (base, head))
    typical = typical_times_by_phase(base, head, phases)
    return PhasesOfPair(is_base_first(1, index), phases, typical, waited, seconds, load)


def read_pairs(path: Path) -> list[PhasesOfPair]:
    return [PhasesOfPair(**json.loads(line)) for line in path.read_text().splitlines()]


def pair_rows(pairs: Sequence[PhasesOfPair], *, by_steps: bool) -> list[ExperimentPair]:
    """As the site keeps them; without what typical steps say, or with it."""
    from dashboard.models import ExperimentPair

    return [
        ExperimentPair(
            index=index,
            base_first=pair.base_first,
            base=sum(base for base, _ in pair.phases.values()),
            head=sum(head for _, head in pair.phases.values()),
            phases=pair.phases,
            typical_phases=pair.typical if by_steps else {},
        )
        for index, pair in enumerate(pairs)
    ]


def named_phase(pairs: Sequence[PhasesOfPair], *, by_steps: bool) -> str:
    """The phase that the site says explains the step; empty where it names none."""
    from dashboard.experiments.paired_phases import phases_of_pairs
    from dashboard.regressions.explanation.phase_shares import LEAST_SHARE, deepest_phase, delta_within

    deltas = phases_of_pairs(pair_rows(pairs, by_steps=by_steps)).deltas
    phase = deepest_phase(deltas)
    part = delta_within(deltas, phase)
    return phase if part > 0 and part >= LEAST_SHARE * max(sum(deltas.values()), 0.0) else ""


def measured_share(pairs: Sequence[PhasesOfPair], name: str) -> float:
    """Of the whole step, by the base's typical steps."""
    return median(pair.typical[name][0] / sum(base for base, _ in pair.typical.values()) for pair in pairs)


def noise_table(pairs: Sequence[PhasesOfPair]) -> Iterator[str]:
    """How far pairs lie apart in each phase."""
    yield "| phase | of the whole | deviation of a pair, by means | by typical steps |"
    yield "|---|---|---|---|"
    for name in SHARES:
        sides = [
            np.array([pair.phases[name] for pair in pairs]),
            np.array([pair.typical[name] for pair in pairs]),
        ]
        cells = [describe_deviation(np.log(both[:, 1] / both[:, 0]).tolist()) for both in sides]
        yield f"| {name} | {measured_share(pairs, name):.0%} | {' | '.join(cells)} |"


def named_table(pairs: Sequence[PhasesOfPair]) -> Iterator[str]:
    """How often the right phase is named, and how often another one, by means and by typical steps."""
    heads = [
        f"{count} pairs, {look}: {outcome}"
        for count in DRAWN
        for look in LOOKS
        for outcome in ("right", "wrong")
    ]
    yield f"| step | phase | {' | '.join(heads)} |"
    yield f"|{'---|' * (2 + len(heads))}"
    for step in STEPS:
        for share, name in PLANTED.items():
            factor = 1 + step / measured_share(pairs, name)
            longer = [pair.with_longer_phase(name, factor) for pair in pairs]
            cells = []
            for count in DRAWN:
                dice = random.Random(count)
                draws = [dice.sample(longer, count) for _ in range(DRAWS)]
                for look in LOOKS:
                    named = [named_phase(drawn, by_steps=look == "steps") for drawn in draws]
                    right = named.count(name)
                    wrong = DRAWS - right - named.count("")
                    cells += [f"{100 * right / DRAWS:.1f}", f"{100 * wrong / DRAWS:.1f}"]
            yield f"| {step:.0%} | {share:.0%} | {' | '.join(cells)} |"


def claim_table(pairs: Sequence[PhasesOfPair]) -> Iterator[str]:
    """Half the width of a claim's interval, and how often it leaves out that nothing differs."""
    heads = [f"{look}: {column}" for look in LOOKS for column in ("±, median", "left out")]
    yield f"| claim, {DRAWN[-1]} pairs | {' | '.join(heads)} |"
    yield f"|{'---|' * (1 + len(heads))}"
    for spelling in CLAIMED:
        cells = []
        for look in LOOKS:
            dice = random.Random(1)
            found = [claim_interval(dice.sample(pairs, DRAWN[-1]), spelling, look) for _ in range(DRAWS)]
            half = median(math.sqrt(high / low) - 1 for low, high in found)
            left_out = sum(not low <= 1 <= high for low, high in found) / DRAWS
            cells += [f"{half:.1%}", f"{left_out:.1%}"]
        yield f"| {spelling} | {' | '.join(cells)} |"


def claim_interval(pairs: Sequence[PhasesOfPair], spelling: str, look: str) -> tuple[float, float]:
    """Of head / base, as a claim is settled by these pairs."""
    from paceline.claims.claims_file import parse_definition

    from dashboard.claims.judging import derived_ratio
    from dashboard.models import Experiment, Metric

    metric = Metric(name="step_time", unit="s", better="lower", kind="time")
    asked = Experiment(question="estimate", purpose="claim", metric=metric, in_turns=True, error=0.01)
    claim = parse_definition(
        {"id": "x", "claim": "x", "metric": spelling, "before": {"a": 1}, "after": {"a": 2}}
    )
    found = derived_ratio(claim, asked, pair_rows(pairs, by_steps=look == "steps"))
    if found is None:
        raise SystemExit(f"{spelling} isn't known")
    return found.low, found.high


def print_file(path: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    pairs = read_pairs(path)
    waited, load = fmean(pair.waited for pair in pairs), fmean(pair.load for pair in pairs)
    seconds = fmean(pair.seconds for pair in pairs)
    print(
        f"{len(pairs)} pairs of {seconds:.1f} s; load {load:.1f}, "
        f"{waited:.0%} of the time a processor was waited for"
    )
    for table in (noise_table, named_table, claim_table):
        print()
        for line in table(pairs):
            print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=["measure", "judge"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--neighbour", action="store_true", help="a core is used by another, now and then")
    options = parser.parse_args()
    if options.what == "measure":
        measure_pairs(options.file, options.minutes, options.neighbour)
    print_file(options.file)


if __name__ == "__main__":
    main()
