"""What an ended measured process left: its result, or the reason why there is none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..measured.plan import ProcessPlan
from ..measured.rank_results import FAILED_RANK, rank_result_paths
from ..ranks.rank_rows import choose_measured_rank
from .measurement_errors import MeasurementError, NothingMeasuredError, TooFewStepsError
from .missing_steps import describe_failed_programs, describe_missing_steps, describe_other_steps

EXITED = "must end by itself, not by os._exit"
EXECUTED = "measure that one, or, where it starts itself anew, set beforehand what it sets before it does"

# What one process of it left.
Left = dict[str, Any]


def read_outcome(plan: ProcessPlan, status: int, tail: str) -> Left:
    """Return what counts of the processes that a plan had started, as it is in the measured one's file.

    With several ranks `ranks` is there too, one row each. `status` is the ended process's, negative for a
    signal, and `tail` the last lines that it wrote. Raises MeasurementError where it isn't whole.
    """
    files = [Path(plan.result), *rank_result_paths(Path(plan.result))]
    results: list[Left] = [json.loads(file.read_text()) for file in files if file.exists()]
    # A script that was broken off when all was measured may end in any way.
    is_measured = any(left.get("ended") or (plan.keep_running and left["complete"]) for left in results)
    if status != 0 and not is_measured:
        raise _process_failure(plan, status, results, tail)
    if not results:
        # Of an unmodified script os._exit leaves one too.
        way = f"must not become another program by os.execv: {EXECUTED}" if plan.auto else EXITED
        raise NothingMeasuredError(f"{plan.script} ended without a result, it {way}", tail)
    stepped = _choose_ranks([left for left in results if left["called"]])
    if not stepped:
        raise NothingMeasuredError(f"{plan.script} {describe_missing_steps(plan, results)}", tail)
    if not all(left["complete"] for left in stepped):
        raise _too_few_steps(plan, stepped, tail)
    if len(stepped) == 1:
        return stepped[0]
    ranks = [
        {**left["result"], "rank": index if left["rank"] is None else left["rank"]}
        for index, left in enumerate(stepped)
    ]
    measured = choose_measured_rank(ranks) if plan.kind == "timing" else 0
    return {**stepped[measured], "ranks": ranks}


def steps_needed(plan: ProcessPlan, windows: int = 2) -> int:
    """Return how many steps the script must take, the warm-up's included; only counting has windows."""
    windows = windows if plan.kind == "counting" else 1
    return max(1, plan.warmup_steps + windows * plan.steps)


def shell_status(status: int) -> int:
    """Return an ended process's status as a shell has it."""
    return status if status >= 0 else 128 - status


def _process_failure(plan: ProcessPlan, status: int, results: Sequence[Left], tail: str) -> MeasurementError:
    failed = Path(plan.result).with_name(FAILED_RANK)
    what = failed.read_text() if failed.exists() else _describe_exit(status)
    what += describe_failed_programs(results)
    taken = min((left["taken"] for left in results if left["called"]), default=0)
    return MeasurementError(f"{plan.script} {what}", tail, shell_status(status), taken)


def _too_few_steps(plan: ProcessPlan, stepped: Sequence[Left], tail: str) -> TooFewStepsError:
    taken = min(left["taken"] for left in stepped)
    windows = max(left.get("windows", 2) for left in stepped)
    needed = steps_needed(plan, windows)
    steps, advice = f"{needed} steps", "let its loop run longer"
    if plan.kind == "counting":
        parts = f"{'two windows' if windows > 1 else 'a window'} of {plan.steps}"
        steps = f"the {steps} that counting takes ({plan.warmup_steps} to warm up and {parts})"
        advice = f"{advice} or lower counting_steps"
    advice += describe_other_steps(stepped[0], needed)
    return TooFewStepsError(f"{plan.script} ended after {taken} of {steps}", advice, tail, taken)


def _choose_ranks(stepped: list[Left]) -> list[Left]:
    """Return the processes whose steps count: children without a rank only where nobody else takes any."""
    ranks = [left for left in stepped if left["rank"] is not None or not left["is_child"]]
    return ranks or stepped


def _describe_exit(status: int) -> str:
    if status > 0:
        return f"crashed with exit status {status}"
    if -status == 9:
        return "was killed by signal 9, most often because the machine ran out of memory"
    return f"was killed by signal {-status}"
