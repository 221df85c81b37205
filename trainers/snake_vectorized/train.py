"""A DQN learns Snake in 256 games at once. Read this file from top to bottom. The games are in
environment.py, flood fill in flood.py, the replay memory in memory.py, the network in agents.py, and the
printed line in metrics.py.

There are four variants. `baseline` is the loop as its engineers found it; `optimized` is what their plan
makes of it; `beyond` is what can be done on top; `superlinear` is `optimized` with three mechanisms planted
in it whose cost grows with the run. Each step between them is one argument, so that any of them can be
switched alone: `python train.py --variant optimized --push item`.
"""

from __future__ import annotations

import os

# numpy's library reads this once, when it is loaded: with a thread for each core it spins, and a busy machine
# takes forty times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import difflib
import itertools
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn

import numpy as np
import paceline
import torch
from agents import Agent, WrittenOut, fingerprint
from environment import LOOKS, Snakes
from flood import FILLS, MaskFill
from memory import Drawing, Ring, Rows, memory
from metrics import Metrics


def option(
    default: Any, text: str, least: float = 0, most: float = math.inf, choices: Sequence[str] = ()
) -> Any:
    """A field of Args with its line of documentation and its bounds, or the words that it may be."""
    return field(default=default, metadata={"help": text, "least": least, "most": most, "choices": choices})


@dataclass(frozen=True)
class Args:
    """The arguments. None means: what the variant says."""

    variant: str = option("optimized", "baseline, optimized, beyond or superlinear: the toggles' defaults")
    seed: int | None = option(None, "seed of all that is drawn; else PACELINE_SEED or 0", most=2**32 - 1)
    total_steps: int = option(300, "decisions of every snake, in training", least=1, most=10**9)
    episodes: int = option(
        0, "end after so many episodes, however many steps it takes; 0: by steps", most=10**9
    )
    environments: int = option(256, "games side by side", least=1, most=100_000)

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
    score_games: int = option(64, "games played after training to measure the score", least=1, most=10_000)


VARIANTS: dict[str, dict[str, Any]] = {
    "baseline": {
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


def refuse(sentence: str) -> NoReturn:
    """End with the status of a wrong argument."""
    print(f"train.py: {sentence}", file=sys.stderr)
    sys.exit(2)


class Parser(argparse.ArgumentParser):
    """One sentence for a wrong argument, in place of the usage."""

    def error(self, message: str) -> NoReturn:
        refuse(message.replace("ignored explicit argument", "takes no value, but was given"))


def parse(arguments: Sequence[str]) -> Args:
    """Read and check the arguments, and fill in the variant's; exits with status 2 and one sentence."""
    parser = Parser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    for spec in fields(Args):
        flag, default, text = "--" + spec.name.replace("_", "-"), spec.default, spec.metadata["help"]
        if "bool" in str(spec.type):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=default, help=text)
            continue
        kind = next(kind for kind in (int, float, str) if kind.__name__ in str(spec.type))
        shown = kind.__name__.upper()
        if spec.metadata["choices"]:
            text += ": " + ", ".join(spec.metadata["choices"])
        parser.add_argument(flag, type=kind, default=default, metavar=shown, help=text)
    known, unknown = parser.parse_known_args(arguments)
    if unknown:
        near = difflib.get_close_matches(unknown[0].partition("=")[0], parser._option_string_actions, n=1)
        refuse(f"there is no argument {unknown[0]}{f', did you mean {near[0]}?' if near else ''}")
    return complete(Args(**vars(known)))


def given_seed() -> int:
    """The seed that the measurement gives, or 0."""
    text = os.environ.get("PACELINE_SEED", "0")
    if not text.isascii() or not text.isdigit():
        refuse(f"PACELINE_SEED is {text!r}, must be a number from 0 to {2**32 - 1}")
    return int(text)


def complete(args: Args) -> Args:
    """Check the values and return the arguments with the variant's in place of every None."""
    if args.variant not in VARIANTS:
        refuse(f"--variant is {args.variant!r}, must be one of {', '.join(VARIANTS)}")
    if args.seed is None:
        args = replace(args, seed=given_seed())
    said = {name for name in VARIANTS[args.variant] if getattr(args, name) is not None}
    chosen = {name: value for name, value in VARIANTS[args.variant].items() if name not in said}
    args = replace(args, **chosen)
    for spec in fields(Args):
        check(spec.name, getattr(args, spec.name), spec.metadata)
    if args.batch_size > args.capacity:
        refuse(f"--batch-size is {args.batch_size}, more than the --capacity of {args.capacity}")
    if args.environments > args.capacity:
        refuse(f"--environments is {args.environments}, more than the --capacity of {args.capacity}")
    if args.device == "cuda" and not torch.cuda.is_available():
        refuse("--device is cuda, but torch finds no CUDA device here")
    return fit_to_device(args, said)


def check(name: str, value: Any, metadata: Any) -> None:
    """Refuse a value beyond its bounds."""
    flag, least, most = "--" + name.replace("_", "-"), metadata["least"], metadata["most"]
    if metadata["choices"] and value not in metadata["choices"]:
        refuse(f"{flag} is {value!r}, must be one of {', '.join(metadata['choices'])}")
    if isinstance(value, int | float) and not least <= value <= most:
        bounds = f"at least {least}" if most == math.inf else f"from {least} to {most}"
        refuse(f"{flag} is {value}, must be {bounds}")


def fit_to_device(args: Args, said: set[str]) -> Args:
    """Fit what only the variant says to the device that was found."""
    cuda = args.device != "cpu" and torch.cuda.is_available()
    if args.network == "numpy" and "network" in said and cuda:
        refuse("--network is numpy, which has no CUDA; give --device cpu too")
    if args.network == "numpy" and args.acting == "each":
        refuse("--acting is each, which is only for --network torch")
    for name in ("pinned", "graphs"):
        if getattr(args, name) and name in said and not cuda:
            refuse(f"--{name} works on CUDA only, and this run is on the CPU")
    return replace(
        args,
        device="cuda" if cuda else "cpu",
        network="torch" if cuda else args.network,
        bf16=args.bf16 if cuda or "bf16" in said else False,
        pinned=args.pinned and cuda,
        graphs=args.graphs and cuda,
    )


def prepare(args: Args) -> torch.device:
    """Set torch up as the arguments say; return the device and print which path was taken."""
    threads = args.threads or os.cpu_count() or 1
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(threads)
    torch.manual_seed(args.seed)
    cuda = args.device == "cuda"
    name = torch.cuda.get_device_name() if cuda else f"{threads} thread{'s' if threads > 1 else ''}"
    print(f"path: {args.device}, {name}, variant {args.variant}, network in {args.network}")
    return torch.device(args.device)


class Training:
    """Everything that the loop works on."""

    def __init__(self, args: Args, device: torch.device) -> None:
        self.args = args
        self.games = Snakes(args.environments, args.seed)
        self.fill = FILLS[args.flood_fill]() if args.flood_fill in FILLS else None
        self.spaces = np.zeros((args.environments, 3), dtype=np.float32)
        self.features = LOOKS + (3 if self.fill else 0)
        written_out = args.network == "numpy"
        self.agent = WrittenOut(args, self.features) if written_out else Agent(args, self.features, device)
        drawing = Drawing(args.seed, args.draw == "numpy")
        self.memory = memory(args.memory, args.capacity, drawing, self.features)
        self.metrics = Metrics(args.whole_mean)

    def exploration(self, step: int) -> float:
        """Return the share of random moves."""
        return max(self.args.exploration, 1 - step / max(1, self.args.exploration_steps))

    def trains(self, step: int) -> bool:
        """Return whether this step is one that trains."""
        return len(self.memory) >= self.args.batch_size and step % self.args.train_every == 0


def look(training: Training, step: int) -> Any:
    """Return what the snakes see, as the agent holds it: games x features."""
    with paceline.phase("env"):
        views = np.empty((training.args.environments, training.features), dtype=np.float32)
        training.games.view(views[:, :LOOKS])
    if training.fill is not None:
        with paceline.phase("flood_fill"):
            if step % training.args.flood_every == 0:
                training.spaces = training.fill.spaces(training.games)
                paceline.count("fills", training.fill.fills)
                paceline.count("cells", training.fill.cells)
            views[:, LOOKS:] = training.spaces
    with paceline.phase("env"):
        return training.agent.hold(views)


def as_array(values: Any) -> Any:
    """Bring a tensor to the host; what is an array already stays one."""
    return values.cpu().numpy() if torch.is_tensor(values) else values


def push(memory: Rows | Ring, how: str, transitions: tuple[Any, ...]) -> None:
    """Keep one transition of every game: views, actions, rewards, following views, ended, a row for each."""
    views, actions, rewards, following, ended = transitions
    if how == "batch":
        memory.push_batch(*map(as_array, transitions))
    elif how == "rows":
        for row in zip(*map(as_array, transitions), strict=True):
            memory.push(*row)
    else:
        for at in range(len(ended)):
            memory.push(
                as_array(views[at]),
                actions[at].item(),
                rewards[at].item(),
                as_array(following[at]),
                ended[at].item(),
            )


def learn(training: Training) -> None:
    """The updates of one step."""
    args = training.args
    for _ in range(args.updates):
        with paceline.phase("sample"):
            batch = training.memory.sample(args.batch_size)
        with paceline.phase("update"):
            loss = training.agent.learn(batch)
        if args.log_every:
            with paceline.phase("log"):
                training.metrics.add_loss(loss())


def log(training: Training, step: int) -> None:
    """Keep the episodes that ended, and print a line where it is time for one."""
    ended = training.metrics.add_episodes(training.games)
    paceline.count("episodes", ended)
    if ended:
        paceline.gauge("episode_steps", training.games.ended_ages.mean())
    if training.args.log_every and step % training.args.log_every == 0:
        print(training.metrics.line(step, training.exploration(step)))


def run(training: Training, steps: Iterable[int], episodes: int) -> None:
    """Take these steps, or as many as so many episodes need. One step is one decision of every snake."""
    args, games, agent = training.args, training.games, training.agent
    views = look(training, 0)
    for step in steps:
        with paceline.phase("act"):
            actions = agent.act(views, training.exploration(step))
        with paceline.phase("env"):
            rewards, ended = map(agent.hold, games.step(as_array(actions)))
        following = look(training, step)
        with paceline.phase("push"):
            push(training.memory, args.push, (views, actions, rewards, following, ended))
        if training.trains(step):
            learn(training)
        with paceline.phase("log"):
            log(training, step)
        views = following
        if 0 < episodes <= training.metrics.episodes:
            return


def train(args: Args, device: torch.device) -> Training:
    """The warm-up, if there is one, and the training loop."""
    training = Training(args, device)
    run(training, range(args.warm_steps), 0)
    training.metrics = Metrics(args.whole_mean)
    end = None if args.episodes else args.warm_steps + args.total_steps
    steps = itertools.count(args.warm_steps) if end is None else range(args.warm_steps, end)
    run(training, paceline.steps(steps), args.episodes)
    return training


def score(training: Training) -> float:
    """Foods per game over games that training never saw, always taking the best action."""
    number = training.args.score_games
    games, fill = Snakes(number, 1_000_000), MaskFill() if training.fill else None
    scores = np.full(number, -1)
    while (scores < 0).any():
        views = np.empty((number, training.features), dtype=np.float32)
        games.view(views[:, :LOOKS])
        if fill:
            views[:, LOOKS:] = fill.spaces(games)
        _, ended = games.step(as_array(training.agent.best(training.agent.hold(views))))
        over = np.flatnonzero(ended)
        scores[over] = np.where(scores[over] < 0, games.ended_scores, scores[over])
    return float(scores.mean())


def main() -> None:
    """Train, then say how well it learned."""
    args = parse(sys.argv[1:])
    device = prepare(args)
    training = train(args, device)
    quality = score(training)
    paceline.quality("score", quality)
    print(f"score: {quality:.2f} foods per game")
    print(f"parameters: {fingerprint(training.agent)}")


if __name__ == "__main__":
    main()
