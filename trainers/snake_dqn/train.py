"""A DQN learns Snake. Read this file from top to bottom. The arguments and the variants are in arguments.py,
the game in environment.py, the replay memory in memory.py, the arithmetic without torch in written_out.py,
the network in int8 in quantized.py, and checkpoints in saving.py.

Each optimization is one argument, so that any of them can be switched alone:
`python train.py --variant optimized --no-tensors`.
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

import hashlib
import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import paceline
import torch
from arguments import VARIANTS, Args, read_arguments
from benchmark_support.arguments import refuse
from benchmark_support.checkpoints import MOMENTS, State, adam_state, restore_adam
from benchmark_support.cuda_graphs import Replayed
from benchmark_support.machine import AdaptedArguments, prepare_torch
from environment import ACTIONS, VIEW, Snake, View
from memory import PositionSampler, Ring, Rows, Transition
from quantized import QuantizedNetwork
from saving import restore_training, save_training
from torch import nn
from written_out import NumpyNetwork, flattened

__all__ = ["VARIANTS", "VIEW", "Agent", "Args", "Training", "read_arguments", "score", "train"]


def prepare(fitted: AdaptedArguments[Args]) -> torch.device:
    """Set torch up as the arguments say; return the device and print which path was taken."""
    torch.backends.cudnn.benchmark = bool(fitted.args.cudnn_benchmark)
    torch.backends.cuda.matmul.allow_tf32 = bool(fitted.args.tf32)
    return prepare_torch(fitted)


class Agent:
    """The network with its optimizer: acts, and learns from batches."""

    def __init__(self, args: Args, device: torch.device) -> None:
        self.args = args
        self.device = device
        self.network = nn.Sequential(
            nn.Linear(VIEW * VIEW, args.hidden),
            nn.ReLU(inplace=bool(args.memory)),
            nn.Linear(args.hidden, args.hidden),
            nn.ReLU(inplace=bool(args.memory)),
            nn.Linear(args.hidden, ACTIONS),
        ).to(device)
        by_hand = args.written_backward or args.numpy_acting
        self.written_out = NumpyNetwork(self.network, args.discount) if by_hand else None
        parameters = self.network.parameters()
        if args.written_backward:
            parameters = [self.written_out.own(self.network)]
        self.optimizer = torch.optim.Adam(
            parameters, lr=args.learning_rate, fused=args.fused or None, capturable=bool(args.graphs)
        )
        self.replayed = Replayed(self.update) if args.graphs else None
        self.values = self.compiled() if args.compile else self.network
        self.quantized = QuantizedNetwork(self.network) if args.quantized_acting else None

    def compiled(self) -> Any:
        """The network through torch.compile, tried out on one view; exits where that can't work."""
        compiled = torch.compile(self.network)
        try:
            compiled(torch.zeros(1, VIEW * VIEW, device=self.device))
        except RuntimeError as error:
            refuse(f"--compile doesn't work on this machine: {str(error).splitlines()[0]}")
        return compiled

    def ungraded(self) -> AbstractContextManager[Any]:
        """Where no gradient is needed. Without `inference` the graph is built, and left to be collected."""
        return torch.inference_mode() if self.args.inference else torch.enable_grad()

    def precision(self) -> AbstractContextManager[Any]:
        """What the network computes in."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.args.bf16 else nullcontext()

    def act(self, view: Any) -> int:
        """Return the action of the highest value."""
        if self.args.numpy_acting:
            return self.written_out.best(view)
        with self.ungraded(), self.precision():
            values = (self.quantized or self.values)(self.tensor([view]))
            return int(values.argmax())

    def tensor(self, views: Sequence[Any]) -> torch.Tensor:
        """Views as one float tensor, len(views) x VIEW * VIEW, on the device."""
        if not self.args.tensors:
            return torch.FloatTensor(views).to(self.device)
        return self.moved(torch.from_numpy(np.array(views, dtype=np.float32)))

    def moved(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor on the device; from pinned memory the copy runs beside the code that follows."""
        if self.args.pinned:
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)

    def batch(self, transitions: Sequence[Transition] | tuple[Any, ...]) -> tuple[Any, ...]:
        """Transitions as tensors: views, actions, rewards, next views, ended; as arrays for numpy."""
        if self.args.written_backward:
            return transitions
        if self.args.ring:
            return tuple(self.moved(torch.from_numpy(array)) for array in transitions)
        views, actions, rewards, next_views, ended = zip(*transitions, strict=True)
        return (
            self.tensor(views),
            torch.tensor(actions, device=self.device),
            torch.tensor(rewards, device=self.device),
            self.tensor(next_views),
            torch.tensor(ended, dtype=torch.float32, device=self.device),
        )

    def loss(self, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """The mean squared error of the values against reward + discounted value of the next view."""
        views, actions, rewards, next_views, ended = batch
        with self.precision():
            with self.ungraded():
                ahead = self.values(next_views).amax(dim=1)
            values = self.values(views).gather(1, actions.unsqueeze(1)).squeeze(1)
        # The copy is a normal tensor: one made in inference mode may not take part in a loss.
        targets = rewards + self.args.discount * (1 - ended) * ahead.detach().clone()
        return nn.functional.mse_loss(values.float(), targets)

    def learn(self, batch: tuple[Any, ...]) -> None:
        """One step of the optimizer."""
        if self.args.written_backward:
            self.learn_by_hand(batch)
        elif self.replayed:
            self.replayed(batch)
        else:
            self.update(batch)
        if self.quantized:
            self.quantized.forget()

    def update(self, batch: tuple[torch.Tensor, ...]) -> None:
        """The same step through torch."""
        with paceline.phase("forward"):
            loss = self.loss(batch)
        with paceline.phase("backward"):
            self.optimizer.zero_grad(set_to_none=bool(self.args.memory))
            loss.backward()
        with paceline.phase("optimizer"):
            self.optimizer.step()

    def learn_by_hand(self, batch: tuple[Any, ...]) -> None:
        """The same step, with torch left to the optimizer."""
        with paceline.phase("forward"):
            activations, errors = self.written_out.forward(batch)
        with paceline.phase("backward"):
            self.written_out.backward(activations, batch[1], errors)
        with paceline.phase("optimizer"):
            self.optimizer.step()

    def state(self) -> State:
        """All that it has learned, for a checkpoint: alike for an optimizer of one tensor and of six."""
        adam = adam_state(self.optimizer)
        if self.args.written_backward:
            for name in MOMENTS:
                adam[name] = self.written_out.split(adam[name][0])
        return {
            "parameters": [parameter.detach().cpu() for parameter in self.network.parameters()],
            "adam": adam,
        }

    def restore(self, state: State) -> None:
        """Go on from what was learned."""
        adam = dict(state["adam"])
        with torch.no_grad():
            for parameter, value in zip(self.network.parameters(), state["parameters"], strict=True):
                parameter.copy_(value)
        if self.args.written_backward:
            adam |= {name: [flattened(adam[name])] for name in MOMENTS}
        restore_adam(self.optimizer, adam)

    def fingerprint(self) -> str:
        """A hash of all the parameters: equal for two runs that learned bit by bit the same."""
        digest = hashlib.sha256()
        for parameter in self.network.parameters():
            digest.update(parameter.detach().cpu().numpy().tobytes())
        return digest.hexdigest()


def kept(view: View, args: Args) -> Any:
    """The view as the loop passes it on: an array, or the list that the game once returned."""
    return view if args.memory else view.tolist()


class Training:
    """Everything that the loop works on; `view` is what the snake sees before `step`."""

    def __init__(self, args: Args, device: torch.device) -> None:
        self.args = args
        self.chance = random.Random(args.seed)
        self.game = Snake(args.seed)
        self.agent = Agent(args, device)
        self.memory = Ring(args.capacity, VIEW * VIEW) if args.ring else Rows(maxlen=args.capacity)
        self.position_sampler = PositionSampler(self.chance, args.numpy_draw)
        self.view = kept(self.game.reset(), args)
        self.step = self.episodes = 0

    def exploration(self, step: int) -> float:
        """The share of random moves."""
        return max(self.args.exploration, 1 - step / self.args.exploration_steps)


def train(args: Args, device: torch.device) -> Agent:
    """The training loop. One step is one decision of the snake."""
    training = Training(args, device)
    if args.resume:
        restore_training(training)
    run(training)
    if args.save:
        save_training(training)
    return training.agent


def run(training: Training) -> None:
    """Take the steps that are left of the training."""
    args, chance, game, agent = training.args, training.chance, training.game, training.agent
    memory, view = training.memory, training.view
    for step in paceline.steps(range(training.step, args.total_steps)):
        with paceline.phase("act"):
            explores = chance.random() < training.exploration(step)
            action = chance.randrange(ACTIONS) if explores else agent.act(view)
        with paceline.phase("env"):
            next_view, reward, ended = game.step(action)
            following = kept(next_view, args)
        with paceline.phase("push"):
            memory.push(view, action, reward, following, ended)
        view = kept(game.reset(), args) if ended else following
        if len(memory) >= args.batch_size and step % args.train_every == 0:
            with paceline.phase("sample"):
                with paceline.phase("draw"):
                    transitions = memory.at(training.position_sampler.positions(len(memory), args.batch_size))
                with paceline.phase("tensors"):
                    batch = agent.batch(transitions)
            with paceline.phase("update"):
                agent.learn(batch)
        training.step, training.view = step + 1, view
        if ended:
            end_episode(training)


def end_episode(training: Training) -> None:
    """Count the episode; after every so many of them write a checkpoint, where a file for it is said."""
    args = training.args
    training.episodes += 1
    paceline.count("episodes")
    paceline.gauge("exploration", training.exploration(training.step))
    if args.save and training.episodes % args.save_every == 0:
        with paceline.phase("save"):
            save_training(training)


def score(agent: Agent, args: Args) -> float:
    """Foods per game over games that training never saw, always taking the best action."""
    foods = 0
    for episode in range(args.score_episodes):
        game = Snake(1_000_000 + episode)
        view, ended = kept(game.reset(), args), False
        # A network that is as good as this needs no longer game to prove it.
        while not ended and game.score < 100:
            following, _, ended = game.step(agent.act(view))
            view = kept(following, args)
        foods += game.score
    return foods / args.score_episodes


def main() -> None:
    """Train, then say how well it learned."""
    fitted = read_arguments(sys.argv[1:])
    args, device = fitted.args, prepare(fitted)
    agent = train(args, device)
    quality = score(agent, args)
    paceline.quality("score", quality)
    print(f"score: {quality:.2f} foods per game")
    print(f"parameters: {agent.fingerprint()}")


if __name__ == "__main__":
    main()
