"""A history in which nothing changes, measured beside other work: `python -m bench.demo.disturbed_runs`.

It counts false alerts, and says which runs weren't judged and why. With `--burn` another program burns every
core beside a quarter of the runs: these must not be judged.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
from collections.abc import Collection, Mapping
from typing import Any

import django

from bench.demo.burning import Burner, draw_runs
from bench.demo.scoring import CONFIRMED
from dashboard.management.demonstration_table import culprit_of

MOST_TAINTED = 0.05
"""The share of undisturbed runs that may be kept out of judgement."""


def describe_disturbance(
    result: Mapping[str, Any], ids: Collection[int], disturbed: Collection[int]
) -> dict[str, Any]:
    """The runs that were asked for, by whether another program ran beside them."""
    runs = [run for run in result["runs"] if run["id"] in ids]
    beside = [run for run in runs if run["id"] in disturbed]
    undisturbed = [run for run in runs if run["id"] not in disturbed]
    planted = {entry["commit"] for entry in result["planted"]}
    # What was withdrawn later has been reported nevertheless.
    found = [*result["regressions"], *result["withdrawn"]]
    confirmed = [regression for regression in found if regression["state"] == CONFIRMED]
    tainted = [run for run in undisturbed if run["tainted"]]
    share = len(tainted) / len(undisturbed) if undisturbed else 0.0
    return {
        "false_alerts": [entry["first_bad"] for entry in confirmed if culprit_of(entry) not in planted],
        "burned": [run["commit"] for run in beside],
        "burned_but_judged": [run["commit"] for run in beside if not run["tainted"]],
        "undisturbed": len(undisturbed),
        "undisturbed_tainted": [run["commit"] for run in tainted],
        "tainted_share": round(share, 3),
        "few_enough": share <= MOST_TAINTED,
        "reasons": {run["commit"]: run["doubts"] for run in runs if run["tainted"]},
    }


def format_disturbance(found: Mapping[str, Any]) -> list[str]:
    """The same for people."""
    lines = [
        f"{len(found['false_alerts'])} false alerts",
        f"{len(found['burned'])} runs were measured while another program burned; "
        f"{len(found['burned_but_judged'])} of them were judged nevertheless",
        f"{len(found['undisturbed_tainted'])} of {found['undisturbed']} undisturbed runs were not judged "
        f"({100 * found['tainted_share']:.1f} %, at most {100 * MOST_TAINTED:.0f} % may be)",
    ]
    for commit, doubts in found["reasons"].items():
        lines.append(f"not judged: {commit[:10]}, {'; '.join(doubts)}")
    return lines


def measure_history(seed: int, commits: int, plant: bool, burn: bool) -> dict[str, Any]:
    """Have a site measure the history `same`, beside a burning program, and report what it made of it."""
    from django.conf import settings
    from django.db import connection

    from dashboard import hosts, services
    from dashboard.management import demonstration
    from dashboard.management.commands.demo import set_up_history, wait_until_proved
    from dashboard.models import Run

    arguments = ["--history=same", f"--commits={commits}", *(["--plant"] if plant else [])]
    with services.running_services(settings, hosts.local_join_code):
        project, built, ids = set_up_history(seed, arguments)
        disturbed = draw_runs(ids, random.Random(seed)) if burn else set()

        def is_measuring() -> bool:
            # Between two looks the thread keeps no connection: the services may end first.
            measuring = Run.objects.filter(pk__in=disturbed, state=Run.State.MEASURING).exists()
            connection.close()
            return measuring

        with Burner(is_measuring):
            wait_until_proved(project, ids)
        result = demonstration.report_findings(project, built)
    return {**result, "disturbance": describe_disturbance(result, ids, disturbed)}


def main() -> None:
    """Measure, and print what was judged."""
    parser = argparse.ArgumentParser(prog="python -m bench.demo.disturbed_runs", description=__doc__)
    parser.add_argument("--commits", type=int, default=30, help="of the history, 12 to 500 (default: 30)")
    parser.add_argument("--plant", action="store_true", help="plant one commit that is 10 %% slower")
    parser.add_argument("--burn", action="store_true", help="burn every core beside a quarter of the runs")
    parser.add_argument("--seed", type=int, default=None, help="draws places, sizes and runs")
    parser.add_argument("--json", action="store_true", help="print one JSON object, not lines")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    from django.core.management.base import CommandError

    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    try:
        result = measure_history(seed, options.commits, options.plant, options.burn)
    except CommandError as error:
        raise SystemExit(str(error)) from error
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        print("\n".join(format_disturbance(result["disturbance"])))


if __name__ == "__main__":
    main()
