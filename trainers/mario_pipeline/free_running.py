"""The pipeline as its document has it: collectors are processes, and nobody waits for anybody.

Each collector plays as fast as it can and hands over what it played; a thread consolidates it into the replay
memory; the learner learns as fast as it can, at most so many samples for each experience. A step is as many
experiences handed over as there are games: that is fixed, whoever is how fast. How much was learned meanwhile
is not, and is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from threading import Event, Thread
from time import perf_counter, sleep
from typing import Any

import numpy as np
import paceline
import torch
from acting import choose_actions, exploration_share
from arguments import Args
from games import games, play
from memory import Batch, Experience, Memory, memory
from network import Learner, Network, Sight
from numpy.typing import NDArray
from queues import TimedLock
from shared_rings import RingMemory, SharedRing, allocate_ring

POLL_SECONDS = 0.001
START_SECONDS = 120.0
# What a collector counts in an array that it alone writes; waits are in seconds.
HANDED, DROPPED, TAKEN, WAITED, WORST, REWARDS, GAMES, DISTANCE = COUNTS = range(8)


@dataclass(frozen=True)
class SharedState:
    """What the main process hands to every collector: raw memory, a lock or none, and the sign to end."""

    rings: Sequence[RingMemory]
    lock: Any
    weights: Any
    version: Any
    counts: Sequence[Any]
    ending: Any


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
        self.ring = SharedRing(shared.rings[number % len(shared.rings)])
        self.lock = TimedLock(shared.lock) if shared.lock else None
        self.weights, self.ending = SharedWeights(shared), shared.ending
        self.counts: NDArray[np.float64] = np.frombuffer(shared.counts[number], dtype=np.float64)
        self.sight = Sight(self.args, torch.device("cpu"))
        self.network = Network(self.args).to(memory_format=self.sight.layout).eval()
        count = args.environments // int(args.collectors or 1)
        self.first = number * count
        seed = int(args.seed or 0)
        self.games = games(self.args, count, seed * 1000 % 2**30 + self.first)
        self.chances = [np.random.default_rng((seed, self.first + game)) for game in range(count)]
        self.played = np.zeros(count, dtype=np.int64)
        self.climbed = np.zeros(count)

    def play(self) -> None:
        """Play and hand over."""
        views, version, step = self.games.reset(), -1, 0
        while not self.ending.is_set():
            version = self.weights.read(self.network, version)
            actions = choose_actions(
                self.network,
                self.sight,
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
            self.count_games(result.rewards, result.ended)
            views, step = result.views, step + 1
        self.games.close()

    def hand_over(self, game: int, view: Any, action: int, reward: float, ended: bool) -> None:
        """Put one experience into the ring; what finds no room is dropped, and leaves a gap in its game."""
        experience = Experience(int(self.played[game]), self.first + game, view, action, reward, ended)
        if self.lock is None:
            there = self.ring.put(experience)
        else:
            with self.lock:
                there = self.ring.put(experience)
            self.counts[[TAKEN, WAITED, WORST]] = self.lock.taken, self.lock.waited, self.lock.worst
        self.played[game] += there
        self.counts[HANDED if there else DROPPED] += 1

    def count_games(self, rewards: NDArray[np.float32], ended: NDArray[np.bool_]) -> None:
        """Count rewards, and how far the games that have ended had come."""
        self.climbed += rewards
        self.counts[REWARDS] += float(rewards.sum())
        self.counts[GAMES] += int(ended.sum())
        self.counts[DISTANCE] += float(self.climbed[ended].sum())
        self.climbed[ended] = 0


def run_collector(args: Args, number: int, shared: SharedState) -> None:
    """The entry of a collector's process."""
    torch.set_num_threads(1)
    CollectorProcess(args, number, shared).play()


class Consolidation:
    """The thread that moves experiences from the rings into the memory, in chunks, while collectors play."""

    def __init__(self, args: Args, rings: Sequence[SharedRing], lock: TimedLock | None, some: Memory) -> None:
        self.rings = rings
        self.lock = lock
        self.memory = some
        self.chunk = int(args.chunk or 1)
        # At most half an epoch is waited for, or the learner would run dry, and at most half of the slots, or
        # all that collectors play would be dropped.
        slots = sum(ring.slots for ring in rings)
        self.least = max(1, min(self.chunk, args.epoch // 2, slots // 2))
        self.written = [0] * args.environments
        self.experiences = 0
        self.over = Event()
        self.failure: BaseException | None = None
        self.thread = Thread(target=self._consolidate, name="processor", daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.over.set()
        self.thread.join()

    @property
    def waiting(self) -> int:
        """Experiences that no chunk has taken yet."""
        return sum(len(ring) for ring in self.rings)

    def _consolidate(self) -> None:
        try:
            while not self.over.is_set():
                if self.waiting < self.least:
                    sleep(POLL_SECONDS)
                    continue
                for ring in self.rings:
                    self._move(ring)
        except BaseException as error:  # noqa: BLE001  # a thread's border: the loop raises it
            self.failure = error

    def _move(self, ring: SharedRing) -> None:
        if self.lock is None:
            self._write(ring.take(self.chunk))
        else:
            with self.lock:
                self._write(ring.take(self.chunk))

    def _write(self, taken: list[Experience]) -> None:
        with paceline.phase("consolidate"):
            self.memory.write(taken)
        for experience in taken:
            self.written[experience.game] = experience.round + 1
        # What all games have handed over can be drawn.
        self.memory.rounds = min(self.written)
        self.experiences += len(taken)


class FreeRunning:
    """Everything that the loop works on."""

    def __init__(self, args: Args, device: torch.device) -> None:
        self.args = args
        self.learner = Learner(args, device)
        self.memory = memory(args)
        self.chance = np.random.default_rng((int(args.seed or 0), 2**30))
        self.batches = self.reported_batches = self.epochs = 0
        # Not forked: torch's threads would be missing in a copy of this process.
        context = get_context("spawn")
        self.shared = share_state(context, args, self.learner.network)
        self.weights = SharedWeights(self.shared)
        self.weights.write(self.learner.network)
        self.lock = TimedLock(self.shared.lock) if self.shared.lock else None
        self.counts = [np.frombuffer(raw, dtype=np.float64) for raw in self.shared.counts]
        self.reported = np.zeros(len(COUNTS))
        self.collectors = [
            context.Process(target=run_collector, args=(args, number, self.shared), daemon=True)
            for number in range(len(self.counts))
        ]
        for collector in self.collectors:
            collector.start()
        rings = [SharedRing(ring) for ring in self.shared.rings]
        self.consolidation = Consolidation(args, rings, self.lock, self.memory)

    def close(self) -> None:
        """End all processes and the thread."""
        self.shared.ending.set()
        self.consolidation.close()
        for collector in self.collectors:
            collector.join(5)
            if collector.is_alive():
                collector.kill()
                collector.join()

    def handed(self) -> int:
        """Experiences that found room in a ring so far."""
        return int(sum(counts[HANDED] for counts in self.counts))

    def check(self) -> None:
        """Raise what failed in the thread, or that a collector is gone."""
        if self.consolidation.failure is not None:
            raise self.consolidation.failure
        for collector in self.collectors:
            if collector.exitcode is not None:
                raise RuntimeError(f"a collector's process has ended with status {collector.exitcode}")

    def may_learn(self) -> bool:
        """Whether there is enough to draw from, and the samples for each experience aren't spent."""
        started = self.memory.rounds * self.args.environments >= self.args.epoch
        wanted = (self.batches + 1) * int(self.args.batch_size or 1)
        return started and wanted <= self.args.samples * self.handed()

    def learn(self) -> None:
        """One batch; each epoch of experiences ends with what belongs to it."""
        if self.lock is None:
            batch = self._sample()
        else:
            with self.lock:
                batch = self._sample()
        with paceline.phase("update"):
            self.learner.learn(batch)
        self.batches += 1
        epochs = self.consolidation.experiences // self.args.epoch
        for epoch in range(self.epochs + 1, epochs + 1):
            self.learner.end_epoch(epoch)
            if epoch % int(self.args.sync_every or 1) == 0:
                with paceline.phase("sync"):
                    self.weights.write(self.learner.network)
        self.epochs = epochs

    def _sample(self) -> Batch:
        with paceline.phase("sample"):
            self.memory.show()
            number = self.args.epoch * self.args.samples // int(self.args.batch_size or 1)
            return self.memory.sample(self.chance, self.batches % number)

    def report(self, step: int) -> None:
        """The document's monitoring lines, as counts and gauges."""
        sums = np.sum(self.counts, axis=0)
        new, self.reported = sums - self.reported, sums
        paceline.count("experiences", self.args.environments)
        paceline.count("batches", self.batches - self.reported_batches)
        self.reported_batches = self.batches
        paceline.count("queue_drops", float(new[DROPPED]))
        paceline.count("lock_acquisitions", float(new[TAKEN]))
        if new[TAKEN] or self.lock is None:
            paceline.gauge("lock_wait_ms", 1000 * float(new[WAITED]) / max(1.0, float(new[TAKEN])))
        paceline.gauge("lock_wait_worst_ms", 1000 * max(float(counts[WORST]) for counts in self.counts))
        paceline.gauge("replay_megabytes", self.memory.megabytes())
        paceline.gauge("queue_length", self.consolidation.waiting)
        paceline.gauge("exploration", exploration_share(self.args, step))
        if new[HANDED]:
            paceline.gauge("reward", float(new[REWARDS] / new[HANDED]))
        if new[GAMES]:
            paceline.gauge("distance", float(new[DISTANCE] / new[GAMES]))


def share_state(context: Any, args: Args, network: torch.nn.Module) -> SharedState:
    """Shared memory for one ring behind one lock, or for a ring of each collector."""
    number = int(args.collectors or 1)
    rings = 1 if args.queues == "shared" else number
    size = sum(value.numel() for value in network.state_dict().values())
    return SharedState(
        rings=[allocate_ring(context, args, args.queue_limit // rings) for _ in range(rings)],
        lock=context.Lock() if args.queues == "shared" else None,
        weights=context.RawArray("f", size),
        version=context.RawArray("q", 1),
        counts=[context.RawArray("d", len(COUNTS)) for _ in range(number)],
        ending=context.Event(),
    )


def run_free(training: FreeRunning, steps: Iterable[int]) -> None:
    """Take these steps: each is over when as many experiences are handed over as there are games."""
    start = training.handed()
    for step in steps:
        wanted = start + (step + 1) * training.args.environments
        while training.handed() < wanted:
            training.check()
            if training.may_learn():
                training.learn()
            else:
                with paceline.phase("wait"):
                    sleep(POLL_SECONDS)
        training.report(step)


def wait_for_collectors(training: FreeRunning) -> None:
    """Return once every collector plays: their start is no part of any step."""
    until = perf_counter() + START_SECONDS
    while not all(counts[HANDED] for counts in training.counts):
        training.check()
        if perf_counter() > until:
            raise RuntimeError(f"a collector didn't begin to play within {START_SECONDS:.0f} s")
        sleep(0.01)


def train_free(args: Args, device: torch.device) -> FreeRunning:
    """The training loop; all processes have ended when it returns."""
    training = FreeRunning(args, device)
    try:
        wait_for_collectors(training)
        run_free(training, paceline.steps(range(args.total_steps)))
    finally:
        training.close()
    return training
