"""Counters are exact only where no hash decides anything: three hash seeds must count the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.trainers.conftest import ROOT

COUNTED = """
import sys, threading
from collections import Counter
folder, *given = sys.argv[1:]
sys.path.insert(0, folder)
import paceline, torch, train
calls = Counter()
def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(folder):
        calls[frame.f_code.co_qualname] += 1
torch.set_num_interop_threads = lambda _: None  # a process may do so once
train.skill = lambda _: 0.0  # mario_pipeline's plays for seconds, and isn't training
paceline.count = lambda name, number=1: calls.update({name: number})
for variant in ("baseline", "optimized", "beyond"):
    sys.argv = ["train.py", "--device", "cpu", "--variant", variant, *given]
    threading.setprofile(note)
    sys.setprofile(note)
    train.main()
    sys.setprofile(None)
    print(variant, sorted(calls.items()))
"""

# What is enough for every part of a step, updates too, to have its turn.
SHORT = {
    "mario_pipeline": "--environments 4 --epoch 32 --samples 1 --batch-size 16 --accumulate 1 --capacity 72 "
    "--chunk 8 --total-steps 32 --exploration-steps 20 --target-every 2",
    "snake_dqn": "--total-steps 80 --batch-size 16 --score-episodes 1",
    "snake_vectorized": "--warm-steps 4 --total-steps 12 --batch-size 16 --score-games 1",
    "zelda_overworld": "--total-steps 64 --rollout 32 --score-games 1 --score-steps 2",
}


@pytest.mark.parametrize("name", SHORT)
def test_three_hash_seeds_count_the_same_and_end_in_the_same_parameters(name: str) -> None:
    command = [sys.executable, "-c", COUNTED, str(ROOT / "trainers" / name), *SHORT[name].split()]
    path = str(ROOT / "trainers/harness/src")
    started = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": path, "PYTHONHASHSEED": seed}
        )
        for seed in "012"
    ]
    said = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert len(set(said)) == 1
    assert said[0].count("parameters: ") == 3
