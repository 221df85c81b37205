"""The arguments of the command `run`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(run: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    run.add_argument("name", help="a benchmark of the manifest")
    run.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="choose or change a case"
    )
    run.add_argument("--repetitions", type=int, metavar="R", help="instead of the manifest's")
    run.add_argument("--seed", type=int, metavar="N", help="instead of the manifest's seeds")
    run.add_argument(
        "--hash-seed", type=int, metavar="N", help="what Python's hashes of texts begin with; else the seed"
    )
    run.add_argument(
        "--quick", action="store_true", help="a short look: the manifest's quick table, no guard"
    )
    run.add_argument(
        "--timed-only", action="store_true", help="only the timed repetitions: no counting, no sweep"
    )
    run.add_argument(
        "--no-counting", action="store_true", help="only what is timed: the repetitions and the sweep"
    )
    run.add_argument("--no-sweep", action="store_true", help="the repetitions and the counting alone")
    run.add_argument(
        "--turns",
        type=Path,
        metavar="FOLDER/first",
        help="take the steps in turn with another run, which is given FOLDER/second",
    )
    run.add_argument(
        "--profile-device", action="store_true", help="with --quick too: one more repetition, profiled"
    )
    run.add_argument(
        "--trace", type=Path, metavar="PATH", help="keep its trace, for chrome://tracing and Perfetto"
    )
    run.add_argument(
        "--counted",
        type=Path,
        metavar="PATH",
        help="a commit counted before and its document, to take over counters that must be the same",
    )
    run.add_argument("--document", type=Path, metavar="PATH", help="where to write the document")
    run.add_argument("--progress", type=Path, metavar="PATH", help="keep the progress in this file, as JSON")
    run.add_argument("--manifest", type=Path, help="instead of the paceline.toml found upwards from here")
    run.add_argument("--folder", type=Path, help="where scripts are found; default: the manifest's folder")
    run.add_argument("--prepared", action="store_true", help="run no prepare command, the data is there")
    run.add_argument("--watch-stdin", action="store_true", help="end when the standard input does")
