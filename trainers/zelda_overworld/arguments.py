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
    total_steps: int = option(
        3_584, "decisions in training, those of all environments together", least=1, most=10**9
    )

    save: str = option("", "file or folder that the training is saved to")
    save_every: int = option(
        0, "decisions between two such saves, at the next update; 0: only at the end", most=10**9
    )
    resume: str = option("", "file that the training goes on from, or folder, whose newest one is meant")
    start: str = option(
        "scratch",
        "policy that the training starts with, untrained or one that comes along",
        choices=("scratch", "trained"),
    )
    profiled_rollout: int = option(
        12, "this rollout is taken under Python's profiler, for the shares of time; 0: none", most=10**6
    )

    stack: bool | None = option(None, "toggle: stack pictures as one array, not as a tensor each")
    is_loaded: bool | None = option(None, "toggle: look at a room's tiles once, not whenever it is asked")
    equipment: bool | None = option(None, "toggle: check the equipment in one loop, not in twenty calls")
    full_location: bool | None = option(
        None, "toggle: make a state's location once, not whenever it is asked"
    )
    image: bool | None = option(None, "toggle: gray by weights that are normalized before")
    information: bool | None = option(None, "toggle: write the facts into one tensor, not three")
    map_location: bool | None = option(None, "toggle: locations with slots and a kept hash, without a check")
    categorical: bool | None = option(None, "toggle: a minimal categorical distribution")
    gae: bool | None = option(None, "toggle: advantages from batched operations, not number by number")
    lazy: bool | None = option(None, "toggle: lazy attributes in place of functools.cached_property")
    direct: bool | None = option(None, "toggle: step the emulator itself, look at every seventh frame only")
    rolling: bool | None = option(None, "toggle: turn each picture to gray once, not for three stacks")
    gather: bool | None = option(None, "toggle: gather every batch into the same memory")
    workers: int | None = option(
        None, "toggle: emulators in processes of their own; 0: one, in this", most=64
    )
    overlap: bool | None = option(None, "toggle: learn in a thread while the next rollout is played")
    small: bool | None = option(None, "toggle: pictures of 56 x 60, not 112 x 120; changes what is learned")
    channels_last: bool | None = option(None, "toggle: convolutions with the channels innermost")
    bf16: bool | None = option(None, "toggle: the network computes in bfloat16; changes what is learned")
    device: str = option(
        "auto", "toggle: cpu, cuda, or auto for cuda where there is one", choices=("cpu", "cuda", "auto")
    )
    threads: int = option(1, "toggle: torch threads; 0 means one per core", most=1024)

    rollout: int = option(
        128, "decisions between two updates, those of all environments together", least=2, most=10_000
    )
    epochs: int = option(3, "times that each decision is learned", least=1, most=1000)
    minibatch: int = option(32, "decisions in one step of the optimizer", least=2)
    learning_rate: float = option(2e-3, "learning rate of Adam", most=1)
    discount: float = option(0.8, "what a reward is worth one decision later", most=1)
    smoothing: float = option(0.8, "lambda of the advantage estimates", most=1)
    clip: float = option(0.2, "how far the policy may move before the gradient ends", most=1)
    entropy: float = option(0.01, "weight of the policy's entropy", most=1)
    game_steps: int = option(300, "decisions after which a game ends", least=1, most=10**9)
    score_games: int = option(2, "games played after training to measure the score", least=1, most=10_000)
    score_steps: int = option(200, "decisions after which such a game ends", least=1, most=10**9)


VARIANTS: dict[str, dict[str, Any]] = {
    "baseline": {
        "stack": False,
        "is_loaded": False,
        "equipment": False,
        "full_location": False,
        "image": False,
        "information": False,
        "map_location": False,
        "categorical": False,
        "gae": False,
        "lazy": False,
        "direct": False,
        "rolling": False,
        "gather": False,
        "workers": 0,
        "overlap": False,
        "small": False,
        "channels_last": False,
        "bf16": False,
    },
}
VARIANTS["optimized"] = VARIANTS["baseline"] | dict.fromkeys(
    ("stack", "is_loaded", "equipment", "full_location", "image", "information", "map_location"), True
)
VARIANTS["beyond"] = VARIANTS["optimized"] | {
    "categorical": True,
    "gae": True,
    "lazy": True,
    "direct": True,
    "rolling": True,
    "gather": True,
    "workers": 2,
    "overlap": True,
    "small": True,
}


# Where a toggle pays.
PAYS = {"bf16": machine.with_bfloat16, "channels_last": machine.with_channels_last}


def read_arguments(arguments: Sequence[str]) -> AdaptedArguments[Args]:
    """The arguments, with the variant's, as this machine can do them; exits with status 2 and a sentence."""
    given = parse_arguments(Args, VARIANTS, arguments, sys.modules["__main__"].__doc__)
    args = given.args
    if args.rollout % (args.workers or 1):
        refuse(f"--rollout is {args.rollout}, must be a multiple of --workers, {args.workers}")
    if args.minibatch > args.rollout:
        refuse(f"--minibatch is {args.minibatch}, more than the --rollout of {args.rollout}")
    return machine.fit_to_machine(given, machine.find_machine(args.device), {}, PAYS)
