"""What a decision is made of: frozen facts, with the names that the rows have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dashboard.metric_scale import MetricScale
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.decision.series_kinds import WORSE


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that is known by a row; `position` counts the first-parent commits before it on its branch.

    `off_branch`: the branch that held it has lost it, by a rewritten history.
    """

    pk: int
    hash: str
    branch: str
    position: int
    parents: tuple[str, ...] = ()
    off_branch: bool = False


@dataclass(frozen=True)
class Metric(MetricScale):
    name: str
    kind: str
    better: str = "lower"

    @property
    def lower_is_better(self) -> bool:
        return self.better == "lower"


@dataclass(frozen=True, slots=True)
class Series:
    pk: int
    configuration_id: int
    metric: Metric
    phase: str = ""
    exact: bool = False
    headline: bool = True
    pool_id: int = 0
    # A quality with a guard in its manifest.
    guarded: bool = False
    # Hosts of this site measure it. What was only imported or posted can't be proved by pairs.
    measured_here: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """A step that detection found in a series between two commits; without `pk` one that only pairs saw.

    `before` and `after` are levels in the metric's unit, `ratio` is after / before with its interval. `reach`
    holds one more measured commit on both sides: noise may place a step so far off. Two are equal that say
    the same, whatever their rows' keys are.
    """

    pk: int | None = field(compare=False)
    series: Series
    last_good: Commit
    first_bad: Commit
    before: float
    after: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    direction: str = WORSE
    reach: Range | None = None
    # What changed around the code explains it: no commit is blamed.
    environment_only: bool = False
    # Of a guarded quality: how the first run of the new level stands to the guard, and the bound it broke.
    guard_state: str = ""
    guard_bound: float | None = None
    # What changed around the code: name, before, after.
    markers: tuple[tuple[str, str, str], ...] = ()
    # Where the whole doesn't stand out of its noise: the phases that show it.
    phases_with_step: tuple[str, ...] = ()
    # Several small steps as one; see `gradual_changes`.
    gradual: bool = False
    regression_id: int | None = field(default=None, compare=False)

    @property
    def range(self) -> Range:
        return Range(self.last_good.position, self.first_bad.position)

    @property
    def widened(self) -> Range:
        return self.reach or self.range


@dataclass(frozen=True, slots=True)
class Learning:
    """What pairs over seeds say beside a quality's difference: over how many seeds, in how many of them the
    head reported none, and how the step's time stands to the base's: ratio and its ends, where known.
    `seed_ignored`: the pairs were given several seeds and have the same values.
    """

    seeds: int
    unreported: int = 0
    step_time: tuple[float, float | None, float | None] | None = None
    seed_ignored: bool = False


@dataclass(frozen=True, slots=True)
class PhaseSize:
    """By how much of their own time these phases grew together: ratio and its ends; None of new ones."""

    phases: tuple[str, ...]
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ExperimentVerdict:
    """What an experiment that was asked for a regression has said of its `head` against its `base`.

    `before` and `after` are the levels of the step that was suspected; `order` grows with the time at which
    it ended. `steps_between`: the positions at which its series steps between the two commits.
    """

    experiment: int
    regression_id: int
    purpose: str
    series: Series
    base: Commit
    head: Commit
    verdict: str
    before: float
    after: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    # The level of the base, as its pairs measured it.
    base_level: float | None = None
    error: float = 0.01
    machine: str = ""
    # Where its pairs are those of other commits with the same code: the one that was measured as its head.
    measured_head: str = ""
    order: int = 0
    # Of a quality: head - base with its interval, and what its pairs say beside that.
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    learning: Learning | None = None
    steps_between: tuple[int, ...] = ()
    # Its worker was lost each time: nothing was measured that could tell.
    lost: bool = False
    # Where its phases have decided; the ratio is then what all phases add up to.
    by_phases: PhaseSize | None = None

    @property
    def range(self) -> Range:
        return Range(self.base.position, self.head.position)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact that decided something, as a code with its values, which can be stored as JSON."""

    code: str
    values: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, code: str, **values: Any) -> Evidence:
        return cls(code, tuple(values.items()))

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, **dict(self.values)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Evidence:
        values = {name: as_tuples(value) for name, value in stored.items() if name != "code"}
        return cls.of(stored["code"], **values)


def as_tuples(value: Any) -> Any:
    """Lists, as JSON has them, as tuples: what is compared has one form."""
    return tuple(as_tuples(item) for item in value) if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class Regression:
    """A regression as its row stands now."""

    pk: int
    first_bad: Commit
    last_good: Commit
    series: Series
    before: float
    after: float
    state: str = "suspected"
    paired_before: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    proving: bool = False
    withdrawn: bool = False
    # A person has decided: out of the open ones.
    triaged_away: bool = False
    triaged_at: float = 0.0
    # A bound of the manifest was crossed at its commit.
    has_limit: bool = False
    # The rest of another one's step: looked for by pairs before any series showed it.
    residual: bool = False
    culprit: Commit | None = None
    # What bisection says beside the commit.
    bisection: Evidence | None = None
    # Of a loss of quality: what is said beside its size.
    learning: Evidence | None = None
    recovered_by: int | None = None
    # It holds changes of another branch, into which its own was merged: what repairs it is seen there.
    merged: bool = False
    cause: str = ""
    cause_evidence: tuple[Evidence, ...] = ()
    # Which phase explains it, and which part of it.
    phase: str = ""
    phase_share: float | None = None
    # The likeliest functions: place, and whether the commits changed them.
    suspects: tuple[tuple[str, bool], ...] = ()
    # What its explanation and its cause class were made for; other keys ask for new ones.
    explained_for: str = ""
    decided_for: str = ""
    # Experiments that are asked for or under way.
    active: tuple[int, ...] = ()

    @property
    def range(self) -> Range:
        return Range(self.last_good.position, self.first_bad.position)

    @property
    def branch(self) -> str:
        return self.first_bad.branch


@dataclass(frozen=True, slots=True)
class LimitLink:
    """A regression that tells of a crossed limit, by the limit's row. `has_changes`: of steps, too."""

    limit: int
    regression: int
    has_changes: bool = False


@dataclass(frozen=True, slots=True)
class EpisodeCommits:
    """The commits of a limit's episode: the one before it, the first that crosses the limit, the first that
    keeps it again, and the first without the series, which isn't measured any more."""

    first: Commit
    before: Commit | None = None
    kept: Commit | None = None
    gone: Commit | None = None


@dataclass(frozen=True, slots=True)
class LimitEpisode:
    """Commits of a line over a limit of their manifest: from `commit` on, `kept` is the first that keeps it.

    `bound` is the limit, `value` what was measured, `limit` the row that it is named by. `before` is the
    commit before, with its value. `links` are the regressions that tell of it so far, in the order of the
    commits by which they do. `gone`: the first commit without the series, which isn't measured any more.
    """

    limit: int
    series: Series
    commit: Commit
    value: float
    bound: float
    before: Commit | None = None
    value_before: float | None = None
    kept: Commit | None = None
    links: tuple[LimitLink, ...] = ()
    gone: Commit | None = None

    @property
    def commits(self) -> EpisodeCommits:
        return EpisodeCommits(self.commit, self.before, self.kept, self.gone)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that was touched, read once. `changes` are of one branch, for the worse and for the better.

    `regressions` are those of the branch whose ranges the changes reach, and those of other branches that
    hold some of them. `focus` are the keys of those that are decided on whatever the changes say: a verdict
    came in, a run that they waited for has ended. `altered` are the changes that are new, moved or of a new
    size since the last decision. `live`: what opens now is news, so it is proved and reported.
    """

    branch: str
    changes: tuple[Change, ...] = ()
    regressions: tuple[Regression, ...] = ()
    verdicts: tuple[ExperimentVerdict, ...] = ()
    limit_episodes: tuple[LimitEpisode, ...] = ()
    # Regressions that tell of a limit which is no longer crossed at their commit.
    limits_kept: tuple[LimitLink, ...] = ()
    focus: frozenset[int] = frozenset()
    altered: frozenset[int] = frozenset()
    live: bool = True
    # Explain all of them anew, since the rules may be others now.
    whole_branch: bool = False
    # Configurations that checks of pull requests have measured.
    checked: frozenset[int] = frozenset()
    # Of these the cause class is decided again: a sentinel was measured.
    reconsidered: frozenset[int] = frozenset()
