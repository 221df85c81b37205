"""Processes that a measured one forks or spawns: ranks, workers of a DataLoader, other helpers."""

from __future__ import annotations

import math
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paceline.document_building.reported_numbers import leave_out_unusable, unusable_numbers
from paceline.measured.helper_records import HelperRecord, HelperTotals, read_records
from paceline.measured.loader_log import LOADERS_LIMIT, OTHERS, LoaderLog
from paceline.measured.shared_memory import share_memory
from paceline.measurement import TimedRepetition
from paceline.watching import process

from tests.harness.strangers import UNCOMPILED, run_processes

# An evaluation plays two games a step beside the loop; worker 1 of the loader is slow.
HELPERS = (
    UNCOMPILED
    + """
import multiprocessing, sys, time, torch, paceline
from torch import nn

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 16 * 1000
    def __getitem__(self, index):
        if torch.utils.data.get_worker_info().id == 1:
            time.sleep(0.004)
        return nn.Identity()(torch.randn(32))

def evaluate(asked, done):
    model = nn.Linear(64, 64)
    while asked.get() is not None:
        for _ in range(20):
            model(torch.randn(64, 64))
        paceline.count("games", 2)
        done.put(1)

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    asked, done = context.Queue(), context.Queue()
    context.Process(target=evaluate, args=(asked, done), name="Evaluation-1", daemon=True).start()
    model = nn.Linear(32, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in torch.utils.data.DataLoader(Rows(), batch_size=16, num_workers=3):
        asked.put(1)
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        done.get()
        optimizer.step()
"""
)


@pytest.fixture(scope="module", params=["fork", "spawn", "forkserver"])
def left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp(request.param)
    result: dict[str, Any] = run_processes(folder, HELPERS, [request.param], steps=40)["result"]
    return result


def test_a_helper_is_told_by_its_name_with_its_phases_and_counts(left: dict[str, Any]) -> None:
    helpers = {row["name"]: row for row in left["helpers"]}
    evaluation = helpers["Evaluation"]
    assert (evaluation["count"], evaluation["counts"]) == (1, {"games": pytest.approx(2, rel=0.1)})
    assert evaluation["phases"]["forward"] > 0
    assert evaluation["cpu_time"] > 0
    # A transform of a dataset is no forward pass.
    assert "forward" not in helpers["DataLoader worker"]["phases"]
    # Whatever helpers do is no phase of the loop.
    assert {row["path"] for row in left["phases"]} >= {"forward", "backward", "data_loading"}


def test_the_slow_worker_is_named_and_the_loop_starves(left: dict[str, Any]) -> None:
    (loader,) = left["loaders"]
    assert (loader["dataset"], loader["slowest"], loader["starved"]) == ("Rows", 1, "loop")
    assert loader["batches"] == pytest.approx(1)
    slow = loader["workers"][1]
    assert slow["fetch_time"] >= 16 * 0.004
    assert slow["wait_time"] > 0.5 * loader["wait_time"]
    assert slow["busy"] > 0.5 > max(row["busy"] for row in loader["workers"] if row["worker"] != 1)


def test_datasets_of_each_epoch_are_one_row() -> None:
    log = LoaderLog()
    # Kept alive, as a list of all folds does.
    datasets = [[number] for number in range(2 * LOADERS_LIMIT)]
    for dataset in datasets:
        log.add_worker(dataset, 0, 17)
    log.open_window()
    for dataset in datasets[-4:]:
        log.add_wait(dataset, 0, 1.0, ready=False)
    (row,) = log.result({}, {}, steps=8, seconds=10.0)
    assert (row["dataset"], row["batches"], row["wait_time"], row["starved"]) == ("list", 0.5, 0.5, "loop")


@pytest.mark.parametrize(("fetched", "starved"), [(1.0, "workers"), (4.0, "loop")])
def test_a_loop_starves_for_no_batches_that_idle_workers_laid_ready(fetched: float, starved: str) -> None:
    """To take one may last long: it is large, or the process waits for a processor."""
    log, dataset = LoaderLog(), [0]
    log.add_worker(dataset, 0, 17)
    log.open_window()
    for _ in range(10):
        log.add_wait(dataset, 0, 0.1, ready=True)
    (row,) = log.result({}, {17: HelperTotals(batches=10, fetch=fetched)}, steps=10, seconds=5.0)
    assert (row["wait_time"], row["starved"]) == (pytest.approx(0.1), starved)


def test_types_of_datasets_beyond_the_limit_are_summed() -> None:
    log = LoaderLog()
    log.open_window()
    for number in range(LOADERS_LIMIT + 5):
        log.add_wait(type(f"Rows{number}", (), {})(), 0, 1.0, ready=False)
    rows = {row["dataset"]: row["wait_time"] for row in log.result({}, {}, steps=1, seconds=100.0)}
    assert (len(rows), rows[OTHERS], sum(rows.values())) == (LOADERS_LIMIT + 1, 5.0, LOADERS_LIMIT + 5)


def test_a_helpers_count_that_is_no_number_is_left_out() -> None:
    helper = {"name": "Evaluation", "count": 1, "cpu_time": 0.1, "phases": {}}
    result = {"counts": {}, "gauges": {}, "unusable": {}}
    ranks = [
        {**result, "helpers": [{**helper, "counts": {"games": 2.0, "score": odd}}]} for odd in (1.0, math.nan)
    ]
    repetition = TimedRepetition(0, ranks[0], {}, 0.0, 1.0, 1.0, 1.0, Any, ranks=ranks)  # type: ignore[arg-type]
    usable = leave_out_unusable(repetition)
    assert [row["helpers"][0]["counts"] for row in usable.ranks] == [
        {"games": 2.0, "score": 1.0},
        {"games": 2.0},
    ]
    assert unusable_numbers([usable.result]) == {("helpers", "score"): 1}


FORKED_RANKS = (
    UNCOMPILED
    + """
import multiprocessing, os, sys, torch, torch.distributed as dist
from torch import nn

def train(rank):
    dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
    model = nn.Linear(32, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(40):
        loss = model(torch.randn(16, 32)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for weight in model.parameters():
            dist.all_reduce(weight.grad)
        optimizer.step()

if sys.argv[1] == "os.fork":
    child = os.fork()
    train(0 if child else 1)
    if child:
        os.waitpid(child, 0)
else:
    context = multiprocessing.get_context(sys.argv[1])
    ranks = [context.Process(target=train, args=(rank,)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
"""
)


@pytest.mark.parametrize("way", ["os.fork", "fork"])
def test_forked_ranks_have_a_row_each(tmp_path: Path, way: str) -> None:
    left = run_processes(tmp_path, FORKED_RANKS, [way, str(tmp_path / "store")])
    assert [rank["rank"] for rank in left["ranks"]] == [0, 1]
    for rank in left["ranks"]:
        assert [(kind["kind"], kind["count"]) for kind in rank["collectives"]["kinds"]] == [("all_reduce", 2)]
        assert rank["helpers"] == []


WAITING_PARENT = (
    UNCOMPILED
    + """
import multiprocessing
def train(trained):
    weights = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.1)
    for _ in range(10**6):
        weights.sum().backward()
        optimizer.step()
    trained.put(weights)
context = multiprocessing.get_context("fork")
trained = context.Queue()
context.Process(target=train, args=(trained,)).start()
trained.get()
"""
)


def test_a_parent_that_waits_for_an_ended_child_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Lightning's is, which asks its spawned ranks for the weights."""
    monkeypatch.setattr(process, "ENDED_CHILDREN_SECONDS", 0.2)
    left = run_processes(tmp_path, WAITING_PARENT, [])
    assert (left["step"]["owner"], left["is_child"], left["ended"]) == ("SGD", True, True)


def test_shared_memory_is_a_file_of_zeros(tmp_path: Path) -> None:
    shared = share_memory(tmp_path / "shared", 9000)
    assert shared is not None
    shared[8999] = 7
    assert (tmp_path / "shared").read_bytes() == bytes(8999) + b"\x07"


def test_shared_memory_that_is_dropped_closes_no_file_of_the_script(tmp_path: Path) -> None:
    """One that had closed all files before: what is shared stands behind a descriptor that Python copied."""
    script = """
import os, sys
from pathlib import Path
from paceline.measured.shared_memory import share_memory
shared = share_memory(Path(sys.argv[1]), 9)
os.closerange(3, 100)
files = [os.open(os.devnull, os.O_RDONLY) for _ in range(9)]
del shared
assert all(map(os.fstat, files))
"""
    command = [sys.executable, "-c", script, str(tmp_path / "shared")]
    assert subprocess.run(command, timeout=60).returncode == 0


def test_a_helper_without_room_for_its_record_goes_on(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        record = HelperRecord(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    record.add_count("games", 2.0)
    record.add_batch(0.5)
    record.keep_name("evaluate")
    assert list(tmp_path.iterdir()) == []
    assert read_records(tmp_path, 0) == {}
