from __future__ import annotations

import math
import random

import pytest

from dashboard.regressions.decision.bisection import narrow_branch, narrow_range

LINE = list("abcdefgh")
BETWEEN = LINE[1:-1]


def bisect_range(verdict_of: dict[str, str]) -> tuple[str, str, str | None, int]:
    """Bisect a ... h with a truth; the range that is left, the second cause's commit, and the steps taken."""
    verdicts: dict[str, str] = {}
    while (left := narrow_range(LINE, verdicts)).middle:
        verdicts[left.middle] = verdict_of[left.middle]
    return left.good, left.bad, left.with_part, len(verdicts)


@pytest.mark.parametrize("culprit", list("bcdefgh"))
def test_every_single_culprit_is_found(culprit: str) -> None:
    truth = {commit: "whole" if commit >= culprit else "none" for commit in BETWEEN}
    good, bad, second, steps = bisect_range(truth)
    assert (ord(bad) - ord(good), bad, second) == (1, culprit, None)
    assert steps <= 3


@pytest.mark.parametrize(("culprit", "measured"), [("b", "eb"), ("c", "ebc"), ("f", "ef"), ("g", "ef")])
def test_what_a_proof_has_cleared_is_not_halved(culprit: str, measured: str) -> None:
    """Noise had placed the step between c and e, and pairs refuted it."""
    verdicts: dict[str, str] = {}
    while middle := (left := narrow_range("abcdefg", verdicts, cleared="de")).middle:
        verdicts[middle] = "whole" if middle >= culprit else "none"
    assert (left.bad, "".join(verdicts)) == (culprit, measured)


@pytest.mark.parametrize("culprit", list("bcdefgh"))
@pytest.mark.parametrize("cleared", ["cd", "bcdefgh", "fgh"])
def test_a_proof_that_erred_hides_no_culprit(culprit: str, cleared: str) -> None:
    verdicts: dict[str, str] = {}
    while middle := (left := narrow_range(LINE, verdicts, cleared)).middle:
        verdicts[middle] = "whole" if middle >= culprit else "none"
    assert (chr(ord(left.good) + 1), left.bad) == (culprit, culprit)


def measured_commits(culprit: str, seen: tuple[str, str], cleared: str = "") -> str:
    """What is measured of b to o, one after the other, where detection sees the step between two commits."""
    verdicts: dict[str, str] = {}
    while middle := (left := narrow_range("abcdefghijklmnop", verdicts, cleared, seen)).middle:
        verdicts[middle] = "whole" if middle >= culprit else "none"
    assert (chr(ord(left.good) + 1), left.bad) == (culprit, culprit)
    return "".join(verdicts)


@pytest.mark.parametrize(
    ("seen", "measured"), [(("c", "d"), "dc"), (("l", "m"), "lm"), (("a", "b"), "b"), (("o", "p"), "o")]
)
def test_where_stored_runs_show_the_step_is_measured_first(seen: tuple[str, str], measured: str) -> None:
    assert measured_commits(seen[1], seen) == measured


@pytest.mark.parametrize("culprit", list("bcdefghijklmnop"))
@pytest.mark.parametrize("seen", [("c", "d"), ("h", "i"), ("a", "b"), ("f", "i"), ("o", "p"), ("x", "y")])
def test_stored_runs_that_err_hide_no_culprit(culprit: str, seen: tuple[str, str]) -> None:
    assert len(measured_commits(culprit, seen)) <= 4 + 2


def test_where_pairs_refuted_the_step_stored_runs_are_not_believed() -> None:
    assert measured_commits("d", ("g", "h"), cleared="h")[0] not in "gh"


def test_a_few_commits_are_halved_whatever_stored_runs_show() -> None:
    assert narrow_range("abcde", {}, seen=("b", "c")).middle == narrow_range("abcde", {}).middle


@pytest.mark.parametrize("skipped", ["untestable", "undecided"])
def test_a_commit_that_cannot_tell_is_left_out(skipped: str) -> None:
    truth = dict(zip(BETWEEN, ["none", "none", skipped, skipped, "whole", "whole"], strict=True))
    assert bisect_range(truth)[:2] == ("c", "f")


def test_where_no_commit_tells_the_range_stays() -> None:
    assert bisect_range(dict.fromkeys(BETWEEN, "untestable"))[:2] == ("a", "h")


def test_a_part_of_the_step_means_a_second_cause_behind_it() -> None:
    truth = dict(zip(BETWEEN, ["none", "part", "part", "part", "whole", "whole"], strict=True))
    good, bad, second, _ = bisect_range(truth)
    assert (good, bad) == ("b", "c")
    assert second in ("c", "d", "e")


def test_neighbours_need_no_measurement() -> None:
    assert narrow_range("ab", {}).middle is None


def random_branches(chance: random.Random) -> dict[str, list[str]]:
    """Up to thirty commits that end in one, each with one or two parents among those before it."""
    count = chance.randint(1, 30)
    parents = {
        str(at): sorted({str(chance.randrange(at)), *random_parent(chance, at)}) for at in range(1, count)
    }
    whole = ancestors_of({"0": [], **parents}, str(count - 1))
    return {name: parents.get(name, []) for name in map(str, range(count)) if name in whole}


def random_parent(chance: random.Random, index: int) -> set[str]:
    return {str(chance.randrange(index))} if chance.random() < 0.3 else {str(index - 1)}


def ancestors_of(parents: dict[str, list[str]], name: str) -> set[str]:
    return {name}.union(*(ancestors_of(parents, parent) for parent in set(parents[name])))


@pytest.mark.parametrize("broken_share", [0.0, 0.3, 0.8])
def test_the_culprit_of_a_branch_of_branches_is_always_among_the_suspects(broken_share: float) -> None:
    for seed in range(300):
        chance = random.Random(seed)  # noqa: S311  # a fixed seed is the point
        brought = random_branches(chance)
        *rest, tip = brought
        culprit = chance.choice(list(brought))
        broken = {name for name in rest if chance.random() < broken_share}
        verdicts = {tip: "whole"}
        while middle := (left := narrow_branch(brought, verdicts)).middle:
            has_it = "whole" if culprit in ancestors_of(brought, middle) else "none"
            verdicts[middle] = "untestable" if middle in broken else has_it
        assert culprit in left.suspects
        assert broken or left.suspects == [culprit]
        assert set(left.suspects) <= {culprit, *broken} | {
            commit for commit in verdicts if verdicts[commit] == "whole"
        }


@pytest.mark.parametrize("count", [1, 2, 7, 8, 33])
def test_a_straight_branch_takes_the_logarithm_of_its_length(count: int) -> None:
    brought = {str(index): [str(index - 1)] if index else [] for index in range(count)}
    for culprit in range(count):
        verdicts = {str(count - 1): "whole"}
        while middle := narrow_branch(brought, verdicts).middle:
            verdicts[middle] = "whole" if int(middle) >= culprit else "none"
        assert narrow_branch(brought, verdicts).suspects == [str(culprit)]
        assert len(verdicts) - 1 <= math.ceil(math.log2(count))


def test_runs_of_commits_that_do_not_run_cost_a_step_each_at_most() -> None:
    for seed in range(600):
        chance = random.Random(seed)  # noqa: S311  # a fixed seed is the point
        count = chance.randint(1, 60)
        start, length = chance.randint(1, count), chance.choice([0, 1, 5, 30])
        broken = {
            place for place in (*range(start, start + length), chance.randint(1, count)) if place < count
        }
        culprit, verdicts = chance.randint(1, count), dict[str, str]()
        line = [str(place) for place in range(count + 1)]
        while middle := (left := narrow_range(line, verdicts)).middle:
            verdicts[middle] = "whole" if int(middle) >= culprit else "none"
            verdicts[middle] = "untestable" if int(middle) in broken else verdicts[middle]
        runs = [place for place in range(count + 1) if place not in broken]
        ends = (
            max(place for place in runs if place < culprit),
            min(place for place in runs if place >= culprit),
        )
        assert (int(left.good), int(left.bad)) == ends
        skips = sum(verdict == "untestable" for verdict in verdicts.values())
        assert len(verdicts) <= math.ceil(math.log2(count)) + skips
