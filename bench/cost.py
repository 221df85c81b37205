"""What a run costs: seconds of the whole against seconds of measured steps, before a change and after it.

    python -m bench.cost                                        # a small script and the standard benchmarks
    python -m bench.cost --before OTHER/trainers/harness/src    # beside another version of the harness
    python -m bench.cost --readme                               # the table goes into bench/README.md too

Each kind of run takes its turn in each round. The second commit of `now, next commit` changes a file that no
counting reads.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from paceline.units import align_columns

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "bench" / "README.md"
NOW = ROOT / "trainers" / "harness" / "src"
MARKERS = ("<!-- cost: python -m bench.cost --readme -->", "<!-- end of cost -->")
BEFORE, FIRST, NEXT = "before", "now, first commit", "now, next commit"
HEADS = ("case", "run", "whole", "processors", "starts", "measured", "whole / (starts + 2 measured)")
STANDARD = ("snake_dqn", "snake_vectorized", "zelda_overworld", "mario_pipeline", "cs2_vision")
VARIANT = "variant=optimized"
SMALL = """
import torch
import paceline

torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
optimizer = torch.optim.Adam(network.parameters())
batch = torch.randn(256, 64)
for _ in paceline.steps(range(10**9)):
    with paceline.phase("learn"):
        loss = network(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SMALL_MANIFEST = """
[benchmarks.small]
version = 1
script = "train.py"
warmup_steps = 200
steps = 2000
"""


@dataclass(frozen=True, slots=True)
class RunCost:
    """Seconds by the clock and of processors, of the measured steps, and of one start for each process."""

    whole: float
    processors: float
    measured: float
    starts: float

    @property
    def excess(self) -> float:
        """The whole over one start for each process and twice the measured steps."""
        return self.whole / (self.starts + 2 * self.measured)


@dataclass(frozen=True, slots=True)
class MeasuredCase:
    """What is run: a benchmark in a checkout, quickly or in standard."""

    name: str
    folder: Path
    options: tuple[str, ...]


def measure_costs(names: list[str], rounds: int, before: Path | None) -> str:
    """The table, with a line about the machine."""
    load = os.getloadavg()[0]
    with prepare_cases(names) as cases:
        rows = [row for case in cases for row in measure_case_costs(case, rounds, before)]
    busy = (
        f"{os.cpu_count()} processors, load {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end"
    )
    return f"Median of {rounds}; {busy}.\n\n{align_columns([list(HEADS), *rows])}"


@contextmanager
def prepare_cases(names: list[str]) -> Iterator[list[MeasuredCase]]:
    """The cases in folders as a host checks them out: with the tracked files, and nothing beside them."""
    with tempfile.TemporaryDirectory() as folder:
        checkout, small = Path(folder, "checkout"), Path(folder, "small")
        for made in (checkout, small):
            made.mkdir()
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", str(checkout)], input=archive.stdout, check=True)
        (small / "train.py").write_text(SMALL)
        (small / "paceline.toml").write_text(SMALL_MANIFEST)
        known = {"small": MeasuredCase("small", small, ())}
        for name in STANDARD:
            options = ("--quick", "--set", VARIANT)
            known[name] = MeasuredCase(name, checkout, options)
        yield [known[name] for name in names]


def measure_case_costs(case: MeasuredCase, rounds: int, before: Path | None) -> list[list[str]]:
    """The rows of one case. One counting that repeats is known to be exact after the second commit alone."""
    found: dict[str, list[RunCost]] = {}
    for _ in range(rounds):
        if before is not None:
            found.setdefault(BEFORE, []).append(time_run(case, before)[0])
        cost, first = time_run(case, NOW)
        found.setdefault(FIRST, []).append(cost)
        known = first if "--quick" not in case.options else time_run(case, NOW, first)[1]
        found.setdefault(NEXT, []).append(time_run(case, NOW, known)[0])
    return [[case.name, kind, *format_costs(costs)] for kind, costs in found.items()]


def time_run(
    case: MeasuredCase, harness: Path, counted: Mapping[str, Any] | None = None
) -> tuple[RunCost, dict[str, Any]]:
    """Run it once; its cost and its document."""
    with tempfile.TemporaryDirectory() as folder:
        path, given = Path(folder, "document.json"), Path(folder, "counted.json")
        command = [sys.executable, "-P", "-m", "paceline", "run", case.name, *case.options]
        command += ["--document", str(path)]
        if counted is not None:
            given.write_text(json.dumps({"commit": 40 * "0", "document": counted}))
            command += ["--counted", str(given)]
        spent, began = processor_seconds(), perf_counter()
        subprocess.run(
            command,
            check=True,
            cwd=case.folder,
            env={**os.environ, "PYTHONPATH": str(harness)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        whole = perf_counter() - began
        document: dict[str, Any] = json.loads(path.read_text())
    return read_cost(document, whole, processor_seconds() - spent), document


def read_cost(document: Mapping[str, Any], whole: float, processors: float) -> RunCost:
    """From what every version's document tells: a counting starts as a repetition does."""
    repetitions = document["repetitions"]
    start = statistics.median(row["startup_seconds"] for row in repetitions)
    counted = bool(document["profile"]) and not (document.get("counting") or {}).get("counted_at")
    countings = document["protocol"]["countings"] if counted else 0
    measured = sum(row["seconds"] for row in repetitions)
    return RunCost(whole, processors, measured, (len(repetitions) + countings) * start)


def processor_seconds() -> float:
    """Of all processes that ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def format_costs(costs: list[RunCost]) -> list[str]:
    """The cells of a row, medians."""

    def median_of(name: str) -> float:
        return statistics.median(getattr(cost, name) for cost in costs)

    seconds = [f"{median_of(name):.1f} s" for name in ("whole", "processors", "starts", "measured")]
    return [*seconds, f"{median_of('excess'):.2f}"]


def write_readme(table: str) -> None:
    """Put the table between its markers."""
    text = README.read_text()
    head, _, rest = text.partition(MARKERS[0])
    _, _, tail = rest.partition(MARKERS[1])
    README.write_text(f"{head}{MARKERS[0]}\n```\n{table}\n```\n{MARKERS[1]}{tail}")


def main() -> None:
    """Measure what was asked for, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.cost", description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of small, {', '.join(STANDARD)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, help="the folder of another version's harness package")
    parser.add_argument("--readme", action="store_true", help="write the table into bench/README.md")
    arguments = parser.parse_args()
    names = arguments.cases or ["small", *STANDARD]
    if unknown := set(names) - {"small", *STANDARD}:
        parser.error(f"there is no case {', '.join(sorted(unknown))}")
    table = measure_costs(names, arguments.rounds, arguments.before and arguments.before.resolve())
    print(table)
    if arguments.readme:
        write_readme(table)


if __name__ == "__main__":
    main()
