"""Of a history in which nothing changed: what was told, which runs weren't judged, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dashboard.management.decisions import culprit
from dashboard.models import Regression

MOST_TAINTED = 0.05
"""The share of undisturbed runs that may be kept out of judgement."""


def described(result: Mapping[str, Any], ids: Collection[int], burned: Collection[int]) -> dict[str, Any]:
    """The runs that were asked for, by whether another program burned beside them."""
    runs = [run for run in result["runs"] if run["id"] in ids]
    beside = [run for run in runs if run["id"] in burned]
    calm = [run for run in runs if run["id"] not in burned]
    planted = {entry["commit"] for entry in result["planted"]}
    # What was withdrawn later has been told nevertheless.
    found = [*result["regressions"], *result["withdrawn"]]
    told = [one for one in found if one["state"] == Regression.State.CONFIRMED]
    tainted = [run for run in calm if run["tainted"]]
    share = len(tainted) / len(calm) if calm else 0.0
    return {
        "false_alerts": [one["first_bad"] for one in told if culprit(one) not in planted],
        "burned": [run["commit"] for run in beside],
        "burned_but_judged": [run["commit"] for run in beside if not run["tainted"]],
        "undisturbed": len(calm),
        "undisturbed_tainted": [run["commit"] for run in tainted],
        "tainted_share": round(share, 3),
        "few_enough": share <= MOST_TAINTED,
        "reasons": {run["commit"]: run["doubts"] for run in runs if run["tainted"]},
    }


def table(result: Mapping[str, Any]) -> list[str]:
    """The same for people."""
    found = result["disturbance"]
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
