"""The arguments of train.py, one by one, and what the variants make of them."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn

import torch


def option(
    default: Any, text: str, least: float = 0, most: float = math.inf, choices: Sequence[str] = ()
) -> Any:
    """A field of Args with its line of documentation and its bounds, or the words that it may be."""
    return field(default=default, metadata={"help": text, "least": least, "most": most, "choices": choices})


@dataclass(frozen=True)
class Args:
    """The arguments. None means: what the variant says."""

    variant: str = option("optimized", "baseline, optimized or beyond: the defaults of all the toggles below")
    seed: int | None = option(None, "seed of all that is drawn; else PACELINE_SEED or 0", most=2**31 - 1_000)
    total_steps: int = option(900, "decisions of every game, in training", least=1)
    games: int = option(8, "games side by side", least=1, most=64)

    keep_alive: bool | None = option(None, "toggle: requests over connections that stay open")
    pictures: int | None = option(None, "toggle: pictures in one request, at most", least=1, most=64)
    transfer: str | None = option(None, "toggle: how pictures travel", choices=("png", "rgb", "palette"))
    parallel: int | None = option(
        None, "toggle: requests under way at once, and the service's threads", least=1, most=16
    )
    overlap: bool | None = option(
        None, "toggle: the games in two halves; one is looked at while the other is played"
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
        None, "toggle: the cache knows pictures by fingerprints, near ones too; else byte by byte"
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

    threshold: float = option(3, "pixels by which a thing may have moved that still counts as the same")
    timeout: int = option(
        64, "steps that the cache keeps an answer; where lifetimes adapt, at first", least=1
    )
    cache_size: int = option(512, "answers that the cache keeps", least=1, most=10**5)
    ui_every: int = option(4, "decisions between two looks at a screen without play", least=1)
    checkpoint_every: int = option(20, "steps between two checkpoints; where that adapts, at first", least=1)
    batch_size: int = option(64, "transitions in the one update of a step", least=1, most=10_000)
    hidden: int = option(128, "units in each of the two hidden layers", least=1, most=10_000)
    learning_rate: float = option(1e-3, "learning rate of Adam", most=1)
    discount: float = option(0.9, "what a reward is worth one decision later", most=1)
    exploration_steps: int = option(200, "steps until random moves are at their last share, a twentieth")
    train_every: int = option(1, "steps from one that trains to the next", least=1)
    score_steps: int = option(200, "decisions of every game after training that measure the score", least=1)


VARIANTS: dict[str, dict[str, Any]] = {
    "baseline": {
        "keep_alive": False,
        "pictures": 1,
        "transfer": "png",
        "parallel": 1,
        "overlap": False,
        "priorities": False,
        "cache": "lru",
        "fingerprint": False,
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
    "transfer": "rgb",
    "parallel": 2,
    "priorities": True,
    "cache": "adaptive",
    "fingerprint": True,
    "similar": True,
    "skip_ui": True,
    "history_limit": 256,
    "collect": "idle",
    "delta": True,
    "asynchronous": True,
    "adaptive": True,
}
VARIANTS["beyond"] = VARIANTS["optimized"] | {
    "transfer": "palette",
    "parallel": 1,
    "overlap": True,
    "compact": True,
    "history_storage": "shared",
}


def refuse(sentence: str) -> NoReturn:
    """End with the status of a wrong argument."""
    print(f"train.py: {sentence}", file=sys.stderr)
    sys.exit(2)


class Parser(argparse.ArgumentParser):
    """One sentence for a wrong argument, in place of the usage."""

    def error(self, message: str) -> NoReturn:
        refuse(message)


def parse(arguments: Sequence[str]) -> Args:
    """Read and check the arguments, and fill in the variant's; exits with status 2 and one sentence."""
    parser = Parser(
        description=sys.modules["__main__"].__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for spec in fields(Args):
        flag, default, text = "--" + spec.name.replace("_", "-"), spec.default, spec.metadata["help"]
        if "bool" in str(spec.type):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=text)
            continue
        kind = next(kind for kind in (int, float, str) if kind.__name__ in str(spec.type))
        if spec.metadata["choices"]:
            text += ": " + ", ".join(spec.metadata["choices"])
        parser.add_argument(flag, type=kind, default=default, metavar=kind.__name__.upper(), help=text)
    known, unknown = parser.parse_known_args(arguments)
    if unknown:
        near = difflib.get_close_matches(unknown[0].partition("=")[0], parser._option_string_actions, n=1)
        refuse(f"there is no argument {unknown[0]}{f', did you mean {near[0]}?' if near else ''}")
    return complete(Args(**vars(known)))


def complete(args: Args) -> Args:
    """Check the values and return the arguments with the variant's in place of every None."""
    if args.variant not in VARIANTS:
        refuse(f"--variant is {args.variant!r}, must be one of {', '.join(VARIANTS)}")
    if args.seed is None:
        args = replace(args, seed=int(os.environ.get("PACELINE_SEED", "0")))
    chosen = {name: value for name, value in VARIANTS[args.variant].items() if getattr(args, name) is None}
    args = replace(args, **chosen)
    for spec in fields(Args):
        check(spec.name, getattr(args, spec.name), spec.metadata)
    if args.overlap and args.games < 2:
        refuse(f"--games is {args.games}, must be at least 2 with --overlap")
    if args.device == "cuda" and not torch.cuda.is_available():
        refuse("--device is cuda, but torch finds no CUDA device here")
    return args


def check(name: str, value: Any, metadata: Any) -> None:
    """Refuse a value beyond its bounds."""
    flag, least, most = "--" + name.replace("_", "-"), metadata["least"], metadata["most"]
    if metadata["choices"] and value not in metadata["choices"]:
        refuse(f"{flag} is {value!r}, must be one of {', '.join(metadata['choices'])}")
    if isinstance(value, int | float) and not least <= value <= most:
        bounds = f"at least {least}" if most == math.inf else f"from {least} to {most}"
        refuse(f"{flag} is {value}, must be {bounds}")
