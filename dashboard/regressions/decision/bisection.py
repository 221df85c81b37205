"""Which commit of a range to measure next, and what the verdicts so far leave of the range."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dashboard.models import Experiment
from dashboard.regressions.decision.ranges import Range

Verdict = Experiment.Verdict

HAS_STEP = (Verdict.WHOLE, Verdict.PART)
INCONCLUSIVE = (Verdict.UNTESTABLE, Verdict.UNDECIDED)


@dataclass(frozen=True, slots=True)
class RangeLeft:
    """What is left of a range: the cause lies after `good`, at `bad` or before it.

    `middle` is to be measured next; None where one commit is left, or only commits that can't tell.
    `with_part` is a commit that has a part of the step only: another cause lies after it.
    """

    good: str
    bad: str
    middle: str | None
    with_part: str | None = None


def narrow_range(
    line: Sequence[str],
    verdicts: Mapping[str, str],
    cleared: Collection[str] = frozenset(),
    seen: tuple[str, str] | None = None,
) -> RangeLeft:
    """Narrow a range by the verdicts on its commits. `line`: their hashes, the last good one first.

    A commit that doesn't run, or on which the budget was spent, is left out as `git bisect skip` would: the
    middle of the others is measured instead. `cleared` are commits of which a proof inside the range has said
    that the step isn't theirs: they are believed only as far as they say where to measure next. So are runs
    of commits inside the range, by which detection has `seen` the step between two.
    """
    low, high, with_part = 0, len(line) - 1, None
    for index, commit in enumerate(line[1:-1], start=1):
        verdict = verdicts.get(commit)
        if verdict == Verdict.NONE and index < high:
            low = index
        elif verdict in HAS_STEP and index < high:
            high = index
    # After the ends are known: a part of the step is seen right up to the commit that adds the rest.
    for commit in line[1:-1]:
        if verdicts.get(commit) == Verdict.PART:
            with_part = commit
    # The middle of those that may tell, so that each verdict halves them, wherever others were left out.
    testable = [commit for commit in line[low + 1 : high] if commit not in verdicts]
    middle = end_of_seen(line, Range(low, high), testable, cleared, seen) if seen else None
    middle = middle or middle_of_suspects([*testable, line[high]], cleared)
    return RangeLeft(line[low], line[high], middle, with_part)


def end_of_seen(
    line: Sequence[str],
    left: Range,
    testable: Collection[str],
    cleared: Collection[str],
    seen: tuple[str, str],
) -> str | None:
    """That end of what detection has seen which leaves fewer commits, if the step is there.

    `left`: by the places in the line. None where halving takes no more experiments than both ends do, or
    pairs have refuted the step there.
    """
    if not set(seen) <= set(line):
        return None
    first, last = (line.index(end) for end in seen)
    inside = Range(first, last).overlap(left)
    ends = {line[last]: left.bad - last, line[first]: first - left.good}
    ends = {end: commits for end, commits in ends.items() if end in testable}
    if not ends or inside is None or set(line[inside.good + 1 : inside.bad + 1]) & set(cleared):
        return None
    if len(ends) + (inside.width - 1).bit_length() >= len(testable).bit_length():
        return None
    return max(ends, key=lambda end: ends[end])


def middle_of_suspects(commits: Sequence[str], cleared: Collection[str]) -> str | None:
    """The commit before the last that leaves about as many suspects up to itself as after it."""
    left = [commit not in cleared for commit in commits]
    suspected = left if any(left) else [True] * len(commits)

    def imbalance(index: int) -> tuple[int, bool, int]:
        earlier, later = sum(suspected[: index + 1]), sum(suspected[index + 1 :])
        # Beside cleared commits that one which leaves the fewest of them on the side that is more likely.
        return -min(earlier, later), earlier > later, index if earlier > later else -index

    index = min(range(len(commits) - 1), key=imbalance, default=None)
    return None if index is None else commits[index]


@dataclass(frozen=True, slots=True)
class BranchLeft:
    """The commits of a merged branch of which one is the cause, oldest first; `middle` is measured next."""

    suspects: list[str]
    middle: str | None


def narrow_branch(brought: Mapping[str, Sequence[str]], verdicts: Mapping[str, str]) -> BranchLeft:
    """Narrow the commits that a merge brought, whose last one has the step.

    `brought` has the parents of each commit, oldest first. A branch may hold branches: a commit that has
    the step leaves itself and its ancestors, one without it takes away itself and its ancestors.
    """
    ancestry = ancestry_bits(brought)
    left = (1 << len(brought)) - 1
    for commit, verdict in verdicts.items():
        if verdict == Verdict.NONE:
            left &= ~ancestry.get(commit, 0)
        elif verdict in HAS_STEP:
            left &= ancestry.get(commit, left)
    suspects = [commit for index, commit in enumerate(brought) if left >> index & 1]
    testable = {commit: 1 << index for index, commit in enumerate(brought) if commit not in verdicts}
    testable = {commit: bit for commit, bit in testable.items() if bit & left}
    open_bits = sum(testable.values())

    def imbalance(commit: str) -> int:
        return abs(2 * (ancestry[commit] & open_bits).bit_count() - len(testable) - 1)

    return BranchLeft(suspects, min(testable, key=imbalance, default=None))


def ancestry_bits(brought: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Each commit with its ancestors, as the bits of their places."""
    bits: dict[str, int] = {}
    for index, (commit, parents) in enumerate(brought.items()):
        bits[commit] = 1 << index
        for parent in parents:
            bits[commit] |= bits.get(parent, 0)
    return bits
