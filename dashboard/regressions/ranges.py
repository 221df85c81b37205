"""Commit ranges: where the cause of a change may lie."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from dashboard import repositories
from dashboard.models import Change, Commit, Project
from dashboard.regressions.history import History
from dashboard.regressions.relevance import is_exact_counter, rank
from dashboard.repositories import RepositoryError

logger = logging.getLogger(__name__)

# The commits between two, at most: only those that are measured become rows.
MOST_BETWEEN = 100_000


@dataclass(frozen=True, slots=True)
class Range:
    """Positions on a branch after `good`, up to and with `bad`."""

    good: int
    bad: int

    @classmethod
    def of(cls, change: Change) -> Range:
        return cls(change.last_good.position, change.first_bad.position)

    def overlap(self, other: Range) -> Range | None:
        """The commits that are in both; None where there are none."""
        good, bad = max(self.good, other.good), min(self.bad, other.bad)
        return Range(good, bad) if good < bad else None

    def widened(self, history: History) -> Range:
        """With one more measured commit on both sides: noise may place a step so far off."""
        good = history.before(history.index_of(self.good))
        bad = history.after(history.index_of(self.bad))
        return Range(
            history.positions[good] if good >= 0 else self.good,
            history.positions[bad] if bad < len(history.positions) else self.bad,
        )


def narrowed(changes: Iterable[Change]) -> tuple[Change, Change]:
    """The changes whose last good and first bad commits bound the cause (at least one change).

    An exact counter knows its place, noise may put the others beside theirs. Where there is none, the one
    that speaks first tells the range. The others narrow it, as far as they overlap.
    """
    first, *others = sorted(
        changes, key=lambda change: (not is_exact_counter(change.series), rank(change), change.series_id)
    )
    good = bad = first
    span = Range.of(first)
    for other in others:
        common = span.overlap(Range.of(other))
        if common is None:
            continue
        good = other if common.good > span.good else good
        bad = other if common.bad < span.bad else bad
        span = common
    return good, bad


def span(changes: Iterable[Change]) -> Range:
    good, bad = narrowed(changes)
    return Range(good.last_good.position, bad.first_bad.position)


def commits_between(project: Project, good: Commit, bad: Commit) -> list[str]:
    """The first-parent commits strictly between two, oldest first."""
    if bad.position - good.position <= 1:
        return []
    mirror = repositories.mirror_of(project)
    try:
        return repositories.between(mirror, good.hash, bad.hash, MOST_BETWEEN)[:-1]
    except RepositoryError as error:
        logger.warning("The commits between %s and %s can't be told: %s", good, bad, error)
        return []
