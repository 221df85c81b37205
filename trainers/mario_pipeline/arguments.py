"""The arguments of train.py, one by one, and what the variants make of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmark_support import machine
from benchmark_support.arguments import MOST_SEED, option, parse_arguments, refuse
from benchmark_support.machine import AdaptedArguments


@dataclass(frozen=True)
class Args:
    """The arguments. None means: what the variant says."""

    variant: str = option("optimized", "baseline, optimized or beyond: the defaults of all the toggles below")
    seed: int | None = option(None, "seed of all that is drawn; else PACELINE_SEED or 0", most=MOST_SEED)
    total_steps: int = option(2048, "decisions of every environment, in training", least=1, most=10**9)
    game: str = option(
        "crazy_climber",
        "toggle: what is played, on an Atari 2600 or, our own, on a NES",
        choices=("crazy_climber", "side_scroller"),
    )
    environments: int = option(8, "games side by side, shared out among the collectors", least=1, most=512)

    collect: str = option(
        "threads",
        "toggle: threads in step with the learner, or processes that run free as the document has them",
        choices=("threads", "processes"),
    )
    collectors: int | None = option(None, "toggle: threads or processes that play", least=1, most=64)
    queues: str | None = option(
        None,
        "toggle: one queue and one lock for all, or a queue for each collector",
        choices=("shared", "local"),
    )
    transport: str | None = option(
        None,
        "toggle: what processes hand over goes through pipes, pickled, or lies in memory that they share",
        choices=("pickle", "memory"),
    )
    locked_learning: bool | None = option(
        None, "toggle: with processes and one lock, the learner holds it while it learns, not only to draw"
    )
    chunk: int | None = option(None, "toggle: experiences that are consolidated at once", least=1, most=10**7)
    memory: str | None = option(
        None, "toggle: a list of experiences, or a ring of arrays", choices=("list", "ring")
    )
    capacity: int | None = option(
        None, "toggle: experiences that the memory holds (the document's buffer)", least=1, most=10**6
    )
    uint8: bool | None = option(None, "toggle: pictures kept as bytes, not as float32")
    preallocate: bool | None = option(None, "toggle: batches gathered into buffers that are made once")
    batch_size: int | None = option(
        None, "toggle: samples in one pass through the network", least=2, most=10**5
    )
    accumulate: int | None = option(None, "toggle: batches in one step of the optimizer", least=1, most=10**6)
    bf16: bool | None = option(None, "toggle: passes in mixed precision, bfloat16 by autocast")
    fp16: bool | None = option(
        None, "toggle: passes in mixed precision, float16 with a scaler of gradients, unless bfloat16 is on"
    )
    direct_cast: bool | None = option(
        None, "toggle: pictures go from bytes into the passes' precision, not by float32"
    )
    batch_norm: bool | None = option(None, "toggle: BatchNorm behind every convolution")
    he_init: bool | None = option(None, "toggle: He's initialization in place of torch's")
    conv_biases: bool | None = option(None, "toggle: biases in the convolutions")
    inplace: bool | None = option(None, "toggle: ReLU writes over its input")
    compile: bool | None = option(
        None, "toggle: torch.compile with mode reduce-overhead; the variants use it on CUDA alone"
    )
    sync_every: int | None = option(
        None, "toggle: epochs from one copy for the collectors to the next", least=1, most=10**6
    )
    clear_every: int | None = option(
        None, "toggle: epochs from one clearing of the memory cache to the next; 0: never", most=10**6
    )
    data_parallel: bool | None = option(None, "toggle: batches split over all CUDA devices")
    clip: float | None = option(
        None, "toggle: norm that gradients are clipped to; 0: as they are", most=10**9
    )
    batched: bool | None = option(None, "toggle: a collector's games are one batch for its network")
    vectorized: bool | None = option(
        None, "toggle: a collector's games are one AtariVectorEnv; changes what is seen"
    )
    overlap: bool | None = option(None, "toggle: learn in a thread while the next epoch is collected")
    small: bool | None = option(None, "toggle: pictures of 42 x 40, not 52 x 53; changes what is seen")
    channels_last: bool | None = option(None, "toggle: convolutions with the channels innermost")
    fused: bool | None = option(None, "toggle: Adam as one operation for all parameters")
    device: str = option(
        "auto", "toggle: cpu, cuda, or auto for cuda where there is one", choices=("cpu", "cuda", "auto")
    )
    threads: int = option(1, "toggle: threads of torch, OpenMP and MKL; 0 means one per core", most=1024)

    episodes: int | None = option(
        None, "toggle: games in an epoch, with collectors as processes", least=1, most=10**6
    )
    epoch: int = option(
        256, "toggle: experiences in an epoch, which threads learn in the next one", least=1, most=10**6
    )
    samples: int = option(4, "samples learned for each experience", least=1, most=1000)
    queue_limit: int = option(
        10_000, "experiences that a queue holds; what comes then is dropped", least=1, most=10**9
    )
    learning_rate: float | None = option(None, "learning rate of Adam", most=1)
    discount: float = option(0.9, "what a reward is worth one decision later", most=1)
    horizon: int = option(
        4, "decisions whose rewards are summed before the network's own value", least=1, most=1000
    )
    target_every: int = option(4, "epochs from one copy for the targets to the next", least=1, most=10**6)
    exploration: float = option(0.4, "last share of random moves", most=1)
    exploration_steps: int = option(
        256, "steps until random moves are at their last share", least=1, most=10**9
    )
    game_steps: int = option(1000, "decisions after which a game ends", least=1, most=10**6)


VARIANTS: dict[str, dict[str, Any]] = {
    "baseline": {
        "collectors": 2,
        "queues": "shared",
        "transport": "pickle",
        "locked_learning": True,
        "chunk": 4,
        "memory": "list",
        "capacity": 10_000,
        "uint8": True,
        "preallocate": False,
        "batch_size": 256,
        "accumulate": 1,
        "bf16": False,
        "fp16": False,
        "direct_cast": False,
        "batch_norm": False,
        "he_init": False,
        "conv_biases": True,
        "inplace": False,
        "compile": False,
        "sync_every": 3,
        "episodes": 8,
        "clear_every": 0,
        "data_parallel": False,
        "clip": 0.0,
        "batched": False,
        "vectorized": False,
        "overlap": False,
        "small": False,
        "channels_last": False,
        "fused": False,
        "learning_rate": 1e-3,
    },
}
VARIANTS["optimized"] = VARIANTS["baseline"] | {
    "collectors": 4,
    "queues": "local",
    "chunk": 1024,
    "memory": "ring",
    "capacity": 50_000,
    "preallocate": True,
    "batch_size": 512,
    "accumulate": 4,
    "bf16": True,
    "fp16": True,
    "batch_norm": True,
    "he_init": True,
    "conv_biases": False,
    "inplace": True,
    "compile": True,
    "sync_every": 5,
    "clear_every": 2,
    "learning_rate": 2e-3,
}
VARIANTS["beyond"] = VARIANTS["optimized"] | {
    "collectors": 1,
    "batched": True,
    "vectorized": True,
    "overlap": True,
    "accumulate": 1,
    "fp16": False,
    "direct_cast": True,
    "small": True,
    "channels_last": True,
    "fused": True,
}


# Where a toggle can work at all, and where it pays.
WORKS = {"data_parallel": machine.on_two_gpus}
PAYS = {
    "bf16": machine.with_bfloat16,
    "fp16": machine.with_float16,
    "channels_last": machine.with_channels_last,
    "compile": machine.with_compiler,
}


def leave_to_float16(found: machine.Machine) -> str:
    """The document's float16 on CUDA, bfloat16 on processors."""
    return "leaves it to float16 on CUDA" if found.device == "cuda" else machine.with_bfloat16(found)


def leave_to_replicas(_: machine.Machine) -> str:
    return "can't be for replicas of data_parallel"


def leave_to_atari(_: machine.Machine) -> str:
    return "is an environment of ale-py, which doesn't know side_scroller"


def read_arguments(arguments: Sequence[str]) -> AdaptedArguments[Args]:
    """The arguments, with the variant's, as this machine can do them; exits with status 2 and a sentence."""
    given = parse_arguments(Args, VARIANTS, arguments, sys.modules["__main__"].__doc__)
    relate(given.args)
    works, pays = dict(WORKS), dict(PAYS)
    if given.args.game == "side_scroller":
        works["vectorized"] = leave_to_atari
    if given.args.fp16:
        pays["bf16"] = leave_to_float16
    if given.args.data_parallel:
        del pays["compile"]
        works["compile"] = leave_to_replicas
    return machine.fit_to_machine(given, machine.find_machine(given.args.device), works, pays)


def relate(args: Args) -> None:
    """Refuse values that don't fit each other."""
    per_epoch = args.epoch * args.samples
    if args.environments % (args.collectors or 1):
        refuse(
            f"--environments is {args.environments}, must be a multiple of --collectors, {args.collectors}"
        )
    if args.epoch % args.environments:
        refuse(f"--epoch is {args.epoch}, must be a multiple of --environments, {args.environments}")
    if per_epoch % (args.batch_size or 1):
        refuse(
            f"--batch-size is {args.batch_size}, must divide the {per_epoch} samples "
            "of an epoch, --epoch times --samples"
        )
    least = args.epoch + args.environments * (args.horizon + 1)
    if (args.capacity or 0) < least:
        refuse(
            f"--capacity is {args.capacity}, must be at least {least}, an --epoch and --horizon rounds more"
        )
    rounds = args.epoch // args.environments
    if args.horizon >= rounds:
        refuse(f"--horizon is {args.horizon}, must be below the {rounds} rounds of an --epoch")
