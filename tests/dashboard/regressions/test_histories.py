"""Random histories with a planted truth: every proof ends with the right answer or an honest range."""

from __future__ import annotations

import math
import os
import random

import pytest

from dashboard.models import Regression
from tests.dashboard.regressions.planted import History, line

pytestmark = pytest.mark.django_db

# Each takes about a second; `HISTORIES=300` for a day on which the bisection was changed.
SEEDS = range(int(os.environ.get("HISTORIES", "10")))


def found(history: History) -> list[Regression]:
    rows = history.project.regressions.filter(withdrawn_at=None, state="confirmed")
    return list(rows.select_related("first_bad", "last_good", "culprit").order_by("first_bad__position"))


def ends(count: int, culprit: int, broken: set[int]) -> tuple[int, int]:
    """The narrowest range that can be told: the nearest commits that run, on both sides of a culprit."""
    runs = [place for place in range(count + 1) if place not in broken]
    return max(one for one in runs if one < culprit), min(one for one in runs if one >= culprit)


def broken_in(chance: random.Random, count: int) -> set[int]:
    """A run of commits that don't run, and a few more; neither end."""
    start, length = chance.randint(1, count), chance.choice([0, 0, 1, 3, 6])
    few = {chance.randint(1, count) for _ in range(chance.choice([0, 0, 1, 2]))}
    return {one for one in {*range(start, start + length), *few} if one < count}


def planted(chance: random.Random, culprits: int) -> tuple[int, list[int], set[int]]:
    count = chance.randint(culprits, 24)
    return count, sorted(chance.sample(range(1, count + 1), culprits)), broken_in(chance, count)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_culprit_is_found_as_far_as_commits_run(seed: int) -> None:
    count, (culprit,), broken = planted(random.Random(seed), 1)
    history = History(line(count), {f"m{culprit}": 1.4}, frozenset(f"m{one}" for one in broken))
    history.make(f"one{seed}").suspect("m0", f"m{count}")
    steps = history.carry()
    (one,) = found(history)
    good, bad = ends(count, culprit, broken)
    assert (one.last_good.subject, one.first_bad.subject) == (f"m{good}", f"m{bad}")
    assert steps <= math.ceil(math.log2(count)) + len(broken)
    assert one.bisected.startswith(f"It is one of these {bad - good} commits; ") == (bad - good > 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_culprits_are_two_regressions_where_a_commit_between_runs(seed: int) -> None:
    chance = random.Random(1000 + seed)
    count, (first, second), broken = planted(chance, 2)
    share = chance.uniform(0.35, 0.65)
    steps = {f"m{first}": 1.6**share, f"m{second}": 1.6 ** (1 - share)}
    history = History(line(count), steps, frozenset(f"m{one}" for one in broken))
    history.make(f"two{seed}").suspect("m0", f"m{count}")
    taken = history.carry()
    ranges = [(one.last_good.subject, one.first_bad.subject) for one in found(history)]
    expected = [ends(count, one, broken) for one in (first, second)]
    if expected[0][1] >= second:
        expected = [(expected[0][0], expected[1][1])]
    assert ranges == [(f"m{good}", f"m{bad}") for good, bad in expected]
    assert taken <= 2 * (math.ceil(math.log2(count)) + len(broken))
