"""A DQN learns Snake. Read this file from top to bottom. The game itself is in environment.py, the replay
memory in memory.py, and the arithmetic without torch in written_out.py.

There are three variants. `baseline` builds every batch from nested lists and trains at every step;
`optimized` is what the engineers of such a loop made of it; `beyond` is what can be done on top. Each
optimization is one argument, so that any of them can be switched alone:
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
from dataclasses import dataclass
from typing import Any

import numpy as np
import paceline
import torch
from benchmark_support import machine
from benchmark_support.arguments import MOST_SEED, option, parse_arguments, refuse
from benchmark_support.cuda_graphs import Replayed
from benchmark_support.machine import Fitted, prepare_torch
from environment import ACTIONS, VIEW, Snake, View
from memory import Drawing, Ring, Rows, Transition
from torch import nn
from written_out import WrittenOut


@dataclass(frozen=True)
class Args:
    """The arguments. None means: what the variant says."""

    variant: str = option("optimized", "baseline, optimized or beyond: the defaults of all the toggles below")
    seed: int | None = option(None, "seed of all that is drawn; else PACELINE_SEED or 0", most=MOST_SEED)
    total_steps: int = option(12_000, "decisions of the snake, in training", least=1, most=10**9)

    threads: int = option(1, "toggle: torch threads; 0 means one per core", most=1024)
    tensors: bool | None = option(None, "toggle: build batches through numpy arrays, not nested lists")
    memory: bool | None = option(None, "toggle: views kept as arrays, in-place ReLU, gradients set to None")
    train_every: int | None = option(None, "toggle: steps per update of the network", least=1, most=10**9)
    device: str | None = option(
        None, "toggle: cpu, cuda, or auto for cuda where there is one", choices=("cpu", "cuda", "auto")
    )
    inference: bool | None = option(None, "toggle: act and look ahead in torch.inference_mode")
    batch_size: int | None = option(None, "toggle: transitions in an update", least=1)
    cudnn_benchmark: bool | None = option(None, "toggle: let cuDNN try its algorithms out")
    tf32: bool | None = option(None, "toggle: matrix products in TF32, on Ampere and later")
    compile: bool = option(False, "toggle: torch.compile the network; refused where that can't work")

    ring: bool = option(None, "toggle: transitions kept in arrays, not one by one in a deque")
    numpy_draw: bool = option(None, "toggle: samples drawn by numpy, which may draw one twice")
    fused: bool = option(None, "toggle: Adam in one fused operation")
    written_backward: bool = option(
        None, "toggle: forward and backward written out in numpy; on the CPU only"
    )
    numpy_acting: bool = option(None, "toggle: act without torch; on the CPU only")
    bf16: bool = option(None, "toggle: the network in bfloat16; on CUDA only")
    pinned: bool = option(None, "toggle: copies to the device from pinned memory; on CUDA only")
    graphs: bool = option(None, "toggle: each update replayed as one CUDA graph; on CUDA only")

    hidden: int = option(128, "units in each of the two hidden layers", least=1, most=10_000)
    learning_rate: float = option(3e-4, "learning rate of Adam", most=1)
    discount: float = option(0.9, "what a reward is worth one step later", most=1)
    capacity: int = option(5_000, "transitions that the memory holds", least=1, most=10**6)
    exploration_steps: int = option(
        500, "steps until random moves are down to their last share", least=1, most=10**9
    )
    exploration: float = option(0.05, "last share of random moves", most=1)
    score_episodes: int = option(20, "games played after training to measure the score", least=1, most=10_000)


VARIANTS: dict[str, dict[str, Any]] = {
    "baseline": {
        "tensors": False,
        "memory": False,
        "train_every": 1,
        "device": "cpu",
        "inference": False,
        "batch_size": 32,
        "cudnn_benchmark": False,
        "tf32": False,
    },
    "optimized": {
        "tensors": True,
        "memory": True,
        "train_every": 4,
        "device": "auto",
        "inference": True,
        "batch_size": 64,
        "cudnn_benchmark": True,
        "tf32": True,
    },
}
# What neither the loop nor its engineers' report has: off, save in the variant beyond.
BEYOND = ("ring", "numpy_draw", "fused", "written_backward", "numpy_acting", "bf16", "pinned", "graphs")
# As many samples a step as optimized learns from, in half as many updates of twice the size.
VARIANTS["beyond"] = (
    VARIANTS["optimized"] | {"train_every": 8, "batch_size": 128} | dict.fromkeys(BEYOND, True)
)

# Where a toggle can work at all, and where it pays.
WORKS = {
    "written_backward": machine.on_cpu,
    "numpy_acting": machine.on_cpu,
    "pinned": machine.on_cuda,
    "graphs": machine.on_cuda,
}
PAYS = {"bf16": machine.with_bfloat16_on_cuda, "tf32": machine.with_tf32, "cudnn_benchmark": machine.on_cuda}


def read_arguments(arguments: Sequence[str]) -> Fitted[Args]:
    """The arguments, with the variant's, as this machine can do them; exits with status 2 and a sentence."""
    variants = {name: dict.fromkeys(BEYOND, False) | values for name, values in VARIANTS.items()}
    given = parse_arguments(Args, variants, arguments, __doc__)
    if given.args.batch_size > given.args.capacity:
        refuse(f"--batch-size is {given.args.batch_size}, more than the --capacity of {given.args.capacity}")
    fitted = machine.fit_to_machine(given, machine.find_machine(str(given.args.device)), WORKS, PAYS)
    if fitted.args.written_backward and not fitted.args.ring:
        refuse("--written-backward needs --ring, whose batches are arrays")
    if fitted.args.numpy_acting and not fitted.args.memory:
        refuse("--numpy-acting needs --memory, which keeps views as arrays")
    return fitted


def prepare(fitted: Fitted[Args]) -> torch.device:
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
        self.written_out = WrittenOut(self.network, args.discount) if by_hand else None
        parameters = self.network.parameters()
        if args.written_backward:
            parameters = [self.written_out.own(self.network)]
        self.optimizer = torch.optim.Adam(
            parameters, lr=args.learning_rate, fused=args.fused or None, capturable=bool(args.graphs)
        )
        self.replayed = Replayed(self.update) if args.graphs else None
        self.values = self.compiled() if args.compile else self.network

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
            values = self.values(self.tensor([view]))
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

    def fingerprint(self) -> str:
        """A hash of all the parameters: equal for two runs that learned bit by bit the same."""
        digest = hashlib.sha256()
        for parameter in self.network.parameters():
            digest.update(parameter.detach().cpu().numpy().tobytes())
        return digest.hexdigest()


def kept(view: View, args: Args) -> Any:
    """The view as the loop passes it on: an array, or the list that the game once returned."""
    return view if args.memory else view.tolist()


def train(args: Args, device: torch.device) -> Agent:
    """The training loop. One step is one decision of the snake."""
    chance = random.Random(args.seed)
    game = Snake(args.seed)
    agent = Agent(args, device)
    memory = Ring(args.capacity, VIEW * VIEW) if args.ring else Rows(maxlen=args.capacity)
    drawing = Drawing(chance, args.numpy_draw)
    view = kept(game.reset(), args)
    for step in paceline.steps(range(args.total_steps)):
        with paceline.phase("act"):
            exploration = max(args.exploration, 1 - step / args.exploration_steps)
            explores = chance.random() < exploration
            action = chance.randrange(ACTIONS) if explores else agent.act(view)
        with paceline.phase("env"):
            next_view, reward, ended = game.step(action)
            following = kept(next_view, args)
        with paceline.phase("push"):
            memory.push(view, action, reward, following, ended)
        view = kept(game.reset(), args) if ended else following
        if ended:
            paceline.count("episodes")
        if len(memory) >= args.batch_size and step % args.train_every == 0:
            with paceline.phase("sample"):
                with paceline.phase("draw"):
                    transitions = memory.at(drawing.positions(len(memory), args.batch_size))
                with paceline.phase("tensors"):
                    batch = agent.batch(transitions)
            with paceline.phase("update"):
                agent.learn(batch)
    return agent


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
