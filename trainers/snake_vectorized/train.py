"""A DQN learns Snake in 256 games at once. Read this file from top to bottom. The arguments and the variants
are in arguments.py, the games in environment.py and tensor_environment.py, flood fill in flood.py, the replay
memory in memory.py, the network in agents.py, the printed lines in metrics.py, and checkpoints in saving.py.

Each step between two variants is one argument, so that any of them can be switched alone:
`python train.py --variant optimized --push item`.
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
from collections.abc import Iterable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import paceline
import torch
from agents import Agent, NumpyNetwork, fingerprint
from arguments import VARIANTS, Args, read_arguments
from benchmark_support.machine import prepare_torch
from environment import LOOKS, Snakes
from flood import FILLS, MaskFill
from memory import PositionSampler, Ring, Rows, memory
from metrics import Metrics, StepTimes
from saving import restore_training, save_training
from tensor_environment import TensorSnakes

__all__ = ["VARIANTS", "Agent", "Args", "NumpyNetwork", "fingerprint", "read_arguments", "score", "train"]


class Training:
    """Everything that the loop works on."""

    def __init__(self, args: Args, device: torch.device) -> None:
        self.args = args
        self.on_tensors = args.environment == "tensors"
        self.games = (
            TensorSnakes(args.environments, args.seed, device)
            if self.on_tensors
            else Snakes(args.environments, args.seed)
        )
        self.fill = FILLS[args.flood_fill]() if args.flood_fill in FILLS else None
        self.spaces = np.zeros((args.environments, 3), dtype=np.float32)
        self.features = LOOKS + (3 if self.fill else 0)
        written_out = args.network == "numpy"
        self.agent = NumpyNetwork(args, self.features) if written_out else Agent(args, self.features, device)
        self.position_sampler = PositionSampler(args.seed, args.draw == "numpy")
        self.memory = memory(args.memory, args.capacity, self.position_sampler, self.features)
        self.metrics = Metrics(args.whole_mean)
        self.times = StepTimes()
        self.step = self.saves = 0

    def exploration(self, step: int) -> float:
        """Return the share of random moves."""
        if self.args.exploration_decay:
            return max(self.args.exploration, self.args.exploration_decay**self.metrics.episodes)
        return max(self.args.exploration, 1 - step / max(1, self.args.exploration_steps))

    def trains(self, step: int) -> bool:
        """Return whether this step is one that trains."""
        return len(self.memory) >= self.args.batch_size and step % self.args.train_every == 0


def look(training: Training, step: int) -> Any:
    """Return what the snakes see, as the agent holds it: games x features."""
    shape = training.args.environments, training.features
    with paceline.phase("env"):
        if training.on_tensors:
            views = torch.empty(shape, device=training.games.device)
        else:
            views = np.empty(shape, dtype=np.float32)
        training.games.view(views[:, :LOOKS])
    if training.fill is not None:
        with paceline.phase("flood_fill"):
            if step % training.args.flood_every == 0:
                training.spaces = training.fill.spaces(training.games)
                paceline.count("fills", training.fill.fills)
                paceline.count("cells", training.fill.cells)
            spaces = training.spaces
            views[:, LOOKS:] = training.agent.hold(spaces) if training.on_tensors else spaces
    with paceline.phase("env"):
        return views if training.on_tensors else training.agent.hold(views)


def move(training: Training, actions: Any) -> tuple[Any, Any]:
    """Let every snake take its action; return rewards and ended episodes, as the agent holds them."""
    if training.on_tensors:
        return training.games.step(actions)
    rewards, ended = map(training.agent.hold, training.games.step(as_array(actions)))
    return rewards, ended


def as_array(values: Any) -> Any:
    """Bring a tensor to the host; what is an array already stays one."""
    return values.cpu().numpy() if torch.is_tensor(values) else values


def push(memory: Rows | Ring, how: str, transitions: tuple[Any, ...]) -> None:
    """Keep one transition of every game: views, actions, rewards, following views, ended, a row for each."""
    views, actions, rewards, following, ended = transitions
    if torch.is_tensor(views):
        # One by one: the two views of each game. On a CPU such a copy only makes an array of the same memory.
        paceline.count("push_copies", 2 * len(ended) if how == "item" else len(transitions))
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
    args = training.args
    ended = training.metrics.add_episodes(training.games)
    paceline.count("episodes", ended)
    if ended:
        paceline.gauge("episode_steps", training.games.ended_ages.mean())
    if args.log_every and step % args.log_every == 0:
        print(training.metrics.line(step, training.exploration(step)))
    if args.timing_every and step % args.timing_every == 0:
        print(training.times.line())


def save(training: Training, step: int, views: Any) -> None:
    """Write a checkpoint where so many episodes have ended since the last one."""
    episodes, args = training.metrics.episodes, training.args
    if args.save and episodes // args.save_every > training.saves:
        training.saves = episodes // args.save_every
        with paceline.phase("save"):
            save_training(training, step, views)


def run(training: Training, steps: Iterable[int], views: Any, episodes: int) -> Any:
    """Take these steps, or as many as so many episodes need; return what the snakes see then.

    One step is one decision of every snake.
    """
    args, agent = training.args, training.agent
    for step in steps:
        begun = perf_counter()
        with paceline.phase("act"):
            actions = agent.act(views, training.exploration(step))
        selected = perf_counter()
        with paceline.phase("env"):
            rewards, ended = move(training, actions)
        following = look(training, step)
        stepped = perf_counter()
        with paceline.phase("push"):
            push(training.memory, args.push, (views, actions, rewards, following, ended))
        pushed = perf_counter()
        if training.trains(step):
            learn(training)
        training.times.add(begun, selected, stepped, pushed, perf_counter())
        with paceline.phase("log"):
            log(training, step)
        views, training.step = following, step + 1
        save(training, training.step, views)
        if 0 < episodes <= training.metrics.episodes:
            break
    return views


def prefill(training: Training, views: Any) -> Any:
    """Let all snakes move at random until the memory is as full as asked; return what they see then."""
    args = training.args
    training.args = replace(args, updates=0, exploration=1.0, save="")
    views = run(training, range(-(-args.prefill // args.environments)), views, 0)
    training.args, training.step = args, 0
    return views


def train(args: Args, device: torch.device) -> Training:
    """The warm-up, if there is one, and the training loop; or the rest of a training that was saved."""
    training = Training(args, device)
    if args.resume:
        training.step, views = restore_training(training)
        training.saves = training.metrics.episodes // args.save_every
    else:
        views = run(training, range(args.warm_steps), prefill(training, look(training, 0)), 0)
        training.metrics = Metrics(args.whole_mean)
    end = None if args.episodes else args.warm_steps + args.total_steps
    steps = itertools.count(training.step) if end is None else range(training.step, end)
    views = run(training, paceline.steps(steps), views, args.episodes)
    if args.save:
        save_training(training, training.step, views)
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
    steps, episodes = training.step - args.warm_steps, training.metrics.episodes
    decisions = steps * args.environments
    print(f"Total environment steps: {decisions}")
    print(f"Episodes completed: {episodes}")
    print(f"Steps per episode (avg): {decisions / max(1, episodes):.1f}")
    quality = score(training)
    paceline.quality("score", quality)
    print(f"score: {quality:.2f} foods per game")
    print(f"parameters: {fingerprint(training.agent)}")


if __name__ == "__main__":
    main()
