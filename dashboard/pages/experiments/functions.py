"""The functions of an experiment's two sides, as its page shows them."""

from __future__ import annotations

from typing import Any

from dashboard.experiments.paired_functions import function_rows
from dashboard.models import Experiment
from dashboard.querysets import experiments as experiment_queries

MOST_FUNCTIONS = 25


def functions_context(experiment: Experiment) -> dict[str, Any]:
    """From its own profiles, else from the newest runs of its very commits; empty where a side has none."""
    profiles, from_runs = experiment.profiles, False
    if not profiles and experiment.state in Experiment.TERMINAL:
        profiles, from_runs = experiment_queries.profiles_of_runs(experiment), True
    missing = [side for side in ("base", "head") if not (profiles.get(side) or {}).get("functions")]
    if missing:
        return {"functions": [], "functions_missing": missing}
    sides = (profiles["base"], profiles["head"])
    rows = function_rows(*sides)
    return {
        "functions": rows[:MOST_FUNCTIONS],
        "more_functions": max(0, len(rows) - MOST_FUNCTIONS),
        "function_runs": [side["run"] for side in sides] if from_runs else [],
    }
