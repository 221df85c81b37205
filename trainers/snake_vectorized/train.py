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
import sys
from pathlib import Path

# numpy's library reads this once, when it is loaded: with a thread for each core it spins, and a busy machine
# takes forty times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The benchmarks share a package that lies beside their folders.
sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import paceline
import torch
from agents import Agent, WrittenOut, fingerprint
from benchmark_support import machine
from benchmark_support.arguments import MOST_SEED, option, parse_arguments, refuse
from benchmark_support.machine import Fitted, prepare_torch
from environment import LOOKS, Snakes
from flood import FILLS, MaskFill
from memory import Drawing, Ring, Rows, memory
from metrics import Metrics


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


# Where a toggle can work at all, and where it pays.
WORKS = {"pinned": machine.on_cuda, "graphs": machine.on_cuda}
PAYS = {"bf16": machine.with_bfloat16_on_cuda}


def read_arguments(arguments: Sequence[str]) -> Fitted[Args]:
    """The arguments, with the variant's, as this machine can do them; exits with status 2 and a sentence."""
    given = parse_arguments(Args, VARIANTS, arguments, __doc__)
    args = given.args
    if args.batch_size > args.capacity:
        refuse(f"--batch-size is {args.batch_size}, more than the --capacity of {args.capacity}")
    if args.environments > args.capacity:
        refuse(f"--environments is {args.environments}, more than the --capacity of {args.capacity}")
    if args.network == "numpy" and args.acting == "each":
        refuse("--acting is each, which is only for --network torch")
    found = machine.find_machine(args.device)
    if args.network == "numpy" and found.device == "cuda":
        if "network" in given.said:
            refuse("--network is numpy, which has no CUDA; give --device cpu too")
        given = replace(given, args=replace(args, network="torch"))
    return machine.fit_to_machine(given, found, WORKS, PAYS)


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
    fitted = read_arguments(sys.argv[1:])
    args, device = fitted.args, prepare_torch(fitted, f"network in {fitted.args.network}")
    training = train(args, device)
    quality = score(training)
    paceline.quality("score", quality)
    print(f"score: {quality:.2f} foods per game")
    print(f"parameters: {fingerprint(training.agent)}")


if __name__ == "__main__":
    main()
