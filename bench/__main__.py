"""Measure what measuring costs: `make bench`. See README.md in this folder for how to read it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def main() -> None:
    """Run the parts that were asked for, and print their tables."""
    arguments = _parse_arguments()
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load {load:.1f}, Python {sys.version.split()[0]}\n", flush=True)
    if load > 0.5:
        print("Other work is running: these figures are worse than this machine's own.\n", flush=True)
    for name, part in _benchmark_parts(arguments).items():
        if name in arguments.parts:
            print(part(), flush=True)


def _import_part(name: str) -> Any:
    """Import a part's module when it is run: some of them import torch, which takes seconds."""
    return import_module(f".{name}", __package__)


def _benchmark_parts(arguments: argparse.Namespace) -> dict[str, Callable[[], str]]:
    return {
        "marks": lambda: _import_part("marks").measure_marks(arguments.rounds),
        "overhead": lambda: _import_part("overhead").measure_overhead(arguments.pairs),
        "automatic": lambda: _import_part("automatic").measure_automatic_phases(arguments.pairs),
        "counters": lambda: _import_part("counters").measure_counters(arguments.processes),
        "ranks": lambda: _import_part("rank_overhead").measure_rank_overhead(arguments.rank_pairs),
        "growth": lambda: _import_part("growth").measure_growth(arguments.steps),
        "turns": lambda: _import_part("turns").measure_turns(
            "snake_dqn", ["variant=optimized"], arguments.noisy_pairs
        ),
        "box": lambda: _import_part("box").measure_box(
            "snake_dqn", ["variant=optimized"], arguments.starts, arguments.box_pairs
        ),
        "judging": lambda: _import_part("judging").measure_judging(arguments.judgements),
        "import": lambda: _import_part("importing").measure_import(arguments.commits),
        "ingest": lambda: _import_part("ingest").measure_ingest(arguments.stored),
        "repeat": lambda: _import_part("repeat").measure_repeatability(
            "snake_dqn", ["variant=optimized"], arguments.runs, arguments.quick
        ),
    }


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = [
        *("marks", "overhead", "automatic", "counters", "ranks", "growth", "turns", "box"),
        *("judging", "import", "ingest", "repeat"),
    ]
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(names)}; default all")
    parser.add_argument("--rounds", type=int, default=1000, help="rounds of the marks")
    parser.add_argument("--pairs", type=int, default=240, help="pairs of blocks, bare and measured")
    parser.add_argument("--rank-pairs", type=int, default=80, help="pairs of blocks of four ranks")
    parser.add_argument("--noisy-pairs", type=int, default=6, help="pairs of one commit, of each kind")
    parser.add_argument("--processes", type=int, default=10, help="processes of each framework")
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps of the memory's growth")
    parser.add_argument("--starts", type=int, default=20, help="starts of each kind of box")
    parser.add_argument("--box-pairs", type=int, default=6, help="pairs inside and outside a box; 0 for none")
    parser.add_argument("--judgements", type=int, default=20, help="judgements of each kind")
    parser.add_argument("--commits", type=int, default=1000, help="commits of what is imported")
    parser.add_argument("--stored", type=int, default=120, help="runs that are stored and judged")
    parser.add_argument("--runs", type=int, default=5, help="runs of A/A")
    parser.add_argument("--quick", action=argparse.BooleanOptionalAction, default=True, help="short A/A runs")
    arguments = parser.parse_args()
    arguments.parts = arguments.parts or names
    unknown = set(arguments.parts) - set(names)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; the parts are {', '.join(names)}")
    return arguments


if __name__ == "__main__":
    main()
