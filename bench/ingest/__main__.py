"""Store and judge runs of 300 series as a site does: `make bench BENCH=ingest`, or this for other sizes."""

from __future__ import annotations

import argparse

from bench.ingest.table import measure_here


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ingest", description=__doc__)
    parser.add_argument("--runs", type=int, default=120, help="that are stored and judged; default 120")
    parser.add_argument(
        "--pages", action=argparse.BooleanOptionalAction, default=True, help="asked for meanwhile"
    )
    arguments = parser.parse_args()
    print(measure_here(arguments.runs, with_pages=arguments.pages))


if __name__ == "__main__":
    main()
