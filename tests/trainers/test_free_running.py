"""mario_pipeline with collectors as processes: rings between them, weights back, and the loop."""

from __future__ import annotations

import subprocess
import sys
from multiprocessing import get_context
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainers.conftest import ROOT, import_script, parse_arguments

MARIO = ROOT / "trainers" / "mario_pipeline"
SMALL = (
    "--variant baseline --environments 4 --collectors 2 --epoch 32 --samples 1 --batch-size 16 --capacity 72"
)


@pytest.fixture(scope="module")
def pipeline() -> ModuleType:
    return import_script(MARIO, "train")


@pytest.fixture(scope="module")
def running() -> ModuleType:
    return import_script(MARIO, "free_running")


def small_arguments(pipeline: ModuleType, *more: str) -> Any:
    return parse_arguments(pipeline, [*SMALL.split(), "--device", "cpu", *more])


def make_ring(running: ModuleType, args: Any, slots: int) -> Any:
    return running.SharedRing(running.allocate_ring(get_context("spawn"), args, slots))


def make_experience(running: ModuleType, number: int) -> Any:
    view = np.full((4, 52, 53), number, dtype=np.uint8)
    return running.Experience(number, 1, view, number % 9, 0.5, number % 2 == 0)


def test_a_ring_gives_back_what_was_put_in_and_drops_what_finds_no_room(
    pipeline: ModuleType, running: ModuleType
) -> None:
    ring = make_ring(running, small_arguments(pipeline), 3)
    assert [ring.put(make_experience(running, number)) for number in range(4)] == [True, True, True, False]
    assert [taken.round for taken in ring.take(2)] == [0, 1]
    assert ring.put(make_experience(running, 4))
    taken = ring.take(10)
    assert [(row.round, row.action, row.reward, row.ended) for row in taken] == [
        (2, 2, 0.5, True),
        (4, 4, 0.5, True),
    ]
    assert (taken[1].view == 4).all()
    assert len(ring) == 0


def test_collectors_get_whole_weights(pipeline: ModuleType, running: ModuleType) -> None:
    args = small_arguments(pipeline, "--batch-norm")
    learned, acting = pipeline.Network(args), pipeline.Network(args)
    weights = running.SharedWeights(running.share_state(get_context("spawn"), args, learned))
    weights.write(learned)
    version = weights.read(acting, 0)
    for value, same in zip(learned.state_dict().values(), acting.state_dict().values(), strict=True):
        assert torch.equal(value, same)
    assert weights.read(acting, version) == version
    weights.version[0] += 1  # one is being written
    assert weights.read(acting, 0) == 0


@pytest.mark.parametrize("queues", ["shared", "local"])
def test_processes_play_while_the_learner_learns(queues: str) -> None:
    command = [sys.executable, str(MARIO / "train.py"), *SMALL.split(), "--queues", queues, "--chunk", "64"]
    # Fewer slots than half an epoch, and than a chunk: what there is must be taken all the same.
    command += ["--collect", "processes", "--queue-limit", "8", "--total-steps", "64", "--device", "cpu"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert "parameters: " in ended.stdout


def test_a_collector_that_ends_ends_the_training(running: ModuleType) -> None:
    training = SimpleNamespace(
        consolidation=SimpleNamespace(failure=None),
        collectors=[SimpleNamespace(exitcode=None), SimpleNamespace(exitcode=-9)],
    )
    with pytest.raises(RuntimeError, match="a collector's process has ended with status -9"):
        running.FreeRunning.check(training)
    training.consolidation.failure = ValueError("no room")
    with pytest.raises(ValueError, match="no room"):
        running.FreeRunning.check(training)
