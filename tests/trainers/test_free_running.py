"""mario_pipeline with collectors as processes: rings between them, weights back, and the loop."""

from __future__ import annotations

import json
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.harness.strangers import UNCOMPILED
from tests.trainers.conftest import ROOT, import_script, parse_arguments, run_script

MARIO = ROOT / "trainers" / "mario_pipeline"
SMALL = (
    "--variant baseline --environments 4 --collectors 2 --epoch 32 --samples 1 --batch-size 16 --capacity 72"
)

# Collectors begin with the file that the training began with.
UNCOMPILED_TRAINING = f"""
{UNCOMPILED}
sys.path.insert(1, {str(MARIO)!r})
import train
if __name__ == "__main__":
    train.main()
"""


@pytest.fixture(scope="module")
def pipeline() -> ModuleType:
    return import_script(MARIO, "train")


@pytest.fixture(scope="module")
def collecting() -> ModuleType:
    return import_script(MARIO, "collecting")


def small_arguments(pipeline: ModuleType, *more: str) -> Any:
    return parse_arguments(pipeline, [*SMALL.split(), "--device", "cpu", *more])


def make_handover(collecting: ModuleType, args: Any) -> Any:
    network = torch.nn.Linear(1, 1)
    return collecting.share_state(get_context("spawn"), args, network).handover_of(0)


def take_from(handover: Any, number: int) -> list[Any]:
    """So many experiences; a pipe has them a little later than they were put in."""
    taken: list[Any] = []
    until = monotonic() + 60
    while len(taken) < number and monotonic() < until:
        taken += handover.take(number - len(taken))
    return taken


def make_experience(collecting: ModuleType, number: int) -> Any:
    view = np.full((4, 52, 53), number, dtype=np.uint8)
    return collecting.Experience(number, 1, view, number % 9, 0.5, number % 2 == 0)


@pytest.mark.parametrize("transport", ["memory", "pickle"])
def test_what_is_put_in_comes_out_and_what_finds_no_room_is_dropped(
    pipeline: ModuleType, collecting: ModuleType, transport: str
) -> None:
    args = small_arguments(pipeline, "--transport", transport, "--queue-limit", "3")
    handover = make_handover(collecting, args)
    there = [handover.put(make_experience(collecting, number)) for number in range(4)]
    assert (there, len(handover)) == ([True, True, True, False], 3)
    taken = take_from(handover, 2)
    assert [experience.round for experience in taken] == [0, 1]
    assert handover.put(make_experience(collecting, 4))
    taken += take_from(handover, 2)
    assert [(row.round, row.action, row.reward, row.ended) for row in taken[2:]] == [
        (2, 2, 0.5, True),
        (4, 4, 0.5, True),
    ]
    assert (taken[3].view == 4).all()
    assert len(handover) == 0


def test_a_histogram_tells_how_long_most_waits_are() -> None:
    wait_times = import_script(MARIO, "wait_times")
    times = wait_times.WaitTimes(bytearray(8 * wait_times.BINS))
    assert wait_times.find_percentile(times.counts, 0.99) == 0
    for seconds in [0.0, *[1e-5] * 90, *[0.05] * 9, 1000.0]:
        times.add(seconds)
    median, tail = (wait_times.find_percentile(times.counts, share) for share in (0.5, 0.99))
    assert 1e-5 <= median <= 1.2e-5
    assert 0.05 <= tail <= 0.06
    assert wait_times.find_percentile(times.counts, 1) == pytest.approx(100)


def test_the_monitor_reports_rates_and_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monitoring, wait_times = import_script(MARIO, "monitoring"), import_script(MARIO, "wait_times")
    said: dict[str, float] = {}
    monkeypatch.setattr(monitoring.paceline, "gauge", said.__setitem__)
    monkeypatch.setattr(monitoring.paceline, "count", lambda name, number: said.update({name: number}))
    monkeypatch.setattr(monitoring, "perf_counter", iter([10.0, 14.0]).__next__)
    counts = [np.zeros(len(monitoring.COUNTS)) for _ in range(2)]
    waits = [wait_times.WaitTimes(bytearray(8 * wait_times.BINS)) for _ in range(2)]
    monitor = monitoring.Monitor(counts, [times.counts for times in waits], 8)
    for own, times in zip(counts, waits, strict=True):
        times.add(0.05)
        for name, value in (("HANDED", 256), ("TAKEN", 1), ("WAITED", 0.05), ("HANDING", 1), ("PLAYING", 4)):
            own[getattr(monitoring, name)] = value
        own[monitoring.GAMES], own[monitoring.DISTANCE] = 2, 300
    monitor.report(63, monitoring.Progress(0.25, 8, 2048, 1, 5, 3, 40, 1.5, torch.tensor(0.5)))
    assert (said["experience_rate"], said["consumption_rate"], said["batch_rate"]) == (128, 512, 2)
    assert (said["lock_wait_ms"], said["blocked_percent"], said["distance"]) == (50, 25, 150)
    assert 50 <= said["lock_wait_p99_ms"] <= 57
    assert (said["queue_length"], said["loss"], said["epochs"], said["chunks"]) == (3, 0.5, 1, 5)


def test_collectors_get_whole_weights(pipeline: ModuleType, collecting: ModuleType) -> None:
    args = small_arguments(pipeline, "--batch-norm")
    learned, acting = pipeline.Network(args), pipeline.Network(args)
    weights = collecting.SharedWeights(collecting.share_state(get_context("spawn"), args, learned))
    weights.write(learned)
    version = weights.read(acting, 0)
    for value, same in zip(learned.state_dict().values(), acting.state_dict().values(), strict=True):
        assert torch.equal(value, same)
    assert weights.read(acting, version) == version
    weights.version[0] += 1  # one is being written
    assert weights.read(acting, 0) == 0


# Of one shared queue a second collector changes nothing but how long they wait.
@pytest.mark.parametrize(
    "toggles",
    [
        "--queues shared --transport pickle --environments 2 --collectors 1",
        "--queues local --transport memory",
    ],
)
def test_processes_play_while_the_learner_learns(tmp_path: Path, toggles: str) -> None:
    script = tmp_path / "uncompiled.py"
    script.write_text(UNCOMPILED_TRAINING)
    command = [*SMALL.split(), *toggles.split(), "--chunk", "64"]
    # Fewer slots than half an epoch, and than a chunk: what there is must be taken all the same.
    command += ["--collect", "processes", "--queue-limit", "8", "--total-steps", "64", "--device", "cpu"]
    ended = run_script(script, *command, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert "parameters: " in ended.stdout


def test_a_collector_that_ends_ends_the_training() -> None:
    running = import_script(MARIO, "free_running")
    training = SimpleNamespace(
        consolidation=SimpleNamespace(failure=None),
        collectors=[SimpleNamespace(exitcode=None), SimpleNamespace(exitcode=-9)],
    )
    with pytest.raises(RuntimeError, match="a collector's process has ended with status -9"):
        running.FreeRunning.check(training)
    training.consolidation.failure = ValueError("no room")
    with pytest.raises(ValueError, match="no room"):
        running.FreeRunning.check(training)


def test_the_prose_of_waits_repeats_the_table_of_claims() -> None:
    rows = {row["id"]: row for row in json.loads((MARIO / "claims.results.json").read_text())}
    prose = " ".join((MARIO / "README.md").read_text().split())
    p95, p99, worst, mean = (
        rows[f"free-wait{name}"]["measured"][0] for name in ("-p95", "-p99", "-worst", "")
    )
    more, as_trained = rows["free-lock-free"]["measured"][0], rows["free-lock-free"]["equal_training"][0]

    assert f"19 of 20 waits for the lock last less than {p95:.3g} ms" in prose
    assert f"99 of 100 last less than {p99:.3g} ms, and the longest of 512 lasts {worst:.3g} ms" in prose
    assert f"the mean, {mean:.3g} ms," in prose
    assert (
        f"they hand over {more:.3g} times as much, and {as_trained:.3g} times as much where both learn"
        in prose
    )
    assert f"held to draw alone it is {rows['free-lock-free-narrow']['measured'][0]:.3g} times" in prose
