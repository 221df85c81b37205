"""Counters are exact only where no hash decides anything: two hash seeds must count the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.harness.strangers import UNCOMPILED
from tests.trainers.conftest import ROOT
from tests.trainers.cs2_vision_fixtures import weights as weights

# A process per seed forks one for each benchmark: torch takes most of a short training's time to import.
COUNTED = (
    UNCOMPILED
    + """
import json, os, threading
from collections import Counter
import gymnasium, paceline
def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(folder):
        called.append((frame.f_code.co_qualname, 1))
def train_variants(variants, profiled, *given):
    import train
    train.skill = lambda _: 0.0  # mario_pipeline's plays for seconds, and isn't training
    for variant in variants:
        sys.argv = ["train.py", "--device", "cpu", "--variant", variant, *given]
        if profiled:
            threading.setprofile(note)
            sys.setprofile(note)
        train.main()
        sys.setprofile(None)
        calls = Counter()
        for name, number in called:
            calls[name] += number
        print(variant, json.dumps(sorted(calls.items())))
torch.set_num_interop_threads = lambda _: None  # a process may do so once
# Several threads call: to append takes one step, to add a number two, between which another one adds.
called = []
paceline.count = lambda name, number=1: called.append((name, number))
gc.freeze()  # an emulator collects garbage whenever it begins
for folder, given in json.loads(sys.argv[1]).items():
    print("begin", folder, flush=True)
    child = os.fork()
    if not child:
        sys.path.insert(0, folder)
        train_variants(*given)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
)

VARIANTS = ("baseline", "optimized", "beyond")
# What is enough for every part of a step, updates too, to have its turn.
SHORT = {
    "mario_pipeline": "--environments 2 --collectors 2 --epoch 24 --samples 1 --batch-size 8 --accumulate 1 "
    "--capacity 56 --chunk 8 --total-steps 24 --exploration-steps 16 --target-every 2",
    "snake_dqn": "--total-steps 48 --batch-size 16 --score-episodes 1",
    "snake_vectorized": "--environments 4 --warm-steps 4 --total-steps 8 --updates 8 --batch-size 16 "
    "--score-games 1",
    "zelda_overworld": "--total-steps 32 --rollout 16 --minibatch 16 --score-games 1 --score-steps 2",
}
# How often its threads look for an answer, the service's speed decides.
UNPROFILED = {
    "cs2_vision": "--total-steps 12 --games 4 --score-steps 1 --latency-ms 1 --weights {weights}",
}


def test_two_hash_seeds_count_the_same_and_end_in_the_same_parameters(weights: Path) -> None:
    trained = {name: (VARIANTS, True, *arguments.split()) for name, arguments in SHORT.items()}
    for name, arguments in UNPROFILED.items():
        trained[name] = (("beyond",), False, *arguments.format(weights=weights).split())
    given = {str(ROOT / "trainers" / name): arguments for name, arguments in trained.items()}
    path = str(ROOT / "trainers/harness/src")
    started = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTED, json.dumps(given)],
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": path, "PYTHONHASHSEED": seed, "OMP_WAIT_POLICY": "PASSIVE"},
        )
        for seed in "01"
    ]
    said = [process.communicate()[0].split("begin ")[1:] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert len(said[0]) == len(trained)
    for name, *texts in zip(trained, *said, strict=True):
        if name in UNPROFILED:
            # Before its score it says how long each part of a step took.
            texts = [text.partition("score: ")[2] for text in texts]
        assert len(set(texts)) == 1
        assert texts[0].count("parameters: ") == len(trained[name][0])
    counts = dict(json.loads(said[0][-1].splitlines()[-1].removeprefix("beyond ")))
    assert {"api_calls", "bytes_sent", "cache_hits", "parsed"} <= set(counts)
