"""How a site behaves under trouble: `python -m bench.robustness PART`, latency, outage and so on."""

from __future__ import annotations

import argparse
import signal
import sys

from bench.robustness import latency, null_checks, null_commits, outage, restarts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.robustness", description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    asked = parts.add_parser("latency", help=latency.__doc__)
    asked.add_argument("--requests", type=int, default=10)
    asked = parts.add_parser("restarts", help=restarts.__doc__)
    asked.add_argument("--requests", type=int, default=1000)
    asked.add_argument("--hosts", type=int, default=4)
    asked.add_argument("--kills", type=int, default=10, help="of each host")
    asked.add_argument("--seed", type=int, default=1)
    asked = parts.add_parser("outage", help=outage.__doc__)
    asked.add_argument("--seconds", type=float, default=600)
    asked = parts.add_parser("checks", help=null_checks.__doc__)
    asked.add_argument("--checks", type=int, default=300)
    asked.add_argument("--minutes", type=float, default=0.5, help="that one may measure")
    asked.add_argument("--seed", type=int, default=1)
    asked = parts.add_parser("commits", help=null_commits.__doc__)
    asked.add_argument("--commits", type=int, default=100)
    asked.add_argument("--minutes", type=float, default=600, help="in which one may begin")
    asked.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    # Whatever was started ends with it, a whole site among it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if arguments.part == "latency":
        print(latency.measure_latency(arguments.requests))
    elif arguments.part == "restarts":
        print(restarts.measure_restarts(arguments.requests, arguments.hosts, arguments.kills, arguments.seed))
    elif arguments.part == "checks":
        print(null_checks.measure_null_checks(arguments.checks, arguments.minutes, arguments.seed))
    elif arguments.part == "commits":
        print(null_commits.measure_null_commits(arguments.commits, arguments.minutes, arguments.seed))
    else:
        print(outage.measure_outage(arguments.seconds))


if __name__ == "__main__":
    main()
