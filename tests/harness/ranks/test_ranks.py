"""Several ranks of one training: their launchers, what is measured of each, and whom they wait for."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest
from paceline.measured.rank_launcher import find_failed_rank
from paceline.measured.rank_presence import present_pids
from paceline.measured.rank_results import FAILED_RANK
from paceline.ranks.straggler import Arrivals, compare_arrivals, find_slowest
from paceline.watching.measurement_errors import MeasurementError
from paceline.watching.process import MeasuredProcess
from paceline.watching.process_tree import ProcessTree
from paceline.watching.process_usage import process_usage

from tests.harness.conftest import Project
from tests.harness.strangers import TRAIN, UNCOMPILED, run_processes, start_processes

RANKS = (
    UNCOMPILED
    + """
import os, sys, time, torch, torch.distributed as dist
from torch import nn

def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    seen = open(f"{sys.argv[1]}.{rank}", "w")
    for step in range(70):
        loss = model(torch.randn(16, 64)).square().mean()
        time.sleep(0.02 * rank)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        sums = [weight.detach().double().sum().item().hex() for weight in model.parameters()]
        print(total.item().hex(), *sums, file=seen, flush=True)
"""
)
SPAWN = """
def spawned(rank):
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2])
    main()
    # Else its threads may still run when the interpreter ends, which aborts it.
    dist.destroy_process_group()

if __name__ == "__main__":
    import torch.multiprocessing
    torch.multiprocessing.spawn(spawned, nprocs=2)
"""
# To import torch takes longer than to train: once for both ranks.
FORKED = """
import os, torch
for rank in range(2):
    if not os.fork():
        os.environ["RANK"] = str(rank)
        exec(open("train.py").read())
        os._exit(0)
assert [os.wait()[1] for _ in range(2)] == [0, 0]
"""
PORT = str(20_000 + os.getpid() % 20_000)


QUICK = ("--quick", "--repetitions", "1")
# Nothing is counted: that takes a second start of torch.
TIMED = ("--keep-running",)


def measure_ranks(folder: Path, script: str, *words: str, options: tuple[str, ...] = TIMED) -> dict[str, Any]:
    (folder / "train.py").write_text(script)
    ended = Project(folder, prepared=True).call(
        "script", *options, "--steps", "60", "--document", "out.json", *words
    )
    assert ended.returncode == 0, ended.stderr
    raw: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return raw


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="module")
def ranked(folder: Path) -> dict[str, Any]:
    words = ("--nproc", "2", "train.py", "measured")
    return measure_ranks(folder, RANKS + "\nmain()\n", *words, options=QUICK)


def test_each_rank_has_its_row(ranked: dict[str, Any]) -> None:
    rows = ranked["ranks"]["rows"]
    assert [row["rank"] for row in rows] == [0, 1]
    for row in rows:
        (collective,) = row["collectives"]
        # The gradients once, and a number.
        assert (collective["kind"], collective["count"]) == ("all_reduce", 2)
        assert collective["bytes"] == 4 * (64 * 64 + 64 + 64 + 1) + 4
        assert {"forward", "backward", "backward/all_reduce", "all_reduce", "optimizer"} <= set(row["phases"])


def test_the_slow_rank_is_named(ranked: dict[str, Any]) -> None:
    assert (ranked["ranks"]["slowest"], ranked["ranks"]["reason"]) == (1, None)
    fast, slow = ranked["ranks"]["rows"]
    assert fast["phases"]["backward/all_reduce"] > 2 * slow["phases"]["backward/all_reduce"]


def test_measuring_changes_no_bit_of_what_is_computed(ranked: dict[str, Any], folder: Path) -> None:
    variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": PORT, "OMP_NUM_THREADS": "1"}
    alone = [sys.executable, "-c", FORKED, "alone"]
    subprocess.run(alone, cwd=folder, env={**os.environ, **variables}, check=True, timeout=150)
    for rank in range(2):
        measured = (folder / f"measured.{rank}").read_text().splitlines()
        assert len(measured) >= 60
        assert measured == (folder / f"alone.{rank}").read_text().splitlines()[: len(measured)]


def test_a_launcher_of_the_users_own(tmp_path: Path) -> None:
    words = ("torchrun", "--nproc-per-node", "2", "--master-port", str(int(PORT) + 1), "train.py", "seen")
    raw = measure_ranks(tmp_path, RANKS + "\nmain()\n", *words)
    assert raw["ranks"]["world_size"] == 2
    assert raw["benchmark"]["case"] == "arguments=seen"


def test_a_script_that_spawns_its_ranks(tmp_path: Path) -> None:
    raw = measure_ranks(tmp_path, RANKS + SPAWN, "train.py", "seen", str(int(PORT) + 2))
    assert raw["ranks"]["world_size"] == 2
    assert (raw["step"]["kind"], raw["step"]["owner"]) == ("optimizer", "SGD")


def test_a_rank_that_fails_is_shown(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os\nassert os.environ['RANK'] == '0', 'no data'\n")
    ended = Project(tmp_path).call("script", "--nproc", "2", "train.py")
    assert ended.returncode == 1
    assert "no data" in ended.stderr
    assert "train.py failed: rank 1 crashed with exit status 1, which ended the other ranks" in ended.stderr


UNEVEN = (
    UNCOMPILED
    + """
import sys, os, signal, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(100):
    dist.all_reduce(weight.data)
    if sys.argv[1] == "hangs" and step == 30 and rank == 1:
        signal.pause()
    if sys.argv[1] == "dies" and step == 30 and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.step()
"""
)


def test_ranks_that_hang_are_named(tmp_path: Path) -> None:
    with start_processes(tmp_path, UNEVEN, ["hangs"], processes=2, steps=60) as process:
        deadline = monotonic() + 100
        hang = "rank 0 in all_reduce, to which rank 1 never came"
        seen = 0
        # On the way there either rank may be a moment behind.
        while seen < 5:
            assert not process.wait(0.3), process.tail()
            assert monotonic() < deadline, process.describe_hang()
            seen = seen + 1 if process.describe_hang() == hang else 0


# As Slurm's service does for `srun`: the ranks' parent is none of the launcher's processes.
SCHEDULER = """
trap 'touch given_back; exit' TERM
export SLURM_NTASKS=2
(setsid sh -c 'SLURM_PROCID=0 "$@" & SLURM_PROCID=1 "$@" & wait' service "$@" &)
sleep 1000 & wait
"""
STUCK = """
import os, signal
from paceline.measured.rank_presence import ONE_ARRIVAL, POSITION, presence, presence_marker
if os.environ["SLURM_PROCID"] == "0":
    presence.numbers[POSITION] = ONE_ARRIVAL + presence_marker(0)
signal.pause()
"""


def test_ranks_of_a_scheduler_are_found_and_ended(tmp_path: Path) -> None:
    """One of them comes to no collective, and only the launcher can give back what it runs in."""
    launcher = ["sh", "-c", SCHEDULER, "scheduler", sys.executable, "-m"]
    with start_processes(tmp_path, STUCK, [], launcher=launcher) as process:
        folder, deadline = tmp_path / "measured", monotonic() + 100
        while process.describe_hang() != "rank 0 in all_reduce, to which rank 1 never came":
            assert not process.wait(0.05), process.tail()
            assert monotonic() < deadline, process.describe_hang()
        ranks = set(present_pids(folder))
        assert len(ranks) == 2
        assert ranks < ProcessTree(process.pid, process.launched_ranks).pids()
    assert (tmp_path / "given_back").exists()
    # They are killed by then, and gone a moment later.
    while any(map(process_usage, ranks)):
        assert monotonic() < deadline
        sleep(0.01)


def test_ranks_that_step_are_slow_and_not_hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever one looks one of them waits for another."""
    monkeypatch.setattr(MeasuredProcess, "describe_hang", lambda _: "rank 0 in all_reduce")
    steps = "import paceline, time\nfor n in paceline.steps(range(1000)): time.sleep(0.02)"
    with start_processes(tmp_path, steps, [], steps=900) as process:
        while process.steps_done() < 5:
            assert not process.wait(0.05), process.tail()
        assert process.describe_lateness().endswith("raise it or measure fewer steps")


def test_a_rank_that_dies_is_named(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError) as caught:
        run_processes(tmp_path, UNEVEN, ["dies"], processes=2, steps=60)
    assert str(caught.value) == (
        "train.py failed: rank 1 was killed by signal 9, which ended the other ranks"
    )


BOTH_DIE = """
import os, signal, subprocess, sys, time
launcher = os.getppid()
if os.environ["RANK"] == "1":
    os.kill(launcher, signal.SIGSTOP)
    subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {launcher}"])
    os.kill(os.getpid(), signal.SIGKILL)
while open(f"/proc/{launcher}/stat").read().rpartition(")")[2].split()[0] != "T":
    time.sleep(0.01)
sys.exit(1)
"""


def test_of_two_dead_ranks_the_killed_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="rank 1 was killed by signal 9"):
        run_processes(tmp_path, BOTH_DIE, [], processes=2, steps=60)


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        ([-2, -2], "was ended by SIGINT"),
        ([1, -15], "was ended by SIGTERM"),
        ([1, -9], "failed: rank 1 was killed by signal 9, which ended the other ranks"),
    ],
)
def test_a_signal_that_all_ranks_were_sent_is_no_failure_of_one(
    tmp_path: Path, statuses: list[int], told: str
) -> None:
    ranks: Any = [SimpleNamespace(returncode=status, poll=lambda: True) for status in statuses]
    find_failed_rank(ranks, tmp_path / "plan.json", {2, 15})
    assert (tmp_path / FAILED_RANK).read_text() == told


def test_a_module_runs_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "sizes.py").write_text("STEPS = 40\n")
    arguments = "\nimport sys\nassert sys.argv[1:] == ['--lr', '1'], sys.argv\n"
    start = arguments + "from .sizes import STEPS\nmain(STEPS)\n"
    (tmp_path / "package" / "train.py").write_text(TRAIN + start)
    options = (*TIMED, "--steps", "20", "--document", "out.json")
    ended = Project(tmp_path, prepared=True).call("script", *options, "-m", "package.train", "--lr", "1")
    assert ended.returncode == 0, ended.stderr
    assert json.loads((tmp_path / "out.json").read_text())["benchmark"]["name"] == "package.train"


@pytest.mark.parametrize(("kind", "owner"), [("batch", "TensorDataset"), ("optimizer", "SGD")])
def test_what_ends_a_step_can_be_chosen(tmp_path: Path, kind: str, owner: str) -> None:
    (tmp_path / "train.py").write_text(TRAIN + "\nmain(40)\n")
    ended = Project(tmp_path, prepared=True).call(
        "script", *TIMED, "--steps", "20", "--step", kind, "train.py"
    )
    assert ended.returncode == 0, ended.stderr
    assert f"a step ends with the {kind} of {owner}, as was chosen" in ended.stdout


def test_a_kind_that_never_comes_is_told_with_what_was_seen(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN + "\nmain(20)\n")
    ended = Project(tmp_path, prepared=True).call("script", "--quick", "--step", "environment", "train.py")
    assert ended.returncode == 1
    assert "took no step of the kind environment; seen: 20 optimizer steps, 20 batches" in ended.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("torchrun", "--nproc-per-node", "2"), "torchrun: its line names no script"),
        (("-m", "torch.distributed.run", "--nproc-per-node", "2"), "torchrun: its line names no script"),
        (("mpirun", "-n", "2", "train.py"), "mpirun: its line must hold python or torchrun"),
        (("--nproc", "2", "torchrun", "train.py"), "--nproc and torchrun: name one of them"),
        (("--nproc", "0", "train.py"), "--nproc is 0, must be between 1 and 256"),
    ],
)
def test_wrong_launches_are_refused(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "train.py").write_text("")
    ended = Project(tmp_path).call("script", *words)
    assert ended.returncode == 1
    assert sentence in ended.stderr


def simulate_arrivals(draw: random.Random, slower: float, ranks: int = 4, steps: int = 100) -> Arrivals:
    """Steps of 10 ms with a noise of 5 % and now and then a hiccup; rank 2 computes for longer."""
    begin, arrived = 0.0, [[0.0] * steps for _ in range(ranks)]
    for step in range(steps):
        for rank in range(ranks):
            took = 0.01 * (1 + slower * (rank == 2)) * draw.lognormvariate(0, 0.05)
            arrived[rank][step] = begin + took + (draw.random() < 0.02) * draw.expovariate(200)
        begin = max(times[step] for times in arrived) + 0.001
    return compare_arrivals([["all_reduce"] * steps] * ranks, arrived, steps, begin / steps)


def name_slowest(seed: int, slower: float) -> int | None:
    draw = random.Random(seed)  # noqa: S311  # a simulation
    return find_slowest([simulate_arrivals(draw, slower) for _ in range(3)])[0]


def test_a_rank_slower_by_a_twentieth_is_named_and_no_other() -> None:
    named = [name_slowest(seed, 0.05) for seed in range(40)]
    assert named.count(2) >= 38
    assert set(named) <= {2, None}


def test_of_equal_ranks_none_is_named() -> None:
    assert {name_slowest(seed, 0.0) for seed in range(40)} == {None}


def test_repetitions_must_agree() -> None:
    draw = random.Random(1)  # noqa: S311  # a simulation
    often, once = simulate_arrivals(draw, 0.5), simulate_arrivals(draw, 0.5)
    # Rank 2 is far behind in a single repetition, rank 1 a little ahead of the others in the rest.
    swapped = replace(often, ranks=(*often.ranks[:1], often.ranks[2], often.ranks[1], *often.ranks[3:]))
    assert find_slowest([often, once]) == (2, None)
    assert find_slowest([often, swapped])[0] is None


def test_too_few_collectives_say_nothing() -> None:
    draw = random.Random(1)  # noqa: S311  # a simulation
    assert find_slowest([simulate_arrivals(draw, 0.5, steps=30)]) == (None, "too_few_collectives")


@pytest.mark.parametrize(
    ("orders", "reason"),
    [
        ([["all_reduce"], ["barrier"]], "different_kinds"),
        ([["all_reduce"], ["all_reduce", "barrier"]], "different_numbers"),
        ([[], []], "no_collectives"),
    ],
)
def test_ranks_that_take_different_collectives_are_not_compared(orders: list[list[str]], reason: str) -> None:
    compared = compare_arrivals(orders, [[0.0] * len(order) for order in orders], 1, 1.0)
    assert find_slowest([compared]) == (None, reason)
