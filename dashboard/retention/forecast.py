"""What would be dropped now, kind by kind, and which runs keep their detail for which reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.models import Project
from dashboard.retention.detail_kinds import KINDS
from dashboard.retention.kept_days import KeptDays, kept_days
from dashboard.retention.protected_runs import Reason, protected_runs
from dashboard.retention.pruning import old_runs

# The sizes of more runs than these are estimated by so many, evenly spread: documents are read for them.
SAMPLE = 50


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of one kind: so many runs would lose it, with so many rows and bytes; `protected` runs keep it.

    `is_estimate`: rows and bytes are scaled up from a sample of the runs.
    """

    kept: KeptDays
    runs: int
    rows: int
    size: int
    is_estimate: bool
    protected: Mapping[Reason, int]


def forecast_project(project: Project) -> list[Forecast]:
    """One row for each kind, also for those that are kept for ever."""
    protected = protected_runs(project)
    found = []
    for kept, kind in zip(kept_days(project), KINDS, strict=True):
        old = list(old_runs(project, kind).order_by("finished_at", "pk").values_list("pk", flat=True))
        due = [key for key in old if key not in protected]
        stride = max(1, -(-len(due) // SAMPLE))
        sample = due[::stride]
        rows, size = kind.measure(project, sample) if sample else (0, 0)
        scale = len(due) / len(sample) if sample else 1.0
        found.append(
            Forecast(
                kept,
                runs=len(due),
                rows=round(rows * scale),
                size=round(size * scale),
                is_estimate=stride > 1,
                protected=Counter(protected[key] for key in old if key in protected),
            )
        )
    return found
