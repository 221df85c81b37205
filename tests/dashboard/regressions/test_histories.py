"""Random histories with a planted truth: every proof ends with the right answer or an honest range."""

from __future__ import annotations

import math
import os
import random

import pytest

from dashboard.models import Experiment, Regression, Run
from dashboard.regressions import advance_proof, judge_run
from dashboard.sentences.regressions.bisections import bisection_sentence
from tests.dashboard import factories
from tests.dashboard.regressions.planted import History, linear_history

pytestmark = pytest.mark.django_db

# Of hundreds, decision/test_bisection.py tests what is decided; these two have commits that don't run, short
# branches and long ones.
# `HISTORIES=300` for a day on which what asks and acts on experiments was changed.
SEEDS = range(int(os.environ["HISTORIES"])) if "HISTORIES" in os.environ else (3, 6)


def confirmed_regressions(history: History) -> list[Regression]:
    rows = history.project.regressions.filter(withdrawn_at=None, state="confirmed")
    return list(rows.select_related("first_bad", "last_good", "culprit").order_by("first_bad__position"))


def narrowest_range(count: int, culprit: int, broken: set[int]) -> tuple[int, int]:
    """The narrowest range that can be told: the nearest commits that run, on both sides of a culprit."""
    runs = [place for place in range(count + 1) if place not in broken]
    return max(place for place in runs if place < culprit), min(place for place in runs if place >= culprit)


def broken_in(chance: random.Random, count: int) -> set[int]:
    """A run of commits that don't run, and a few more; neither end."""
    start, length = chance.randint(1, count), chance.choice([0, 0, 1, 3, 6])
    few = {chance.randint(1, count) for _ in range(chance.choice([0, 0, 1, 2]))}
    return {place for place in {*range(start, start + length), *few} if place < count}


def planted_line(chance: random.Random, culprits: int) -> tuple[int, list[int], set[int]]:
    count = chance.randint(culprits, 24)
    return count, sorted(chance.sample(range(1, count + 1), culprits)), broken_in(chance, count)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_culprit_is_found_as_far_as_commits_run(seed: int) -> None:
    count, (culprit,), broken = planted_line(random.Random(seed), 1)  # noqa: S311  # a fixed seed is the point
    history = History(linear_history(count), {f"m{culprit}": 1.4}, frozenset(f"m{place}" for place in broken))
    history.make(f"one{seed}").suspect("m0", f"m{count}")
    steps = history.answer_all()
    (regression,) = confirmed_regressions(history)
    good, bad = narrowest_range(count, culprit, broken)
    assert (regression.last_good.subject, regression.first_bad.subject) == (f"m{good}", f"m{bad}")
    assert steps <= math.ceil(math.log2(count)) + len(broken)
    assert bisection_sentence(regression).startswith(f"It is one of these {bad - good} commits; ") == (
        bad - good > 1
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_two_culprits_are_two_regressions_where_a_commit_between_runs(seed: int) -> None:
    chance = random.Random(1000 + seed)  # noqa: S311  # a fixed seed is the point
    count, (first, second), broken = planted_line(chance, 2)
    share = chance.uniform(0.35, 0.65)
    steps = {f"m{first}": 1.6**share, f"m{second}": 1.6 ** (1 - share)}
    history = History(linear_history(count), steps, frozenset(f"m{place}" for place in broken))
    history.make(f"two{seed}").suspect("m0", f"m{count}")
    taken = history.answer_all()
    ranges = [
        (regression.last_good.subject, regression.first_bad.subject)
        for regression in confirmed_regressions(history)
    ]
    expected = [narrowest_range(count, culprit, broken) for culprit in (first, second)]
    if expected[0][1] >= second:
        expected = [(expected[0][0], expected[1][1])]
    assert ranges == [(f"m{good}", f"m{bad}") for good, bad in expected]
    assert taken <= 2 * (math.ceil(math.log2(count)) + len(broken))


def test_what_came_little_by_little_in_an_unmeasured_range_is_blamed_on_no_commit(db: None) -> None:
    history = History(linear_history(14), {f"m{place}": 1.03 for place in range(3, 12)})
    history.make("gradual").suspect("m0", "m14")
    history.answer_all()
    (regression,) = confirmed_regressions(history)
    assert (regression.last_good.subject, regression.first_bad.subject) == ("m0", "m14")
    assert bisection_sentence(regression).startswith("It came over these 14 commits")


def merged_history(chance: random.Random, inner: bool) -> tuple[dict[str, list[str]], list[str]]:
    """A main line of a few commits with a merge, and the commits that it brought.

    With `inner` the branch has merged another branch, and the main line in between.
    """
    parents = linear_history(chance.randint(2, 5))
    fork = f"m{chance.randint(0, 1)}"
    brought = [f"b{index}" for index in range(chance.randint(1, 9))]
    parents |= {name: [brought[index - 1]] if index else [fork] for index, name in enumerate(brought)}
    if inner:
        for index in range(chance.randint(1, 4)):
            parents[f"i{index}"] = [f"i{index - 1}" if index else brought[0]]
        last = list(parents)[-1]
        parents["n"] = [brought[-1], last]
        parents["caught-up"] = ["n", "m2"]
        parents["b-last"] = ["caught-up"]
        brought = [name for name in parents if name[0] in "bic" or name == "n"]
    tip = f"m{len([name for name in parents if name[0] == 'm']) - 1}"
    parents |= {"merge": [tip, brought[-1]], "after": ["merge"]}
    return parents, brought


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_culprit_that_a_merge_brought_is_named_with_the_merge(seed: int, inner: bool) -> None:
    chance = random.Random(2000 + seed)  # noqa: S311  # a fixed seed is the point
    parents, brought = merged_history(chance, inner)
    culprit = chance.choice([name for name in brought if len(parents[name]) == 1])
    broken = {name for name in brought[:-1] if chance.random() < chance.choice([0, 0.3])}
    # Beside the branch the main line got faster and slower: that isn't the branch's doing.
    steps = {culprit: 1.4, "m1": 0.9, "m2": chance.choice([1.0, 1.5])}
    history = History(parents, steps, frozenset(broken - {culprit}), main="after")
    history.make(f"merge{inner}{seed}").suspect("m2", "after")
    taken = history.answer_all()
    (regression,) = confirmed_regressions(history)
    assert regression.first_bad.subject == "merge"
    assert f"came by the merge {regression.first_bad}" in bisection_sentence(regression)
    hashes = history.rows[culprit]
    assert (
        regression.culprit == hashes
        if regression.culprit
        else "it is one of " in bisection_sentence(regression)
    )
    assert regression.culprit or broken
    assert taken <= 2 + math.ceil(math.log2(len(parents))) + math.ceil(math.log2(len(brought))) + len(broken)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_merge_whose_branch_has_no_step_is_itself_to_blame(seed: int) -> None:
    chance = random.Random(3000 + seed)  # noqa: S311  # a fixed seed is the point
    parents, brought = merged_history(chance, inner=bool(seed % 2))
    history = History(parents, {"merge": 1.3, "m1": 1.2}, evil=frozenset({"merge"}), main="after")
    history.make(f"evil{seed}").suspect("m2", "after")
    history.answer_all()
    (regression,) = confirmed_regressions(history)
    assert (regression.first_bad.subject, regression.culprit) == ("merge", None)
    assert bisection_sentence(regression).startswith(
        f"The merge {regression.first_bad} itself is to blame: its branch up to "
    )
    assert history.rows[brought[-1]].short in bisection_sentence(regression)


def judge_counter(history: History, name: str) -> None:
    """The run of a commit is stored and judged: its calls go with the planted truth."""
    case = history.project.cases.first() or factories.create_case(history.project)
    made = factories.store_measured_run(
        history.rows[name], case, {"function_calls": round(1e6 * history.level(name))}
    )
    judge_run(made.pk)
    for key in history.project.regressions.filter(proving=True).values_list("pk", flat=True):
        advance_proof(key)


@pytest.mark.parametrize("seed", SEEDS[:1])
def test_each_culprit_of_an_exact_counter_is_found_without_proof(seed: int) -> None:
    chance = random.Random(4000 + seed)  # noqa: S311  # a fixed seed is the point
    count, every = 24, 6
    culprits = sorted(chance.sample(range(every + 1, count + 1), 3))
    history = History(linear_history(count), {f"m{place}": chance.uniform(1.05, 1.5) for place in culprits})
    history.make(f"counters{seed}")
    for place in range(0, count + 1, every):
        judge_counter(history, f"m{place}")
    asked = Run.objects.filter(commit__project=history.project, state=Run.State.REQUESTED)
    measured = 0
    while waiting := asked.first():
        name = waiting.commit.subject
        waiting.delete()
        judge_counter(history, name)
        measured += 1
    rows = confirmed_regressions(history)
    assert [(regression.last_good.subject, regression.first_bad.subject) for regression in rows] == [
        (f"m{place - 1}", f"m{place}") for place in culprits
    ]
    assert not Experiment.objects.exists()
    assert measured <= 3 * math.ceil(math.log2(every)) + 3
