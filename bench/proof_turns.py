"""How long proofs wait for a busy host, by the order in which it takes them: `python -m bench.proof_turns`.

One host measures the commits that come in, the newest first, and proves what detection suspects: a proof
takes a part of its time at most while commits wait. After half a day a history of old commits asks for fifty
proofs at once. `--write` puts the table into the page on experiments.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np

from bench.detection.printing import print_published, table_head

PAGE = Path(__file__).parents[1] / "docs" / "method" / "experiments.md"
PART = re.compile(r"(<!-- proof turns:[^>]*-->\n).*?(<!-- end of proof turns -->)", re.DOTALL)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAYS, HISTORY_AFTER, HISTORY = 8, 0.5, 50
# Of commits measured within the last day or the first half of one, nobody knows yet when they are reported.
COUNTED = (0.5, DAYS - 1)
LOADS = (0.6, 0.9, 1.2)
PROJECTS = 20
# Minutes of a commit's run, and how many there are.
RUN, RUNS = 3.0, 4
# How many of the commits are suspected, and how many experiments one takes.
SUSPECTED, EXPERIMENTS = 0.3, 2.0
# Minutes of an experiment: a lognormal, at most so many.
MEDIAN, SPREAD, MOST = 5.0, 0.8, 20.0
# What of the last day's time experiments take at most while runs wait, once the machine has worked so long.
SHARE, GRACE, DAY = 0.25, 20.0, 1440.0


@dataclass(eq=False)
class SimulatedProof:
    """`commit` and what is `asked`, `began` and `ended`: minutes; `more` experiments follow it."""

    pk: int
    commit: float
    asked: float
    took: float
    more: int
    is_old: bool
    began: float = math.inf
    ended: float = math.inf

    @property
    def requested_at(self) -> datetime:
        return moment_after(self.asked)


Choose = Callable[[Sequence[SimulatedProof], Sequence[SimulatedProof], datetime], SimulatedProof]


def moment_after(minutes: float) -> datetime:
    return BEGIN + timedelta(minutes=minutes)


def first_asked(waiting: Sequence[SimulatedProof], *_: object) -> SimulatedProof:
    return min(waiting, key=lambda proof: (proof.asked, proof.pk))


def newest_commit(waiting: Sequence[SimulatedProof], *_: object) -> SimulatedProof:
    return waiting[0]


def claim_orders() -> dict[str, Choose]:
    """By name, how a host chooses of what waits, the newest commit first."""
    from dashboard.querysets.experiment_order import find_next

    return {"as asked for": first_asked, "newest commit": newest_commit, "with turns": find_next}


@dataclass
class SimulatedHost:
    """A host and what it has to do; all times are minutes."""

    rng: np.random.Generator
    choose: Choose
    now: float = 0.0
    runs: list[tuple[float, int]] = field(default_factory=list)
    waiting: list[SimulatedProof] = field(default_factory=list)
    proofs: list[SimulatedProof] = field(default_factory=list)
    begun: list[SimulatedProof] = field(default_factory=list)
    spent: deque[tuple[float, float, float]] = field(default_factory=deque)

    def ask(self, commit: float, more: int, *, is_old: bool) -> None:
        took = min(MOST, float(self.rng.lognormal(math.log(MEDIAN), SPREAD)))
        proof = SimulatedProof(len(self.proofs), commit, self.now, took, more, is_old)
        self.proofs.append(proof)
        self.waiting.append(proof)

    def suspect(self, commit: float, *, is_old: bool = False) -> None:
        self.ask(commit, int(self.rng.geometric(1 / EXPERIMENTS)) - 1, is_old=is_old)

    def may_prove(self) -> bool:
        while self.spent and self.spent[0][0] <= self.now - DAY:
            self.spent.popleft()
        proofs, whole = (sum(row[column] for row in self.spent) for column in (1, 2))
        return not self.runs or whole < GRACE or proofs / whole < SHARE

    def work(self) -> bool:
        """Do the next of what waits; False where nothing does."""
        if self.waiting and self.may_prove():
            self.prove()
        elif self.runs:
            self.measure()
        else:
            return False
        return True

    def prove(self) -> None:
        line = sorted(self.waiting, key=lambda proof: (-proof.commit, proof.asked, proof.pk))
        proof = self.choose(line, self.begun, moment_after(self.now))
        self.waiting.remove(proof)
        self.begun.insert(0, proof)
        proof.began, proof.ended = self.now, self.now + proof.took
        self.spend(proof.took, proof.took)
        if proof.more:
            self.ask(proof.commit, proof.more - 1, is_old=proof.is_old)

    def measure(self) -> None:
        commit, left = self.runs.pop(self.runs.index(max(self.runs)))
        self.spend(0.0, RUN)
        if left:
            self.runs.append((commit, left - 1))
        elif self.rng.random() < SUSPECTED:
            self.suspect(commit)

    def spend(self, proving: float, minutes: float) -> None:
        self.now += minutes
        self.spent.append((self.now, proving, minutes))


def simulate_host(choose: Choose, load: float, seed: int) -> list[SimulatedProof]:
    """All proofs of DAYS of a host whose commits and their proofs take this part of its time."""
    rng = np.random.default_rng(seed)
    each = RUN * RUNS + SUSPECTED * EXPERIMENTS * mean_minutes()
    end = DAYS * DAY
    commits = np.cumsum(rng.exponential(each / load, round(2 * end * load / each)))
    host = SimulatedHost(rng, choose)
    coming, history = deque(commits[commits < end].tolist()), HISTORY_AFTER * DAY
    while host.now < end:
        while coming and coming[0] <= host.now:
            host.runs.append((coming.popleft(), RUNS - 1))
        if history <= host.now:
            for index in range(HISTORY):
                host.suspect(float(index - HISTORY) * 60, is_old=True)
            history = math.inf
        if not host.work():
            host.now = min([*list(coming)[:1], history, end])
    return host.proofs


def mean_minutes() -> float:
    """Of an experiment."""
    drawn = np.random.default_rng(0).lognormal(math.log(MEDIAN), SPREAD, 20_000)
    return float(np.minimum(drawn, MOST).mean())


def order_cells(projects: Sequence[Sequence[SimulatedProof]]) -> list[str]:
    """Minutes from a commit to its first proof's end, and hours that the old ones wait at most."""
    first, last = (day * DAY for day in COUNTED)
    delays = []
    for proofs in projects:
        by_commit: dict[float, float] = {}
        for proof in proofs:
            if first <= proof.commit < last:
                by_commit[proof.commit] = min(proof.ended, by_commit.get(proof.commit, math.inf))
        delays += [ended - commit for commit, ended in by_commit.items()]
    longest = [
        max(min(proof.began, DAYS * DAY) - proof.asked for proof in proofs if proof.is_old)
        for proofs in projects
    ]
    left = [proof.began == math.inf for proofs in projects for proof in proofs if proof.is_old]
    found = [float(np.quantile(delays, part, method="lower")) for part in (0.5, 0.9)]
    waits = [float(np.median(longest)) / 60, max(longest) / 60]
    return [*(f"{value:.0f}" for value in [*found, *waits]), f"{100 * sum(left) / len(left):.1f}"]


def result_lines(projects: int, first_seed: int = 0) -> Iterator[str]:
    """The table: a line for each load and order."""
    columns = ["commit to proven: median", "p90", "longest wait: median", "at most", "never begun"]
    yield from table_head(["host is busy", "order", *columns])
    for load in LOADS:
        for name, choose in claim_orders().items():
            simulate = partial(simulate_host, choose, load)
            cells = order_cells([simulate(first_seed + seed) for seed in range(projects)])
            yield f"| {load:.0%} | {name} | {' | '.join(cells)} |"


def main() -> None:
    import os

    import django

    parser = argparse.ArgumentParser(description="How long proofs wait, by the order of claims.")
    parser.add_argument("projects", type=int, nargs="?", default=PROJECTS, help="for each line")
    parser.add_argument("--write", action="store_true", help="put the table into docs/method/experiments.md")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    print_published(result_lines(options.projects), PAGE, PART, write=options.write)


if __name__ == "__main__":
    main()
