"""May the steps of both commits be measured in turn, in two processes side by side?

That is far more exact than one process after the other, but both are in memory at once, and nothing of the
one may go on while it is the other's turn. What is known of the code says so: the documents of its runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboard.models import Confirmation, Document

# What another process leaves as it is in its turns: the times of steps, and resident memory. Of proportional
# memory both would have a part.
LEFT_ALONE = (
    *("throughput", "step_time", "step_time_p99", "phase_time", "phase_self_time"),
    *("peak_memory", "memory_growth"),
)
# Both together may take this part of the machine's memory.
MEMORY = 0.5
ALONE = "main"  # how a document names the measured process, and the thread that takes the steps

Rows = Sequence[dict[str, Any]]
READ = ("environment__path", "environment__memory_bytes", "processes", "phases")


def possible(row: Confirmation) -> bool:
    """By the runs of its two commits and of its regression's; False where there are none."""
    if row.series.metric.name not in LEFT_ALONE:
        return False
    regression = row.regression
    commits = {row.good_id, row.bad_id, regression.last_good_id, regression.first_bad_id}
    known = Document.objects.filter(
        run__commit__in=commits,
        run__case=row.series.case_id,
        run__pool=row.pool_id,
        run__quick=row.series.quick,
    )
    found = known.values_list(*(f"body__{name}" for name in READ))
    return bool(found) and all(_is_alone(*one) for one in found)


def _is_alone(path: str | None, memory: int | None, processes: Rows | None, phases: Rows | None) -> bool:
    """One process with one thread, on no device, that is small enough to be there twice."""
    if path != "cpu" or not processes or {row["name"] for row in processes} - {ALONE}:
        return False
    if {row["thread"] for row in phases or ()} - {ALONE}:
        return False
    peak = max(int(row["peak_memory"]) for row in processes)
    return memory is not None and 2 * peak <= MEMORY * memory
