"""A DQN learns Snake. Read this file from top to bottom. The game itself is in environment.py, the replay
memory in memory.py, and the arithmetic without torch in written_out.py.

There are three variants. `baseline` builds every batch from nested lists and trains at every step;
`optimized` is what the engineers of such a loop made of it; `beyond` is what can be done on top. Each
optimization is one argument, so that any of them can be switched alone:
`python train.py --variant optimized --no-tensors`.
"""

from __future__ import annotations

import os

# numpy's library reads this once, when it is loaded: with a thread for each core it spins, and a busy machine
# takes forty times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import difflib
import hashlib
import math
import random
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn

import numpy as np
import paceline
import torch
from environment import ACTIONS, VIEW, Snake, View
from graphs import Replayed
from memory import Drawing, Ring, Rows, Transition
from torch import nn
from written_out import WrittenOut


def option(default: Any, text: str, least: float = 0, most: float = math.inf) -> Any:
    """A field of Args with its line of documentation and, for a number, its bounds."""
    return field(default=default, metadata={"help": text, "least": least, "most": most})


@dataclass(frozen=True)
class Args:
    """The arguments. None means: what the variant says."""

    variant: str = option("optimized", "baseline, optimized or beyond: the defaults of all the toggles below")
    seed: int | None = option(None, "seed of all that is drawn; else PACELINE_SEED or 0", most=2**32 - 1)
    total_steps: int = option(12_000, "decisions of the snake, in training", least=1, most=10**9)

    threads: int = option(1, "toggle: torch threads; 0 means one per core", most=1024)
    tensors: bool | None = option(None, "toggle: build batches through numpy arrays, not nested lists")
    memory: bool | None = option(None, "toggle: views kept as arrays, in-place ReLU, gradients set to None")
    train_every: int | None = option(None, "toggle: steps per update of the network", least=1, most=10**9)
    device: str | None = option(None, "toggle: cpu, cuda, or auto for cuda where there is one")
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
ON_CPU_ALONE = ("written_backward", "numpy_acting")
ON_CUDA_ALONE = ("bf16", "pinned", "graphs")
BEYOND = ("ring", "numpy_draw", "fused", *ON_CPU_ALONE, *ON_CUDA_ALONE)
"""What neither the loop nor its engineers' report has: off, save in the variant beyond."""

# As many samples a step as optimized learns from, in half as many updates of twice the size.
VARIANTS["beyond"] = (
    VARIANTS["optimized"] | {"train_every": 8, "batch_size": 128} | dict.fromkeys(BEYOND, True)
)


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
        parser.add_argument(flag, type=kind, default=default, metavar=kind.__name__.upper(), help=text)
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
    defaults = dict.fromkeys(BEYOND, False) | VARIANTS[args.variant]
    said = {name for name in defaults if getattr(args, name) is not None}
    args = replace(args, **{name: value for name, value in defaults.items() if name not in said})
    for spec in fields(Args):
        value, least, most = getattr(args, spec.name), spec.metadata["least"], spec.metadata["most"]
        if isinstance(value, int | float) and not least <= value <= most:
            bounds = f"at least {least}" if most == math.inf else f"from {least} to {most}"
            refuse(f"--{spec.name.replace('_', '-')} is {value}, must be {bounds}")
    if args.batch_size > args.capacity:
        refuse(f"--batch-size is {args.batch_size}, more than the --capacity of {args.capacity}")
    if args.device not in ("cpu", "cuda", "auto"):
        refuse(f"--device is {args.device!r}, must be cpu, cuda or auto")
    if args.device == "cuda" and not torch.cuda.is_available():
        refuse("--device is cuda, but torch finds no CUDA device here")
    return fit_to_device(args, said)


def fit_to_device(args: Args, said: set[str]) -> Args:
    """Refuse what was asked for and the device can't do; do without what only the variant wants."""
    cuda = args.device != "cpu" and torch.cuda.is_available()
    impossible = ON_CPU_ALONE if cuda else ON_CUDA_ALONE
    for name in impossible:
        if getattr(args, name) and name in said:
            why = "the CPU only, give --device cpu too" if cuda else "CUDA only, and this run is on the CPU"
            refuse(f"--{name.replace('_', '-')} works on {why}")
    args = replace(args, **dict.fromkeys(impossible, False))
    if args.written_backward and not args.ring:
        refuse("--written-backward needs --ring, whose batches are arrays")
    if args.numpy_acting and not args.memory:
        refuse("--numpy-acting needs --memory, which keeps views as arrays")
    return args


def prepare(args: Args) -> torch.device:
    """Set torch up as the arguments say; return the device and print which path was taken."""
    threads = args.threads or os.cpu_count() or 1
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(threads)
    torch.backends.cudnn.benchmark = bool(args.cudnn_benchmark)
    torch.backends.cuda.matmul.allow_tf32 = bool(args.tf32)
    torch.manual_seed(args.seed)
    on_cuda = args.device != "cpu" and torch.cuda.is_available()
    name = torch.cuda.get_device_name() if on_cuda else f"{threads} thread{'s' if threads > 1 else ''}"
    print(f"path: {'cuda' if on_cuda else 'cpu'}, {name}, variant {args.variant}")
    return torch.device("cuda" if on_cuda else "cpu")


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
    args = parse(sys.argv[1:])
    device = prepare(args)
    agent = train(args, device)
    quality = score(agent, args)
    paceline.quality("score", quality)
    print(f"score: {quality:.2f} foods per game")
    print(f"parameters: {agent.fingerprint()}")


if __name__ == "__main__":
    main()
