"""The processes of a run's training: its ranks, its DataLoaders, and which of them the others wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import BaseModel, Field

from dashboard.models import Run
from dashboard.querysets import runs as run_queries
from dashboard.sentences.measurements.processes import describe_loader, describe_slowest, describe_step
from dashboard.training_processes.loaders import Loader, summarize_loaders
from dashboard.training_processes.ranks import Rank, summarize_ranks

router = Router(tags=["runs"])


class CollectiveRow(BaseModel):
    """One kind of collective on one rank, per step."""

    kind: str
    count: float
    bytes: float
    seconds: float = Field(description="Blocked in it, waiting for later ranks included.")


class RankRow(BaseModel):
    """One rank; medians over the repetitions, times in seconds per step. Null: the document doesn't say."""

    number: int
    device: str | None
    step_time: float
    computing: float = Field(description="The step without what is blocked in collectives.")
    waits: float | None = Field(description="For later ranks, in collectives.")
    communicating: float = Field(description="The rest of the time in collectives.")
    overlap: float | None = Field(description="Share of the communication that went on beside computing.")
    late: float | None = Field(description="By how much later than the others it comes to collectives.")
    last_share: float | None = Field(description="Share of the collectives to which it comes last.")
    peak_memory: float | None
    device_memory: float | None
    collectives: list[CollectiveRow]
    phases: dict[str, float]


class LoaderWorkerRow(BaseModel):
    """One worker of a DataLoader."""

    number: int
    batches: float = Field(description="Per step.")
    fetch_time: float = Field(description="Seconds per batch.")
    wait_time: float = Field(description="Seconds per step that the loop waits for its batches.")
    busy: float = Field(description="Share of the window in which it fetches.")


class LoaderRow(BaseModel):
    """One DataLoader with workers, of one rank."""

    rank: int | None
    dataset: str
    sentence: str
    batches: float
    wait_time: float
    fetch_time: float | None
    ready: float | None = Field(description="Share of the batches that lay ready when the loop asked.")
    slowest: int | None = Field(description="The worker that takes longer than the others.")
    starved: str | None = Field(description="`loop` or `workers`: who waits for whom.")
    workers: list[LoaderWorkerRow]


class RunProcesses(BaseModel):
    """The processes of a run's training. A run of one process has no ranks."""

    world_size: int
    slowest: int | None = Field(description="The rank that the others wait for.")
    phase: str | None = Field(description="Where that rank takes longer than the others.")
    excess: float | None = Field(description="By how many seconds per step.")
    sentence: str | None = Field(description="Which rank is waited for, or why that isn't known.")
    step: str | None = Field(description="What ends a step, and why.")
    ranks: list[RankRow]
    loaders: list[LoaderRow]


@router.get(
    "runs/{int:pk}/processes",
    url_name="api-run-processes",
    operation_id="read_run_processes",
    response=RunProcesses,
)
def read_run_processes(request: HttpRequest, pk: int) -> RunProcesses:
    """The ranks and DataLoaders of a run, as its page shows them."""
    document = run_queries.document_without_telemetry(get_object_or_404(Run, pk=pk))
    if document is None:
        raise Http404
    return describe_processes(document)


def describe_processes(document: Mapping[str, Any]) -> RunProcesses:
    found = summarize_ranks(document)
    return RunProcesses(
        world_size=found.world_size if found else 1,
        slowest=found.slowest if found else None,
        phase=(found.phase if found else "") or None,
        excess=found.excess if found else None,
        sentence=describe_slowest(found) if found else None,
        step=describe_step(document.get("step")) or None,
        ranks=[describe_rank(rank) for rank in (found.ranks if found else ())],
        loaders=[describe_loader_row(loader) for loader in summarize_loaders(document)],
    )


def describe_rank(rank: Rank) -> RankRow:
    parts = {"computing": rank.computing, "communicating": rank.communicating}
    return RankRow(**{**asdict(rank), **parts})


def describe_loader_row(loader: Loader) -> LoaderRow:
    return LoaderRow(**asdict(loader), sentence=describe_loader(loader))
