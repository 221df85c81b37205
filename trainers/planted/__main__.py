"""Build a git repository of real training code in whose history changes of speed and memory are planted."""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

from .histories import demo, distributed, larger, same, toggles
from .repository import RepositoryError, claim_folder

HISTORIES = ("planted", "larger", "same", "toggles", "distributed")


def print_progress(sentence: str) -> None:
    """Tell whoever waits how far it is; standard output is for the answer."""
    print(sentence, file=sys.stderr, flush=True)


def create_history(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Make the history that was asked for."""
    if args.history == "same":
        return same.create_history(args.repository, seed, print_progress, args.commits, args.plant)
    if args.history == "toggles":
        return toggles.create_history(args.repository, args.benchmark, args.toggle)
    if args.history == "distributed":
        return distributed.create_history(args.repository, seed)
    history = {"planted": demo, "larger": larger}[args.history]
    return history.create_history(args.repository, seed, print_progress)


def main() -> None:
    """Read the arguments, build, and print what was planted."""
    parser = argparse.ArgumentParser(prog="python -m trainers.planted", description=__doc__)
    parser.add_argument("--repository", type=Path, required=True, help="folder to make; empty, if it exists")
    parser.add_argument("--history", choices=HISTORIES, default="planted", help="see README.md")
    parser.add_argument("--commits", type=int, default=30, help="of the history `same`")
    parser.add_argument("--plant", action="store_true", help="one slower commit in the history `same`")
    parser.add_argument("--benchmark", default="snake_dqn", help="whose toggles, of the history `toggles`")
    parser.add_argument("--toggle", action="append", default=[], help="only this toggle of it; repeatable")
    parser.add_argument("--seed", type=int, help="draws positions, order and sizes; random by default")
    parser.add_argument("--json", action="store_true", help="print the answer on one line")
    args = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if args.seed is None else args.seed
    if args.commits < same.FEWEST_COMMITS:
        sys.exit(f"planted: --commits is {args.commits}, must be {same.FEWEST_COMMITS} or more")
    try:
        claim_folder(args.repository)
        made = create_history(args, seed)
    except RepositoryError as error:
        sys.exit(f"planted: {error}")
    result = {"seed": seed, "repository": str(args.repository.resolve()), **made}
    print(json.dumps(result) if args.json else json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
