"""Score what a site found in a demonstration: `manage.py demo --wait --json | python -m bench.demo`."""

from __future__ import annotations

import argparse
import json
import sys

from bench.demo.scoring import format_scores, score_grouping, score_planted


def main() -> None:
    """The table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.demo", description=__doc__)
    parser.add_argument(
        "result",
        type=argparse.FileType(),
        nargs="?",
        default=sys.stdin,
        help="what `manage.py demo --json` printed (default: standard input)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, not a table")
    options = parser.parse_args()
    result = json.load(options.result)
    if options.json:
        scores = {"decided": score_planted(result), "grouping": score_grouping(result)}
        print(json.dumps(scores, indent=2))
    else:
        print("\n".join(format_scores(result)))


if __name__ == "__main__":
    main()
