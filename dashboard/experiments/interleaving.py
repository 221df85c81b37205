"""Whether the steps of both sides can be measured in turn, in two processes side by side.

That is far more exact than one process after the other, but both are in memory at once, and nothing of the
one may go on while it is the other's turn. What is known of the code tells: the documents of its runs, or of
a first repetition of each side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.models import Document, Experiment, Run

# What another process leaves as it is in its turns: the times of steps, and resident memory. Of proportional
# memory both would have a part.
LEFT_ALONE = (
    *("throughput", "step_time", "step_time_p99", "phase_time", "phase_self_time"),
    *("peak_memory", "memory_growth"),
)
# Both together may take this part of the machine's memory.
MEMORY_SHARE = 0.5
ALONE = "main"  # how a document names the measured process, and the thread that takes the steps
# Where neither commit was measured, so many of the configuration's newest runs tell.
NEWEST = 2

Rows = Sequence[dict[str, Any]]
READ = ("environment__path", "environment__memory_bytes", "processes", "phases", "ranks__world_size")


def can_take_turns_by_runs(experiment: Experiment) -> bool:
    """By the runs of its commits, or the newest ones of its configurations; False where there are none."""
    if experiment.metric.name not in LEFT_ALONE:
        return False
    configurations = {experiment.base_configuration_id, experiment.head_configuration_id}
    documents = Document.objects.filter(run__configuration__in=configurations)
    fields = [f"body__{name}" for name in READ]
    commits = {experiment.base_commit_id, experiment.head_commit_id}
    known = list(documents.filter(run__commit__in=commits).values_list(*fields))
    if not known:
        newest = Run.objects.filter(configuration__in=configurations, state=Run.State.DONE).order_by("-pk")
        known = list(documents.filter(run__in=newest.values("pk")[:NEWEST]).values_list(*fields))
    return bool(known) and all(is_alone(*document) for document in known)


def can_take_turns_by_documents(experiment: Experiment, documents: Sequence[Mapping[str, Any]]) -> bool:
    """By a document of each side."""
    if experiment.metric.name not in LEFT_ALONE:
        return False
    return all(
        is_alone(
            (document.get("environment") or {}).get("path"),
            (document.get("environment") or {}).get("memory_bytes"),
            document.get("processes"),
            document.get("phases"),
            (document.get("ranks") or {}).get("world_size"),
        )
        for document in documents
    )


def is_alone(
    path: str | None,
    memory: int | None,
    processes: Rows | None,
    phases: Rows | None,
    ranks: int | None = None,
) -> bool:
    """One process with one thread, on no device, that is small enough to be there twice.

    Of several ranks none may be stopped: the others go on to their next collective meanwhile, so that who is
    slow among them catches up in the other side's turn.
    """
    if ranks is not None:
        return False
    if path != "cpu" or not processes or {process["name"] for process in processes} - {ALONE}:
        return False
    if {phase["thread"] for phase in phases or ()} - {ALONE}:
        return False
    peaks = [process["peak_memory"] for process in processes]
    # A process that was over before anybody looked has none.
    if memory is None or None in peaks:
        return False
    return bool(2 * max(peaks) <= MEMORY_SHARE * memory)
