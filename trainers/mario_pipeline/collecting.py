"""A collector that is a process: it plays as fast as it can and hands over what it played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.context import SpawnContext
from multiprocessing.queues import Queue
from time import perf_counter
from typing import Any

import numpy as np
import torch
from acting import choose_actions, exploration_share
from arguments import Args
from consolidation import Handover
from games import games, play
from memory import Experience
from monitoring import COUNTS, DISTANCE, DROPPED, GAMES, HANDED, HANDING, PLAYING, REWARDS, TAKEN, WAITED
from network import Network, ViewLoader
from numpy.typing import NDArray
from pickled_queue import PickledQueue
from pictures import Result
from queues import TimedLock
from shared_rings import RingMemory, SharedRing, allocate_ring
from wait_times import BINS, WaitTimes


@dataclass(frozen=True)
class SharedState:
    """What the main process hands to every collector; `lock` is None where everybody has its own handover."""

    handovers: Sequence[RingMemory | Queue[Any]]
    slots: int
    lock: Any
    weights: Any
    version: Any
    counts: Sequence[Any]
    waits: Sequence[Any]
    ending: Any

    def handover_of(self, number: int) -> Handover:
        """A collector's handover, as the process that calls this sees it."""
        medium = self.handovers[number % len(self.handovers)]
        return SharedRing(medium) if isinstance(medium, RingMemory) else PickledQueue(medium, self.slots)


def share_state(context: SpawnContext, args: Args, network: torch.nn.Module) -> SharedState:
    """One handover behind one lock, or a handover for each collector; rings of memory, or queues."""
    number = int(args.collectors or 1)
    handovers = 1 if args.queues == "shared" else number
    slots = max(1, args.queue_limit // handovers)
    size = sum(value.numel() for value in network.state_dict().values())
    return SharedState(
        handovers=[
            allocate_ring(context, args, slots) if args.transport == "memory" else context.Queue(slots)
            for _ in range(handovers)
        ],
        slots=slots,
        lock=context.Lock() if args.queues == "shared" else None,
        weights=context.RawArray("f", size),
        version=context.RawArray("q", 1),
        counts=[context.RawArray("d", len(COUNTS)) for _ in range(number)],
        waits=[context.RawArray("q", BINS) for _ in range(number)],
        ending=context.Event(),
    )


class SharedWeights:
    """The network's parameters for collectors. An odd version is one that is being written."""

    def __init__(self, shared: SharedState) -> None:
        self.flat = torch.frombuffer(shared.weights, dtype=torch.float32)
        self.version = np.frombuffer(shared.version, dtype=np.int64)

    def write(self, network: torch.nn.Module) -> None:
        values = [value.detach().float().cpu().flatten() for value in network.state_dict().values()]
        self.version[0] += 1
        self.flat.copy_(torch.cat(values))
        self.version[0] += 1

    def read(self, network: torch.nn.Module, known: int) -> int:
        """Bring a network up to date; returns its version, the one it had where a newer one isn't whole."""
        version = int(self.version[0])
        if version == known or version % 2:
            return known
        numbers = self.flat.clone()
        if int(self.version[0]) != version:
            return known
        state = network.state_dict()
        parts = numbers.split([value.numel() for value in state.values()])
        for value, part in zip(state.values(), parts, strict=True):
            value.copy_(part.view(value.shape))
        return version


class CollectorProcess:
    """What one collector's process does until it is told to end."""

    def __init__(self, args: Args, number: int, shared: SharedState) -> None:
        self.args = replace(args, device="cpu")
        self.handover = shared.handover_of(number)
        self.lock = TimedLock(shared.lock, WaitTimes(shared.waits[number])) if shared.lock else None
        self.weights, self.ending = SharedWeights(shared), shared.ending
        self.counts: NDArray[np.float64] = np.frombuffer(shared.counts[number], dtype=np.float64)
        self.view_loader = ViewLoader(self.args, torch.device("cpu"))
        self.network = Network(self.args).to(memory_format=self.view_loader.layout).eval()
        count = args.environments // int(args.collectors or 1)
        self.first = number * count
        seed = int(args.seed or 0)
        self.games = games(self.args, count, seed * 1000 % 2**30 + self.first)
        self.chances = [np.random.default_rng((seed, self.first + game)) for game in range(count)]
        self.played = np.zeros(count, dtype=np.int64)
        self.rewards, self.distances = np.zeros(count), np.zeros(count)

    def play(self) -> None:
        """Play and hand over."""
        views, version, step = self.games.reset(), -1, 0
        begin = perf_counter()
        while not self.ending.is_set():
            version = self.weights.read(self.network, version)
            actions = choose_actions(
                self.network,
                self.view_loader,
                views,
                self.chances,
                exploration_share(self.args, step),
                batched=bool(self.args.batched),
            )
            result = play(self.games, actions)
            for game, view in enumerate(views):
                self.hand_over(
                    game, view, int(actions[game]), float(result.rewards[game]), bool(result.ended[game])
                )
            self.count_games(result)
            views, step = result.views, step + 1
            self.counts[PLAYING] = perf_counter() - begin
        self.games.close()

    def hand_over(self, game: int, view: Any, action: int, reward: float, ended: bool) -> None:
        """Hand one experience over; what finds no room is dropped, and leaves a gap in its game."""
        experience = Experience(int(self.played[game]), self.first + game, view, action, reward, ended)
        begin = perf_counter()
        if self.lock is None:
            there = self.handover.put(experience)
        else:
            with self.lock:
                there = self.handover.put(experience)
            self.counts[[TAKEN, WAITED]] = self.lock.taken, self.lock.waited
        self.counts[HANDING] += perf_counter() - begin
        self.played[game] += there
        self.counts[HANDED if there else DROPPED] += 1

    def count_games(self, result: Result) -> None:
        """Count the games that have ended, what they were rewarded with, and how far they had come."""
        self.rewards += result.rewards
        self.distances += result.advances
        self.counts[GAMES] += int(result.ended.sum())
        for name, values in ((REWARDS, self.rewards), (DISTANCE, self.distances)):
            self.counts[name] += float(values[result.ended].sum())
            values[result.ended] = 0


def run_collector(args: Args, number: int, shared: SharedState) -> None:
    """The entry of a collector's process."""
    torch.set_num_threads(1)
    CollectorProcess(args, number, shared).play()
