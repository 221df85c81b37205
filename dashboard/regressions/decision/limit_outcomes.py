"""What the manifest's limits add to a decision: a regression for each commit that begins to cross some.

One that tells of limits alone begins and ends where these say. One that holds changes, or was proved, tells
of them as well; what it says of its commits is what the changes and the proofs do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from dashboard.regressions.decision.facts import Commit, EpisodeCommits, LimitEpisode, Regression, Snapshot
from dashboard.regressions.decision.outcomes import DecidedRow, Outcome, row_as_stored
from dashboard.regressions.decision.primary_change import Size
from dashboard.regressions.decision.proofs import State


@dataclass(slots=True)
class CrossedCommit:
    """What begins to be crossed at one commit, and its regression, the `owner`: `others` turned out to be
    the same."""

    episodes: list[LimitEpisode]
    owner: Regression | None = None
    others: list[Regression] = field(default_factory=list)

    @property
    def commit(self) -> Commit:
        return self.episodes[0].commit

    @property
    def limits(self) -> tuple[int, ...]:
        return tuple(episode.limit for episode in self.episodes)

    @property
    def linked(self) -> list[int]:
        return [link.regression for episode in self.episodes for link in episode.links]


def with_limits(
    outcomes: Sequence[Outcome], snapshot: Snapshot, regressions: Sequence[Regression]
) -> tuple[list[Outcome], tuple[int, ...]]:
    """The outcomes with what the limits add, and the rows of limits that their regression tells no more.

    `regressions` are those of the snapshot's branch.
    """
    decider = _LimitDecider(outcomes, snapshot, regressions)
    return decider.outcomes, decider.released


class _LimitDecider:
    def __init__(
        self, outcomes: Sequence[Outcome], snapshot: Snapshot, regressions: Sequence[Regression]
    ) -> None:
        self.outcomes = list(outcomes)
        self.live = snapshot.live
        self.rows = {row.pk: row for row in regressions}
        self.successors = {key: outcome.key for outcome in outcomes for key in outcome.absorbed}
        self.alone = self._limits_alone(snapshot)
        crossed = crossed_commits(snapshot.limit_episodes)
        self._choose_owners(crossed)
        for crossed_commit in crossed:
            self._decide_crossed(crossed_commit)
        owners = {crossed_commit.owner.pk for crossed_commit in crossed if crossed_commit.owner}
        owners |= {row.pk for crossed_commit in crossed for row in crossed_commit.others}
        self._withdraw_kept(snapshot, owners)
        owned = {
            (limit, crossed_commit.owner.pk)
            for crossed_commit in crossed
            if crossed_commit.owner
            for limit in crossed_commit.limits
        }
        links = [link for episode in snapshot.limit_episodes for link in episode.links]
        released = [link.limit for link in links if (link.limit, link.regression) not in owned]
        released += [link.limit for link in snapshot.limits_kept if link.has_changes]
        self.released = tuple(released)

    def _limits_alone(self, snapshot: Snapshot) -> set[int]:
        """Those that tell of crossed limits and of nothing else."""
        links = [link for episode in snapshot.limit_episodes for link in episode.links]
        links += snapshot.limits_kept
        held = {link.regression for link in links if link.has_changes}
        held |= {change.regression_id or 0 for change in snapshot.changes}
        held |= {outcome.key or 0 for outcome in self.outcomes if outcome.changes}
        held |= {verdict.regression_id for verdict in snapshot.verdicts}
        return {
            row.pk for row in self.rows.values() if row.has_limit and not row.residual and row.pk not in held
        }

    def _standing_row(self, key: int) -> Regression | None:
        """The row of this key, or of the regression that it turned out to be; None where it is withdrawn."""
        successor = self.successors.get(key, key)
        row = self.rows.get(successor or 0)
        gone = any(outcome.key == key and outcome.decided is None for outcome in self.outcomes)
        return None if row is None or row.withdrawn or gone else row

    def _choose_owners(self, crossed: Sequence[CrossedCommit]) -> None:
        """First what holds changes at a commit or reported its limit with them, then what began there.

        What is left, as the beginning of a crossing was moved, goes with it: to the first that has none.
        """
        for crossed_commit in crossed:
            found = self._rows_at(crossed_commit)
            beside = [row for row in found if row.pk not in self.alone]
            crossed_commit.owner = next(iter(beside or found), None)
        taken = {crossed_commit.owner.pk for crossed_commit in crossed if crossed_commit.owner}
        for crossed_commit in crossed:
            for key in crossed_commit.linked:
                row = self._standing_row(key)
                if row is None or row.pk not in self.alone or row.pk in taken:
                    continue
                taken.add(row.pk)
                if crossed_commit.owner is None:
                    crossed_commit.owner = row
                else:
                    crossed_commit.others.append(row)
            if crossed_commit.owner is None:
                crossed_commit.owner = self._withdrawn_before(crossed_commit)

    def _rows_at(self, crossed: CrossedCommit) -> list[Regression]:
        """Those at the commit, and those with changes that tell of its very limits."""
        links = [link for episode in crossed.episodes for link in episode.links]
        linked = [link.regression for link in links if link.limit in crossed.limits]
        there = [row.pk for row in self.rows.values() if row.first_bad.pk == crossed.commit.pk]
        rows = [row for key in dict.fromkeys([*linked, *there]) if (row := self._standing_row(key))]
        return [row for row in rows if row.pk not in self.alone or row.first_bad.pk == crossed.commit.pk]

    def _withdrawn_before(self, crossed: CrossedCommit) -> Regression | None:
        """One that reported the very limit at its commit, and was withdrawn as another run kept it."""
        keys = {
            link.regression
            for episode in crossed.episodes
            for link in episode.links
            if link.limit == episode.limit
        }
        rows = [self.rows[key] for key in sorted(keys) if key in self.rows]
        return next((row for row in rows if row.withdrawn and row.pk in self.alone), None)

    def _decide_crossed(self, crossed: CrossedCommit) -> None:
        """Tell of it by the outcome that opens at the commit or is the owner's; else by one of its own."""
        limits, owner = crossed.limits, crossed.owner
        absorbed = tuple(row.pk for row in crossed.others)
        for index, outcome in enumerate(self.outcomes):
            if outcome.decided is None:
                continue
            opens = outcome.key is None and outcome.decided.first_bad.pk == crossed.commit.pk
            if opens or (owner and outcome.key == owner.pk):
                extra = absorbed
                if opens and owner:
                    extra = (owner.pk, *absorbed)
                    crossed.owner = None
                self.outcomes[index] = replace(
                    outcome, limits=outcome.limits + limits, absorbed=outcome.absorbed + extra
                )
                return
        if owner is None:
            decided = row_of_limits(crossed.episodes)
            self.outcomes.append(Outcome(None, decided, limits=limits, opened=True, announce=self.live))
            return
        decided = row_as_stored(owner, owner.state, proving=owner.proving)
        if owner.pk in self.alone:
            decided = with_limits_of(decided, crossed.episodes)
        opens = owner.withdrawn
        self.outcomes.append(
            Outcome(
                owner.pk,
                decided,
                limits=limits,
                absorbed=absorbed,
                opened=opens,
                announce=opens and self.live,
            )
        )

    def _withdraw_kept(self, snapshot: Snapshot, owners: set[int]) -> None:
        """A commit that was measured again and keeps its limit: the regression that reported it goes."""
        gone = dict.fromkeys(link.regression for link in snapshot.limits_kept)
        links = [link for episode in snapshot.limit_episodes for link in episode.links]
        gone |= dict.fromkeys(link.regression for link in links)
        for key in gone:
            row = self._standing_row(key)
            if row and row.pk == key and key in self.alone and key not in owners:
                self.outcomes.append(Outcome(key, None, stop=bool(row.active)))


def crossed_commits(episodes: Iterable[LimitEpisode]) -> list[CrossedCommit]:
    by_commit: dict[int, CrossedCommit] = {}
    for episode in episodes:
        by_commit.setdefault(episode.commit.pk, CrossedCommit([])).episodes.append(episode)
    return list(by_commit.values())


@dataclass(frozen=True, slots=True)
class CrossedRange:
    """Between which commits limits began to be crossed, and the one by which all of that was over."""

    last_good: Commit
    first_bad: Commit
    recovered_by: Commit | None


def crossed_range(episodes: Sequence[EpisodeCommits]) -> CrossedRange:
    """Of episodes that begin at one commit.

    They are over once all limits are kept again, or aren't measured any more where others are kept: up to
    there they were crossed.
    """
    first = episodes[0].first
    good = [episode.before for episode in episodes if episode.before]
    over = [commit for episode in episodes if (commit := episode.kept or episode.gone)]
    all_over = len(over) == len(episodes) and any(episode.kept for episode in episodes)
    return CrossedRange(
        last_good=max(good, key=lambda commit: commit.position, default=first),
        first_bad=first,
        recovered_by=max(over, key=lambda commit: commit.position) if all_over else None,
    )


def row_of_limits(episodes: Sequence[LimitEpisode]) -> DecidedRow:
    """Of a regression by crossed limits alone; it is described by the first of its series."""
    first = min(episodes, key=lambda episode: episode.series.pk)
    crossed = crossed_range([episode.commits for episode in episodes])
    before = first.bound if first.value_before is None else first.value_before
    ratio = first.value / first.value_before if first.value_before else None
    return DecidedRow(
        last_good=crossed.last_good,
        first_bad=crossed.first_bad,
        series=first.series,
        size=Size(before, first.value, ratio, None, None),
        state=State.CONFIRMED,
        proving=False,
        recovered_by=crossed.recovered_by.pk if crossed.recovered_by else None,
    )


def with_limits_of(stored: DecidedRow, episodes: Sequence[LimitEpisode]) -> DecidedRow:
    """What a regression by limits alone says now, with what is known of its cause."""
    here = row_of_limits(episodes)
    return replace(
        stored,
        last_good=here.last_good,
        first_bad=here.first_bad,
        series=here.series,
        size=here.size,
        state=here.state,
        recovered_by=here.recovered_by,
    )
