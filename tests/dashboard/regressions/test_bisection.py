from __future__ import annotations

import pytest

from dashboard.regressions.bisection import narrow

BETWEEN = list("bcdefg")


def bisect(verdict_of: dict[str, str]) -> tuple[str, str, str | None, int]:
    """Bisect a ... h with a truth; the range that is left, the second cause's commit, and the steps taken."""
    verdicts: dict[str, str] = {}
    while (left := narrow("a", BETWEEN, "h", verdicts)).middle:
        verdicts[left.middle] = verdict_of[left.middle]
    return left.good, left.bad, left.second, len(verdicts)


@pytest.mark.parametrize("culprit", list("bcdefgh"))
def test_every_single_culprit_is_found(culprit: str) -> None:
    truth = {commit: "bad" if commit >= culprit else "good" for commit in BETWEEN}
    good, bad, second, steps = bisect(truth)
    assert (ord(bad) - ord(good), bad, second) == (1, culprit, None)
    assert steps <= 3


@pytest.mark.parametrize("skipped", ["untestable", "undecided"])
def test_a_commit_that_cannot_tell_is_left_out(skipped: str) -> None:
    truth = dict(zip(BETWEEN, ["good", "good", skipped, skipped, "bad", "bad"], strict=True))
    assert bisect(truth)[:2] == ("c", "f")


def test_where_no_commit_tells_the_range_stays() -> None:
    assert bisect(dict.fromkeys(BETWEEN, "untestable"))[:2] == ("a", "h")


def test_a_part_of_the_step_means_a_second_cause_behind_it() -> None:
    truth = dict(zip(BETWEEN, ["good", "between", "between", "between", "bad", "bad"], strict=True))
    good, bad, second, _ = bisect(truth)
    assert (good, bad) == ("b", "c")
    assert second in ("c", "d", "e")


def test_neighbours_need_no_measurement() -> None:
    assert narrow("a", [], "b", {}).middle is None
