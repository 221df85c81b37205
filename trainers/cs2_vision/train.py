"""An agent learns a game that it sees only through a vision service. Read this file first.

The games are Pong on an emulated Atari (games.py). Pictures of them go over HTTP to a process of its own
(client.py, service.py), where a convolutional network finds what is on them (vision.py) and answers in JSON
(answers.py). In front of it is a cache (cache.py), behind it the observation history (history.py); sight.py
puts these together. agent.py learns from what was seen, checkpoints.py keeps it.

There are three variants: `baseline`, `optimized`, which is what the engineers of such a loop planned for it,
and `beyond`. Each optimization is one argument (arguments.py), so that any of them can be switched alone:
`python train.py --variant optimized --no-keep-alive`.
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

import gc
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import paceline
from agent import Agent, reward, tabulate
from arguments import Args, read_arguments
from benchmark_support.machine import prepare_torch
from checkpoints import Checkpoints
from client import Client, Request, Service, ServiceError, resident
from games import Game, MissingPartError, Screen
from history import History
from pictures import encode
from sight import Sight
from vision import FIELD

BALL, PADDLE = 14, 200
"""Their numbers in the palette."""

NEAR = 100
"""Column from which on a ball that comes is near."""

AUDITED = 256
"""Observations that are asked about anew after training."""


class Players:
    """Some of the games, which are played together, and the agent's last view of them."""

    def __init__(self, games: Sequence[int], consoles: Sequence[Game]) -> None:
        self.games = list(games)
        self.consoles = [consoles[game] for game in games]
        self.views: Any = None
        self.actions: list[int] = []

    def act(self, sight: Sight, agent: Agent, exploration: float) -> None:
        """Learn of what the last actions led to, and choose the next ones."""
        history = sight.history
        pairs = [(history.before[game], history.last[game]) for game in self.games]
        views = tabulate(pairs)
        for at, (before, seen) in enumerate(pairs):
            # Only while a ball is in play there is something to learn.
            if self.views is not None and before.kind == "play":
                value = reward(before, seen)
                agent.rewards += value
                agent.memory.push(self.views[at], self.actions[at], value, views[at])
        self.views, self.actions = views, agent.act(views, exploration)

    def step(self) -> list[Screen]:
        """Play a decision and take pictures."""
        for console, action in zip(self.consoles, self.actions, strict=True):
            console.step(action)
        return self.screens()

    def screens(self) -> list[Screen]:
        return [console.screen() for console in self.consoles]


def halves(args: Args, consoles: Sequence[Game]) -> list[Players]:
    """All games at once; with overlap in two halves, one of which is looked at while the other is played."""
    places = range(len(consoles))
    middle = len(consoles) // 2 if args.overlap else len(consoles)
    return [Players(part, consoles) for part in (places[:middle], places[middle:]) if part]


def play(players: Players, sight: Sight, agent: Agent, exploration: float, step: int) -> None:
    """One decision of some games."""
    sight.finish(players.games)
    with paceline.phase("policy"):
        players.act(sight, agent, exploration)
    with paceline.phase("env"):
        screens = players.step()
    sight.begin(players.games, screens, step)
    if not sight.args.overlap:
        sight.finish(players.games)


def train(args: Args, sight: Sight, agent: Agent, checkpoints: Checkpoints) -> None:
    """The training loop. One step is one decision of every game."""
    consoles = [Game(int(args.seed or 0) + game) for game in range(args.games)]
    parts = halves(args, consoles)
    for players in parts:
        sight.begin(players.games, players.screens(), 0)
        sight.finish(players.games)
    for step in paceline.steps(range(1, args.total_steps + 1)):
        for players in parts:
            play(players, sight, agent, agent.exploration(step), step)
        with paceline.phase("train"):
            if step % args.train_every == 0:
                agent.learn()
        with paceline.phase("checkpoint"):
            checkpoints.consider(step)
        if step % args.checkpoint_every == 0:
            report_memory(sight, checkpoints)
    for players in parts:
        sight.finish(players.games)


def report_memory(sight: Sight, checkpoints: Checkpoints) -> None:
    """The bytes of the service, the trainer, the history, and of all the checkpoints on the disk."""
    service, own = resident(sight.client.service.process.pid), resident(os.getpid())
    paceline.gauge("service_memory", service)
    paceline.gauge("trainer_memory", own)
    paceline.gauge("service_share", 100 * service / max(1, service + own))
    paceline.gauge("history_bytes", sight.history.bytes())
    paceline.gauge("checkpoint_bytes", checkpoints.bytes)


def covers(screen: Screen) -> tuple[int | None, bool]:
    """The ball's column on the console's own screen, and whether the paddle stands in its rows."""
    field = screen[FIELD]
    balls, paddle = field == BALL, np.flatnonzero((field == PADDLE).any(1))
    columns, rows = np.flatnonzero(balls.any(0)), np.flatnonzero(balls.any(1))
    if not len(columns) or not len(paddle):
        return None, False
    return int(columns[0]), bool(rows[-1] >= paddle[0] and rows[0] <= paddle[-1])


def score(args: Args, sight: Sight, agent: Agent) -> float:
    """Of the decisions in which a ball comes near, the share in which the paddle stands in its way.

    These are games that training never saw; the agent sees them as in training, the judge the console itself.
    """
    consoles = [Game(1_000_000 + game) for game in range(args.games)]
    looking = Sight(args, sight.client, History(args.games, 64, "palette"), sight.known)
    parts = halves(args, consoles)
    columns: list[int | None] = [None] * len(consoles)
    coming, covered = 0, 0
    for players in parts:
        looking.begin(players.games, players.screens(), args.total_steps)
    for step in range(1, args.score_steps + 1):
        for players in parts:
            play(players, looking, agent, 0.0, args.total_steps + step)
        for at, console in enumerate(consoles):
            (here, is_covered), last = covers(console.screen()), columns[at]
            if here is not None and last is not None and NEAR <= last < here:
                coming += 1
                covered += is_covered
            columns[at] = here
    for players in parts:
        looking.finish(players.games)
    return covered / max(1, coming)


def agreement(sight: Sight, agent: Agent) -> float:
    """The share of the last observations in which fresh answers lead to the same action as those used."""
    history, fresh = sight.history, {}
    pairs, others = [], []
    for kept in list(history.observations)[-AUDITED:]:
        body = encode([history.storage.screen(kept.picture)], str(sight.args.transfer))
        (text,) = sight.client.ask([Request(body, later=False)])
        seen = sight.parser.read(text)
        if seen.kind == "play" and kept.game in fresh:
            pairs.append((fresh[kept.game], seen))
            others.append((kept.before, kept.seen))
        fresh[kept.game] = seen
    if not pairs:
        return 0.0
    actions, used = agent.best(tabulate(pairs)), agent.best(tabulate(others))
    return sum(action == other for action, other in zip(actions, used, strict=True)) / len(pairs)


def run(args: Args, device: str, folder: Path) -> None:
    """Train, then say how well it learned."""
    service = Service(device, int(args.parallel or 1), args.threads or os.cpu_count() or 1)
    try:
        client = Client(
            service,
            keep_alive=bool(args.keep_alive),
            transfer=str(args.transfer),
            compact=bool(args.compact),
        )
        history = History(args.games, int(args.history_limit or 64), str(args.history_storage))
        agent = Agent(args)
        sight = Sight(args, client, history)
        checkpoints = Checkpoints(args, agent, folder)
        train(args, sight, agent, checkpoints)
        checkpoints.close()
        qualities = {"score": score(args, sight, agent), "agreement": agreement(sight, agent)}
        for name, value in qualities.items():
            paceline.quality(name, value)
        print(f"score: {qualities['score']:.2f} of the balls that come near are met")
        print(f"agreement: {qualities['agreement']:.2f} of the actions")
        print(f"parameters: {agent.fingerprint()}")
        client.close()
    finally:
        service.close()


def main() -> None:
    """Run what the arguments say; where something is missing one sentence tells so."""
    fitted = read_arguments(sys.argv[1:])
    args, device = fitted.args, prepare_torch(fitted).type
    if args.collect == "idle":
        gc.disable()
    try:
        with tempfile.TemporaryDirectory() as folder:
            run(args, device, Path(folder))
    except (MissingPartError, ServiceError) as error:
        sys.exit(f"train.py: {error}")


if __name__ == "__main__":
    main()
