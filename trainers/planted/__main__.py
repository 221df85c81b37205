"""Build a git repository of real training code in whose history changes of speed and memory are planted."""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

from .histories import plan
from .histories.demo import Sized, build
from .repository import RepositoryError, claim, create


def describe(entry: Sized, commit: str) -> dict[str, Any]:
    """A planted change as the JSON tells it; `percent` is the change of the metric, as measured here."""
    plant = entry.planned.plant
    return {
        "commit": commit,
        "kind": "improvement" if entry.growth < 0 else "regression",
        "metric": plant.metric,
        "phase": plant.phase,
        "function": plant.function,
        "percent": round(100 * entry.growth, 1),
    }


def say(sentence: str) -> None:
    """Tell whoever waits how far it is; standard output is for the answer."""
    print(sentence, file=sys.stderr, flush=True)


def main() -> None:
    """Read the arguments, build, and print what was planted."""
    parser = argparse.ArgumentParser(prog="python -m trainers.planted", description=__doc__)
    parser.add_argument("--repository", type=Path, required=True, help="folder to make; empty, if it exists")
    parser.add_argument("--seed", type=int, help="draws positions, order and sizes; random by default")
    parser.add_argument("--json", action="store_true", help="print the answer on one line")
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if args.seed is None else args.seed
    try:
        claim(args.repository)
        history = build(seed, say)
        commits = create(args.repository, history.commits)
    except RepositoryError as error:
        sys.exit(f"planted: {error}")
    planted = [describe(entry, commits[entry.planned.position]) for entry in history.planted]
    result = {
        "seed": seed,
        "repository": str(args.repository.resolve()),
        "commits": commits,
        "measured": [commits[index] for index in plan.measured(len(commits))],
        "planted": planted,
    }
    print(json.dumps(result) if args.json else json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
