"""An agent learns a game that it sees only through a vision service. Read this file first.

The games are shooters on rails that draw their own pictures (games.py, scenes.py, renderer.py). The pictures
go over HTTP to a process of its own (client.py, service.py, network.py), where a convolutional network finds
what is on them (detector.py, taught by train_detector.py) and answers in JSON (answers.py). In front of it is
a cache (cache.py, hashing.py), behind it the observation history (history.py); observer.py puts these
together. agent.py learns from what was seen, checkpoints.py keeps it, scoring.py judges it.

There are three variants: `baseline`, `optimized`, which is what the engineers of such a loop planned for it,
and `beyond`. Each optimization is one argument (arguments.py), so that any of them can be switched alone:
`python train.py --variant optimized --no-keep-alive`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# numpy's library reads this once, when it is loaded: with a thread for each core it spins, and a busy machine
# takes forty times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The benchmarks share a package that lies beside their folders.
sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

import gc
import tempfile

import numpy as np
import paceline
from agent import Agent
from arguments import Args, read_arguments
from benchmark_support.machine import prepare_torch
from cache import cache_entries, machine_memory
from checkpoints import Checkpoints
from client import Client, MissingPartError, Service, ServiceError, Setup, resident
from games import Game
from history import History
from observer import Observer
from playing import make_groups, play
from scoring import agreement, score
from weights import WeightsError, load, make, weights_path

IDLE = 5
"""Per cent of a slice below which a processor counts as idle."""


def train(args: Args, observer: Observer, agent: Agent, checkpoints: Checkpoints) -> None:
    """The training loop. One step is one decision of every game."""
    groups = make_groups(args, [Game(int(args.seed or 0) + game) for game in range(args.games)])
    for group in groups:
        observer.begin(group.numbers, group.screens(), 0)
        observer.finish(group.numbers)
    for step in paceline.steps(range(1, args.total_steps + 1)):
        for group in groups:
            play(group, observer, agent, agent.exploration(step), step)
        with paceline.phase("train"):
            if step % args.train_every == 0:
                agent.learn()
        with paceline.phase("checkpoint"):
            checkpoints.consider(step)
        if step % args.checkpoint_every == 0:
            with paceline.phase("report"):
                report(observer, checkpoints)
    for group in groups:
        observer.finish(group.numbers)


def report(observer: Observer, checkpoints: Checkpoints) -> None:
    """Set all gauges that are not set where they arise."""
    report_memory(observer, checkpoints)
    report_usage(observer.client)


def report_usage(client: Client) -> None:
    """How busy the GPU was that looks at pictures, or without one the service's processor.

    On average, at peaks (the 95th percentile of the slices), and how often it was idle.
    """
    usage = client.usage()
    shares = np.array(usage.get("gpu") or usage["service"] or [0.0])
    paceline.gauge("vision_busy", float(shares.mean()))
    paceline.gauge("vision_peak", float(np.percentile(shares, 95)))
    paceline.gauge("vision_idle", 100 * float((shares < IDLE).mean()))


def report_memory(observer: Observer, checkpoints: Checkpoints) -> None:
    """The bytes of the service, the trainer, the history, and of all the checkpoints on the disk."""
    service, own = resident(observer.client.service.process.pid), resident(os.getpid())
    paceline.gauge("service_memory", service)
    paceline.gauge("trainer_memory", own)
    paceline.gauge("service_share", 100 * service / max(1, service + own))
    paceline.gauge("history_bytes", observer.history.bytes())
    paceline.gauge("checkpoint_bytes", checkpoints.bytes)


def run(args: Args, device: str, folder: Path) -> None:
    """Train, then say how well it learned."""
    weights = Path(args.weights or weights_path(args.detector_steps, args.detector_seed))
    make(weights, args.detector_steps, args.detector_seed)
    # A file that holds none gets its sentence here, not from the service.
    load(weights)
    service = Service(service_setup(args, device, weights))
    try:
        client = Client(
            service,
            keep_alive=bool(args.keep_alive),
            transfer=str(args.transfer),
            compact=bool(args.compact),
        )
        history = History(args.games, int(args.history_limit or 64), str(args.history_storage))
        agent = Agent(args)
        observer = Observer(args, client, history)
        checkpoints = Checkpoints(args, agent, folder)
        train(args, observer, agent, checkpoints)
        checkpoints.close()
        print(observer.shares.table())
        report_qualities(args, observer, agent)
        client.close()
    finally:
        service.close()


def service_setup(args: Args, device: str, weights: Path) -> Setup:
    """What the vision service is started with."""
    threads = args.threads or os.cpu_count() or 1
    network = args.latency_ms, args.bandwidth_mbit
    return Setup(device, str(weights), int(args.parallel or 1), threads, *network)


def report_qualities(args: Args, observer: Observer, agent: Agent) -> None:
    """Measure, report and print how well the agent plays and sees."""
    hits, right = score(args, observer, agent)
    qualities = {"score": hits, "detection": right, "agreement": agreement(observer, agent)}
    for name, value in qualities.items():
        paceline.quality(name, value)
    print(f"score: {hits:.2f} of the enemies are hit")
    print(f"detection: {right:.2f} of the pictures are seen right")
    print(f"agreement: {qualities['agreement']:.2f} of the actions")
    print(f"parameters: {agent.fingerprint()}")


def main() -> None:
    """Run what the arguments say; where something is missing one sentence tells so."""
    fitted = read_arguments(sys.argv[1:])
    args, device = fitted.args, prepare_torch(fitted).type
    if args.cache_size == 0:
        paceline.setting("cache_entries", cache_entries(0, machine_memory()))
    if args.collect == "idle":
        gc.disable()
    try:
        with tempfile.TemporaryDirectory() as folder:
            run(args, device, Path(folder))
    except (MissingPartError, ServiceError, WeightsError) as error:
        sys.exit(f"train.py: {error}")


if __name__ == "__main__":
    main()
