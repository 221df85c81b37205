"""The arguments of train.py, one by one, and what the variants make of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmark_support import machine
from benchmark_support.arguments import option, parse_arguments, refuse
from benchmark_support.machine import AdaptedArguments
from weights import DEFAULT_STEPS

THRESHOLD = 20
"""Bits of 256: see the README for what fewer and more of them do."""


@dataclass(frozen=True)
class Args:
    """The arguments. None means: what the variant says."""

    variant: str = option("optimized", "baseline, optimized or beyond: the defaults of all the toggles below")
    seed: int | None = option(None, "seed of all that is drawn; else PACELINE_SEED or 0", most=2**31 - 1_000)
    total_steps: int = option(900, "decisions of every game, in training", least=1)
    games: int = option(8, "games side by side", least=1, most=64)

    keep_alive: bool | None = option(None, "toggle: requests over connections that stay open")
    pictures: int | None = option(None, "toggle: pictures in one request, at most", least=1, most=64)
    transfer: str | None = option(
        None, "toggle: how pictures travel", choices=("png", "rgb", "palette", "packed")
    )
    parallel: int | None = option(
        None, "toggle: requests under way at once, and the service's threads", least=1, most=16
    )
    groups: int | None = option(
        None, "toggle: groups of games that take turns: while one is looked at, others play", least=1, most=64
    )
    priorities: bool | None = option(
        None, "toggle: pictures that no decision waits for are asked about last and read a decision later"
    )
    cache: str | None = option(
        None,
        "toggle: what keeps answers: nothing, the newest used, or lifetimes that adapt",
        choices=("none", "lru", "adaptive"),
    )
    fingerprint: bool | None = option(
        None, "toggle: the cache knows pictures by a perceptual hash, near ones too; else byte by byte"
    )
    cache_size: int | None = option(
        None, "toggle: answers that the cache keeps; 0 goes by the machine's memory", most=10**5
    )
    evict: str | None = option(
        None,
        "toggle: what makes room in it: what was used longest ago, or least",
        choices=("oldest", "frequent"),
    )
    similar: bool | None = option(None, "toggle: an answer that was parsed before is not parsed again")
    compact: bool | None = option(None, "toggle: answers as short lists, not as sentences with units")
    skip_ui: bool | None = option(
        None, "toggle: screens without play are looked at now and then, and not twice when they change"
    )
    history_limit: int | None = option(
        None, "toggle: observations that the history keeps", least=64, most=10**5
    )
    history_storage: str | None = option(
        None,
        "toggle: how it keeps pictures: in colour, as palette, or each only once",
        choices=("rgb", "palette", "shared"),
    )
    collect: str | None = option(
        None,
        "toggle: when Python's garbage is collected: by its own count, or while answers are awaited",
        choices=("automatic", "idle"),
    )
    delta: bool | None = option(None, "toggle: a checkpoint holds what differs from the one before")
    asynchronous: bool | None = option(None, "toggle: checkpoints are written by a thread")
    adaptive: bool | None = option(None, "toggle: fewer checkpoints while the rewards are stable")
    device: str = option("auto", "toggle: the vision service's device", choices=("cpu", "cuda", "auto"))
    threads: int = option(1, "toggle: torch threads; 0 means one per core", most=1024)

    latency_ms: float = option(
        4, "milliseconds of a round trip to the vision service; 0 for none", most=10_000
    )
    bandwidth_mbit: float = option(
        100, "megabits a second of the network to the vision service; 0 for no limit", most=10**6
    )
    weights: str = option(
        "", "file of the detector's weights; else one in the cache folder, made where missing"
    )
    detector_steps: int = option(DEFAULT_STEPS, "updates in the detector's training", least=1, most=10**6)
    detector_seed: int = option(0, "seed of the detector's training", most=2**31)

    threshold: int = option(THRESHOLD, "bits by which two pictures' hashes may differ that count as the same")
    timeout: int = option(
        64, "steps that the cache keeps an answer; where lifetimes adapt, at first", least=1
    )
    ui_every: int = option(4, "decisions between two looks at a screen without play", least=1)
    checkpoint_every: int = option(20, "steps between two checkpoints; where that adapts, at first", least=1)
    batch_size: int = option(64, "transitions in the one update of a step", least=1, most=10_000)
    hidden: int = option(128, "units in each of the two hidden layers", least=1, most=10_000)
    learning_rate: float = option(1e-3, "learning rate of Adam", most=1)
    discount: float = option(0.9, "what a reward is worth one decision later", most=1)
    exploration_steps: int = option(120, "steps until random moves are at their last share, a twentieth")
    train_every: int = option(1, "steps from one that trains to the next", least=1)
    score_steps: int = option(200, "decisions of every game after training that measure the score", least=1)


VARIANTS: dict[str, dict[str, Any]] = {
    "baseline": {
        "keep_alive": False,
        "pictures": 1,
        "transfer": "png",
        "parallel": 1,
        "groups": 1,
        "priorities": False,
        "cache": "lru",
        "fingerprint": False,
        "cache_size": 256,
        "evict": "oldest",
        "similar": False,
        "compact": False,
        "skip_ui": False,
        "history_limit": 880,
        "history_storage": "rgb",
        "collect": "automatic",
        "delta": False,
        "asynchronous": False,
        "adaptive": False,
    },
}
VARIANTS["optimized"] = VARIANTS["baseline"] | {
    "keep_alive": True,
    "pictures": 8,
    "transfer": "packed",
    "parallel": 2,
    "priorities": True,
    "cache": "adaptive",
    "fingerprint": True,
    "cache_size": 0,
    "evict": "frequent",
    "similar": True,
    "skip_ui": True,
    "history_limit": 256,
    "collect": "idle",
    "delta": True,
    "asynchronous": True,
    "adaptive": True,
}
VARIANTS["beyond"] = VARIANTS["optimized"] | {
    "parallel": 1,
    "groups": 4,
    "compact": True,
    "history_storage": "shared",
}


def read_arguments(arguments: Sequence[str]) -> AdaptedArguments[Args]:
    """The arguments, with the variant's, as this machine can do them; exits with status 2 and a sentence."""
    given = parse_arguments(Args, VARIANTS, arguments, sys.modules["__main__"].__doc__)
    groups = int(given.args.groups or 1)
    if given.args.games < groups:
        refuse(f"--games is {given.args.games}, must be at least {groups} with --groups {groups}")
    return machine.fit_to_machine(given, machine.find_machine(given.args.device), {}, {})
