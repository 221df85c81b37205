"""DataLoaders with workers: how long a worker makes a batch, and how long the loop waits for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from threading import get_ident
from time import perf_counter
from typing import Any, Protocol

from ..measured.loader_log import log
from ..phase_names import DATA_LOADING
from .passthrough import call_original
from .wrapping import Function, calls_of_phase


class WorkerRecord(Protocol):
    """Takes what a worker did."""

    def add_batch(self, seconds: float) -> None: ...


_worker_record: WorkerRecord | None = None


def set_worker_record(record: WorkerRecord) -> None:
    """Let batches that this process makes as a worker be kept there."""
    global _worker_record
    _worker_record = record


def patch_loaders(dataloader: Any, is_traced: Callable[[], bool]) -> None:
    """Time the batches of workers in the workers, and the waiting for them in the loop."""
    batches = dataloader._MultiProcessingDataLoaderIter
    batches._next_data = _wrap_next_data(batches._next_data, is_traced)
    fetch = dataloader._utils.fetch
    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        fetcher.fetch = _wrap_fetch(fetcher.fetch, dataloader._utils.worker)


def _wrap_next_data(original: Function, is_traced: Callable[[], bool]) -> Function:
    @functools.wraps(original)
    def next_data(self: Any) -> Any:
        if is_traced():
            return original(self)
        worker, ready = _awaited_worker(self)
        began = perf_counter()
        data = call_original(original, (self,), {})
        if worker is not None:
            log.add_wait(self._dataset, worker, perf_counter() - began, ready=ready)
        return data

    return next_data


def _awaited_worker(batches: Any) -> tuple[int | None, bool]:
    """Return the worker whose batch comes next, and whether that batch or another one lies ready."""
    info = batches._task_info.get(batches._rcvd_idx)
    if info is None:
        return None, False
    log.add_worker(batches._dataset, info[0], batches._workers[info[0]].pid)
    return info[0], len(info) == 2 or not batches._data_queue.empty()


def _wrap_fetch(original: Function, worker: Any) -> Function:
    loading = calls_of_phase(DATA_LOADING)

    @functools.wraps(original)
    def fetch(self: Any, indices: Any) -> Any:
        if _worker_record is None or worker.get_worker_info() is None:
            return original(self, indices)
        # All that a worker does is to make batches, for as long as it lives.
        loading.enter(get_ident())
        began = perf_counter()
        batch = call_original(original, (self, indices), {})
        _worker_record.add_batch(perf_counter() - began)
        return batch

    return fetch
