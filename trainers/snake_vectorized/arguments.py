"""The arguments of snake_vectorized, its variants, and what the machine leaves of them.

There are four variants. `baseline` is the loop as its engineers found it; `optimized` is what their plan
makes of it; `beyond` is what can be done on top; `superlinear` is `optimized` with three mechanisms planted
in it whose cost grows with the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmark_support import machine
from benchmark_support.arguments import MOST_SEED, option, parse_arguments, refuse
from benchmark_support.checkpoints import check_place
from benchmark_support.machine import AdaptedArguments


@dataclass(frozen=True)
class Args:
    """The arguments. None means: what the variant says."""

    variant: str = option("optimized", "baseline, optimized, beyond or superlinear: the toggles' defaults")
    seed: int | None = option(None, "seed of all that is drawn; else PACELINE_SEED or 0", most=MOST_SEED)
    total_steps: int = option(300, "decisions of every snake, in training", least=1, most=10**9)
    episodes: int = option(
        0, "end after so many episodes, however many steps it takes; 0: by steps", most=10**9
    )
    environments: int = option(256, "games side by side", least=1, most=100_000)

    environment: str | None = option(
        None, "toggle: the games on numpy's arrays, or on tensors on the device", choices=("numpy", "tensors")
    )
    push: str | None = option(None, "toggle: how transitions are pushed", choices=("item", "rows", "batch"))
    updates: int | None = option(None, "toggle: updates of the network in a step that trains", most=10**6)
    train_every: int = option(1, "toggle: steps from one that trains to the next", least=1)
    flood_fill: str | None = option(
        None, "toggle: how flood fill is computed", choices=("off", "search", "cached", "masks")
    )
    flood_every: int = option(1, "toggle: steps for which a flood fill is kept", least=1)
    log_every: int | None = option(None, "toggle: steps from one printed line to the next; 0: no metrics")
    memory: str | None = option(None, "toggle: where transitions are kept", choices=("deque", "list", "ring"))
    draw: str | None = option(None, "toggle: what draws the samples", choices=("random", "numpy"))
    network: str | None = option(
        None, "toggle: torch, or written out in numpy with its own backward", choices=("torch", "numpy")
    )
    acting: str = option("batch", "toggle: games that the network sees at once", choices=("batch", "each"))
    whole_mean: bool | None = option(None, "toggle: each loss takes the mean over all the losses so far")
    exploration_steps: int | None = option(None, "toggle: steps until random moves are at their last share")
    exploration_decay: float = option(
        0, "toggle: what each episode leaves of the share of random moves; 0: they fade by steps", most=1
    )
    capacity: int | None = option(None, "toggle: transitions that the memory holds", least=1, most=10**7)
    device: str | None = option(None, "toggle: where the network is", choices=("cpu", "cuda", "auto"))
    bf16: bool | None = option(None, "toggle: the network in bfloat16; the variants use it on CUDA alone")
    pinned: bool | None = option(None, "toggle: copies to the device from pinned memory")
    graphs: bool | None = option(None, "toggle: each update replayed as one CUDA graph; on CUDA only")
    threads: int = option(1, "toggle: torch threads; 0 means one per core", most=1024)

    batch_size: int = option(64, "transitions in an update", least=1)
    hidden: int = option(128, "units in each of the two hidden layers", least=1, most=10_000)
    learning_rate: float = option(1e-3, "learning rate of Adam", most=1)
    discount: float = option(0.9, "what a reward is worth one step later", most=1)
    exploration: float = option(0.01, "last share of random moves", most=1)
    warm_steps: int = option(
        0, "steps of training before the loop, for a loop whose episodes stay alike", most=10**9
    )
    prefill: int = option(
        0,
        "transitions of random moves in the memory before the loop; nothing is learned from them",
        most=10**7,
    )
    timing_every: int = option(0, "steps from one printed line of times to the next; 0: none")
    save: str = option("", "file for all that the training needs to go on, written at its end")
    save_every: int = option(1_000, "episodes from one save to the next, where there is a file", least=1)
    resume: str = option("", "file of a training to go on with")
    score_games: int = option(64, "games played after training to measure the score", least=1, most=10_000)


VARIANTS: dict[str, dict[str, Any]] = {
    "baseline": {
        "environment": "tensors",
        "push": "item",
        "updates": 64,
        "flood_fill": "search",
        "log_every": 1,
        "memory": "deque",
        "draw": "random",
        "network": "torch",
        "whole_mean": False,
        "exploration_steps": 60,
        "capacity": 50_000,
        "device": "cpu",
        "bf16": False,
        "pinned": False,
        "graphs": False,
    },
}
VARIANTS["optimized"] = VARIANTS["baseline"] | {
    "environment": "numpy",
    "push": "batch",
    "updates": 4,
    "flood_fill": "cached",
    "log_every": 50,
    "memory": "list",
    "device": "auto",
    "bf16": True,
    "pinned": True,
}
VARIANTS["beyond"] = VARIANTS["optimized"] | {
    "flood_fill": "masks",
    "memory": "ring",
    "draw": "numpy",
    "network": "numpy",
    "graphs": True,
}
VARIANTS["superlinear"] = VARIANTS["optimized"] | {
    "memory": "deque",
    "whole_mean": True,
    "exploration_steps": 400,
    "capacity": 1_000_000,
}


# Where a toggle can work at all, and where it pays.
WORKS = {"pinned": machine.on_cuda, "graphs": machine.on_cuda}
PAYS = {"bf16": machine.with_bfloat16_on_cuda}


def read_arguments(arguments: Sequence[str]) -> AdaptedArguments[Args]:
    """The arguments, with the variant's, as this machine can do them; exits with status 2 and a sentence."""
    given = parse_arguments(Args, VARIANTS, arguments, __doc__)
    args = given.args
    check_place(args.save)
    if args.batch_size > args.capacity:
        refuse(f"--batch-size is {args.batch_size}, more than the --capacity of {args.capacity}")
    if args.environments > args.capacity:
        refuse(f"--environments is {args.environments}, more than the --capacity of {args.capacity}")
    if args.network == "numpy" and args.acting == "each":
        refuse("--acting is each, which is only for --network torch")
    if args.network == "numpy" and args.environment == "tensors":
        refuse("--environment is tensors, which is only for --network torch")
    found = machine.find_machine(args.device)
    if args.network == "numpy" and found.device == "cuda":
        if "network" in given.explicit:
            refuse("--network is numpy, which has no CUDA; give --device cpu too")
        given = replace(given, args=replace(args, network="torch"))
    return machine.fit_to_machine(given, found, WORKS, PAYS)
