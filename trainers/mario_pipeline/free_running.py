"""The pipeline as its document has it: collectors are processes, and nobody waits for anybody.

Each collector plays as fast as it can and hands over what it played (collecting.py); a thread consolidates it
into the replay memory (consolidation.py); the learner learns as fast as it can, at most so many samples for
each experience. A step is as many experiences handed over as there are games: that is fixed, whoever is how
fast. How much was learned meanwhile is not, and is reported (monitoring.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from multiprocessing import get_context
from time import perf_counter, sleep

import numpy as np
import paceline
import torch
from acting import exploration_share
from arguments import Args
from collecting import SharedWeights, run_collector, share_state
from consolidation import POLL_SECONDS, Consolidation
from memory import Batch, memory
from monitoring import GAMES, HANDED, Monitor, Progress
from network import Learner
from queues import TimedLock

START_SECONDS = 120.0


class FreeRunning:
    """Everything that the loop works on."""

    def __init__(self, args: Args, device: torch.device) -> None:
        self.args = args
        self.learner = Learner(args, device)
        self.memory = memory(args)
        self.chance = np.random.default_rng((int(args.seed or 0), 2**30))
        self.batches = self.epochs = 0
        # Not forked: torch's threads would be missing in a copy of this process.
        context = get_context("spawn")
        self.shared = share_state(context, args, self.learner.network)
        self.weights = SharedWeights(self.shared)
        self.weights.write(self.learner.network)
        self.lock = TimedLock(self.shared.lock) if self.shared.lock else None
        self.counts = [np.frombuffer(raw, dtype=np.float64) for raw in self.shared.counts]
        waits = [np.frombuffer(raw, dtype=np.int64) for raw in self.shared.waits]
        self.monitor = Monitor(self.counts, waits, args.environments)
        self.collectors = [
            context.Process(target=run_collector, args=(args, number, self.shared), daemon=True)
            for number in range(len(self.counts))
        ]
        for collector in self.collectors:
            collector.start()
        handovers = [self.shared.handover_of(number) for number in range(len(self.shared.handovers))]
        self.consolidation = Consolidation(args, handovers, self.lock, self.memory)

    def close(self) -> None:
        """End all processes and the thread."""
        self.shared.ending.set()
        self.consolidation.close()
        for collector in self.collectors:
            collector.join(5)
            if collector.is_alive():
                collector.kill()
                collector.join()

    def total(self, name: int) -> int:
        """What all collectors have counted so far."""
        return int(sum(counts[name] for counts in self.counts))

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
        return started and wanted <= self.args.samples * self.total(HANDED)

    def learn(self) -> None:
        """One batch; while it is drawn, and with `locked_learning` while it is learned, the lock is held."""
        if self.args.locked_learning:
            with self.lock or nullcontext():
                self._update(self._sample())
        else:
            with self.lock or nullcontext():
                batch = self._sample()
            self._update(batch)
        self.batches += 1
        self._end_epochs()

    def _sample(self) -> Batch:
        with paceline.phase("sample"):
            self.memory.show()
            number = self.args.epoch * self.args.samples // int(self.args.batch_size or 1)
            return self.memory.sample(self.chance, self.batches % number)

    def _update(self, batch: Batch) -> None:
        with paceline.phase("update"):
            self.learner.learn(batch)

    def _end_epochs(self) -> None:
        """Do what belongs to the ends of the epochs that the collectors have played meanwhile."""
        epochs = self.total(GAMES) // int(self.args.episodes or 1)
        for epoch in range(self.epochs + 1, epochs + 1):
            self.learner.end_epoch(epoch)
            if epoch % int(self.args.sync_every or 1) == 0:
                with paceline.phase("sync"):
                    self.weights.write(self.learner.network)
        self.epochs = epochs

    def report(self, step: int) -> None:
        """The document's monitoring lines."""
        kept = min(self.consolidation.experiences, int(self.args.capacity or 0))
        progress = Progress(
            exploration=exploration_share(self.args, step),
            batches=self.batches,
            samples=self.batches * int(self.args.batch_size or 1),
            epochs=self.epochs,
            chunks=self.consolidation.chunks,
            waiting=self.consolidation.waiting,
            kept=kept,
            megabytes=self.memory.megabytes(),
            loss=self.learner.loss,
        )
        self.monitor.report(step, progress)


def run_free(training: FreeRunning, steps: Iterable[int]) -> None:
    """Take these steps: each is over when as many experiences are handed over as there are games."""
    start = training.total(HANDED)
    for step in steps:
        wanted = start + (step + 1) * training.args.environments
        while training.total(HANDED) < wanted:
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
