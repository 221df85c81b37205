"""Which commit of a range to measure next, and what the verdicts so far leave of the range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard.models import Confirmation

Verdict = Confirmation.Verdict


HAS_IT = (Verdict.BAD, Verdict.BETWEEN)
CANNOT_TELL = (Verdict.UNTESTABLE, Verdict.UNDECIDED)


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a range: the cause lies after `good`, at `bad` or before it.

    `middle` is to be measured next; None where one commit is left, or only commits that can't tell.
    `second` is a commit that has a part of the step only: another cause lies after it.
    """

    good: str
    bad: str
    middle: str | None
    second: str | None = None


def narrow(good: str, between: Sequence[str], bad: str, verdicts: Mapping[str, str]) -> Left:
    """Narrow a range by the verdicts on the commits `between`, oldest first, its ends left out.

    A commit that doesn't run, or on which the budget was spent, is left out as `git bisect skip` would: the
    middle of the others is measured instead.
    """
    line = [good, *between, bad]
    low, high, second = 0, len(line) - 1, None
    for index, commit in enumerate(line[1:-1], start=1):
        verdict = verdicts.get(commit)
        if verdict == Verdict.GOOD and index < high:
            low = index
        elif verdict in HAS_IT and index < high:
            high = index
    # After the ends are known: a part of the step is seen right up to the commit that adds the rest.
    for commit in line[1:-1]:
        if verdicts.get(commit) == Verdict.BETWEEN:
            second = commit
    # The middle of those that may tell, so that each verdict halves them, wherever others were left out.
    tellable = [commit for commit in line[low + 1 : high] if commit not in verdicts]
    middle = tellable[(len(tellable) - 1) // 2] if tellable else None
    return Left(line[low], line[high], middle, second)


@dataclass(frozen=True, slots=True)
class LeftOfBranch:
    """The commits of a merged branch of which one is the cause, oldest first; `middle` is measured next."""

    suspects: list[str]
    middle: str | None


def narrow_branch(brought: Mapping[str, Sequence[str]], verdicts: Mapping[str, str]) -> LeftOfBranch:
    """Narrow the commits that a merge brought, whose last one has the step.

    `brought` has the parents of each commit, oldest first. A branch may hold branches: a commit that has
    the step leaves itself and its ancestors, one without it takes away itself and its ancestors.
    """
    before = ancestries(brought)
    left = (1 << len(brought)) - 1
    for commit, verdict in verdicts.items():
        if verdict == Verdict.GOOD:
            left &= ~before.get(commit, 0)
        elif verdict in HAS_IT:
            left &= before.get(commit, left)
    suspects = [commit for index, commit in enumerate(brought) if left >> index & 1]
    tellable = {commit: 1 << index for index, commit in enumerate(brought) if commit not in verdicts}
    tellable = {commit: bit for commit, bit in tellable.items() if bit & left}
    asked = sum(tellable.values())

    def lopsided(commit: str) -> int:
        return abs(2 * (before[commit] & asked).bit_count() - len(tellable) - 1)

    return LeftOfBranch(suspects, min(tellable, key=lopsided, default=None))


def ancestries(brought: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Each commit with its ancestors, as the bits of their places."""
    found: dict[str, int] = {}
    for index, (commit, parents) in enumerate(brought.items()):
        found[commit] = 1 << index
        for parent in parents:
            found[commit] |= found.get(parent, 0)
    return found
