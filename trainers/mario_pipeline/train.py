"""A DQN learns Crazy Climber from what collectors play. Read this file first.

The games are in games.py, the way from the collectors into the memory in queues.py, the memory in
memory.py, network and learner in network.py; free_running.py has collectors that are processes. There are
three variants: `baseline`, the pipeline with one queue behind one lock; `optimized`, which is what its
engineers made of it; `beyond`, what can be done on top. Each optimization is one argument (arguments.py), so
that any of them can be switched alone:
`python train.py --variant optimized --queues shared`.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The benchmarks share a package that lies beside their folders.
sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import paceline
import torch
from acting import choose_actions, exploration_share
from arguments import Args, read_arguments
from benchmark_support.machine import AdaptedArguments, prepare_torch
from free_running import FreeRunning, train_free
from games import MissingEmulatorError, games, play
from memory import Batch, Experience, Memory, memory
from network import Learner, Network, ViewLoader
from pictures import ACTIONS
from queues import Queues, TimedLock, queues
from threads import Worker

HELD_OUT = 2**30
"""Seed of the games of the frozen replay, which training never sees."""

HELD_OUT_ROUNDS = 256


def prepare(fitted: AdaptedArguments[Args]) -> torch.device:
    """Set torch up as the arguments say; return the device and print which path was taken."""
    collectors = int(fitted.args.collectors or 1)
    return prepare_torch(fitted, f"{collectors} collector{'s' if collectors > 1 else ''}")


class Order(NamedTuple):
    """A round that a collector is to play; with a copy of the network where there is a newer one."""

    round: int
    exploration: float
    weights: dict[str, torch.Tensor] | None


class Collector:
    """Plays some of the games in a thread of its own, with a copy of the network."""

    def __init__(self, args: Args, number: int, device: torch.device, way: Queues) -> None:
        self.args = args
        self.number = number
        self.way = way
        self.view_loader = ViewLoader(args, device)
        self.network: Any = Network(args).to(device=device, memory_format=self.view_loader.layout).eval()
        count = args.environments // int(args.collectors or 1)
        self.first = number * count
        seed = int(args.seed or 0)
        self.games = games(args, count, seed * 1000 % HELD_OUT + self.first)
        self.chances = [np.random.default_rng((seed, self.first + game)) for game in range(count)]
        self.views = self.games.reset()
        self.worker = Worker("collector", self._play)

    def close(self) -> None:
        """End the thread and the games."""
        self.worker.close()
        self.games.close()

    def _play(self, order: Order) -> bool:
        if order.weights is not None:
            with paceline.phase("sync"):
                self.network.load_state_dict(order.weights)
        with paceline.phase("act"):
            actions = choose_actions(
                self.network,
                self.view_loader,
                self.views,
                self.chances,
                order.exploration,
                batched=bool(self.args.batched),
            )
        result = play(self.games, actions)
        for game, view in enumerate(self.views):
            self.way.put(
                self.number,
                Experience(
                    order.round,
                    self.first + game,
                    view,
                    int(actions[game]),
                    float(result.rewards[game]),
                    bool(result.ended[game]),
                ),
            )
        self.views = result.views
        return True


class Learning:
    """Samples and learns: between the rounds of an epoch, or in a thread beside them."""

    def __init__(self, args: Args, learner: Learner, some: Memory, lock: TimedLock | None) -> None:
        self.args = args
        self.learner = learner
        self.memory = some
        self.lock = lock
        self.chance = np.random.default_rng((int(args.seed or 0), HELD_OUT))
        self.batches = args.epoch * args.samples // int(args.batch_size or 1)
        self.worker = Worker("learner", self._learn_beside) if args.overlap else None
        self.beside = False

    def due(self, place: int, rounds: int) -> range:
        """The numbers of the batches that are learned in this round of an epoch."""
        return range(place * self.batches // rounds, (place + 1) * self.batches // rounds)

    def sample(self, number: int) -> Batch:
        """Gather a batch from the memory, which others may be writing to."""
        if self.lock is None:
            with paceline.phase("sample"):
                return self.memory.sample(self.chance, number)
        with self.lock, paceline.phase("sample"):
            return self.memory.sample(self.chance, number)

    def learn(self, batch: Batch) -> None:
        with paceline.phase("update"):
            self.learner.learn(batch)

    def begin_epoch(self) -> None:
        """With overlap: begin to learn all that is due in this epoch, in the thread."""
        if self.worker is not None:
            self.worker.order(self.batches)
            self.beside = True

    def _learn_beside(self, batches: int) -> bool:
        if self.learner.device.type == "cpu":
            self._learn_all(batches)
            return True
        # In a stream of its own, or acting would wait for all that learning has asked of the device.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._learn_all(batches)
        stream.synchronize()
        return True

    def _learn_all(self, batches: int) -> None:
        for number in range(batches):
            self.learn(self.sample(number))

    def wait(self) -> None:
        """Wait for what the thread has begun, if it has; raises what failed there."""
        if self.worker is not None and self.beside:
            self.beside = False
            with paceline.phase("wait"):
                self.worker.wait()

    def close(self) -> None:
        """End the thread."""
        if self.worker is not None:
            self.worker.close()


class Training:
    """Everything that the loop works on."""

    def __init__(self, args: Args, device: torch.device) -> None:
        self.args = args
        self.memory: Memory = memory(args)
        self.way = queues(args, self.memory)
        self.learner = Learner(args, device)
        self.learning = Learning(args, self.learner, self.memory, self.way.lock)
        self.collectors = [
            Collector(args, number, device, self.way) for number in range(int(args.collectors or 1))
        ]
        self.rounds = args.epoch // args.environments
        self.weights: dict[str, torch.Tensor] | None = self.learner.copied()
        self.epochs = 0
        self.reported = (0, 0.0, 0)

    def close(self) -> None:
        """End all threads."""
        self.learning.close()
        for collector in self.collectors:
            collector.close()
        self.way.close()


def begin_round(training: Training, step: int) -> None:
    """Have every collector take one decision for each of its games."""
    args = training.args
    order = Order(step, exploration_share(args, step), training.weights)
    training.weights = None
    for collector in training.collectors:
        collector.worker.order(order)


def end_round(training: Training) -> None:
    """Wait for the collectors."""
    with paceline.phase("wait"):
        for collector in training.collectors:
            collector.worker.wait()
    training.way.end_round()


def end_epoch(training: Training) -> None:
    """Let the learner see what was played in this epoch, and the collectors what was learned."""
    args = training.args
    training.way.flush()
    training.learning.wait()
    training.memory.show()
    training.epochs += 1
    training.learner.end_epoch(training.epochs)
    if training.epochs % int(args.sync_every or 1) == 0:
        with paceline.phase("sync"):
            training.weights = training.learner.copied()


def report(training: Training, learned: int) -> None:
    """Tell what was handed over, dropped and learned, and how long one waited for the lock."""
    lock, (taken, waited, dropped) = training.way.lock, training.reported
    training.reported = (lock.taken if lock else 0, lock.waited if lock else 0.0, training.way.drops)
    number, seconds = training.reported[0] - taken, training.reported[1] - waited
    paceline.count("experiences", training.args.environments)
    paceline.count("batches", learned)
    paceline.count("queue_drops", training.reported[2] - dropped)
    paceline.count("lock_acquisitions", number)
    paceline.gauge("lock_wait_ms", 1000 * seconds / max(1, number))
    paceline.gauge("replay_megabytes", training.memory.megabytes())


def run(training: Training, steps: Iterable[int]) -> None:
    """Take these steps. One step is one decision of every environment."""
    learning = training.learning
    for step in steps:
        place = step % training.rounds
        begin_round(training, step)
        # What the first epoch plays is learned in the second one, and so on.
        due = learning.due(place, training.rounds) if training.epochs else range(0)
        if training.epochs and place == 0:
            learning.begin_epoch()
        batches = [] if training.args.overlap else [learning.sample(number) for number in due]
        end_round(training)
        for batch in batches:
            learning.learn(batch)
        report(training, len(due))
        if place == training.rounds - 1:
            end_epoch(training)


def train(args: Args, device: torch.device) -> Training:
    """The training loop; all threads have ended when it returns."""
    training = Training(args, device)
    try:
        run(training, paceline.steps(range(args.total_steps)))
    finally:
        training.close()
    return training


def frozen(args: Args) -> list[Batch]:
    """The frozen replay: what happened in games of random moves, in batches."""
    starts = np.arange(HELD_OUT_ROUNDS - args.horizon)
    held_out = memory(replace(args, memory="ring", preallocate=False, batch_size=len(starts)))
    some = games(args, args.environments, HELD_OUT)
    chance = np.random.default_rng(HELD_OUT)
    views = some.reset()
    for step in range(HELD_OUT_ROUNDS):
        actions = chance.integers(ACTIONS, size=args.environments)
        result = play(some, actions)
        held_out.write(
            [
                Experience(step, game, views[game], int(actions[game]), float(reward), bool(ended))
                for game, (reward, ended) in enumerate(zip(result.rewards, result.ended, strict=True))
            ]
        )
        views = result.views
    some.close()
    return [held_out.gather(starts, np.full_like(starts, game), game) for game in range(args.environments)]


@torch.no_grad()
def skill(training: Training | FreeRunning) -> float:
    """How much of the rewards' variance in the frozen replay the network's values explain.

    One minus the TD loss there, as a share of the variance of the rewards: a network that has learned nothing
    has 0 or less, also one that has learned how large rewards are and not when they come.
    """
    learner, losses, returns = training.learner, [], []
    network, view_loader = learner.network.eval(), ViewLoader(training.args, learner.device)
    for batch in frozen(training.args):
        actions = view_loader.hold(batch.actions)
        values = network(view_loader.views(batch.views)).gather(1, actions[:, None]).squeeze(1)
        ahead = network(view_loader.views(batch.following)).amax(1)
        targets = view_loader.hold(batch.returns) + view_loader.hold(batch.onward) * ahead
        losses.append(((values - targets) ** 2).mean().item())
        returns.append(batch.returns)
    print(f"held-out TD loss: {np.mean(losses):.4f}")
    return float(1 - np.mean(losses) / np.concatenate(returns).var())


def main() -> None:
    """Run what the arguments say; without an emulator one sentence tells so."""
    fitted = read_arguments(sys.argv[1:])
    args, device = fitted.args, prepare(fitted)
    try:
        training = train_free(args, device) if args.collect == "processes" else train(args, device)
        quality = skill(training)
    except MissingEmulatorError as error:
        sys.exit(f"train.py: {error}")
    paceline.quality("skill", quality)
    print(f"skill: {quality:.3f} of the rewards' variance in the frozen replay")
    print(f"parameters: {training.learner.fingerprint()}")


if __name__ == "__main__":
    main()
