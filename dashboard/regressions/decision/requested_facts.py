"""Facts that a decision asks for only where it needs them: by a request, which names what is to be found out.

A decision that lacks some is made again once they have been gathered; see
`dashboard/regressions/gathering.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from dashboard.regressions.decision.cause_class import Confounders, Difference, TouchedFiles
from dashboard.regressions.decision.facts import Change, Commit, Regression, Series

Answer = TypeVar("Answer")


class Request(Generic[Answer]):
    """What is to be found out; `Answer` is what is said of it."""


class FactNotGathered(Exception):  # noqa: N818 - reads as a fact
    """A decision needs to know something that nobody has gathered yet."""

    def __init__(self, request: Request[Any]) -> None:
        super().__init__(str(request))
        self.request = request


@dataclass(slots=True)
class GatheredFacts:
    """What has been found out so far, by request."""

    answers: dict[Request[Any], Any] = field(default_factory=dict)

    def answer_to(self, request: Request[Answer]) -> Answer:
        """Raises FactNotGathered where nobody has asked it yet."""
        if request not in self.answers:
            raise FactNotGathered(request)
        return cast(Answer, self.answers[request])


@dataclass(frozen=True, slots=True)
class CommitsBetween(Request[tuple[str, ...]]):
    """Hashes of the first-parent commits strictly between two, oldest first; none where git can't tell."""

    good: Commit
    bad: Commit


@dataclass(frozen=True, slots=True)
class AsksForEnvironment(Request[bool]):
    """True where the commits after one up to another touch a file that says what is installed."""

    good: Commit
    bad: Commit


@dataclass(frozen=True, slots=True)
class CommitRow(Request[Commit]):
    """The commit of a hash, which becomes a row where it was never asked for."""

    hash: str


@dataclass(frozen=True, slots=True)
class MergedHistory:
    """The commits that a merge of two parents brought, oldest first, each with its parents.

    `base` is the merge base of both parents; None where their histories are unrelated. `same_files`: the
    merge holds the files of its branch's newest commit. `trouble`: why git can't tell.
    """

    brought: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    base: str | None = None
    same_files: bool = False
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class HistoryOfMerge(Request[MergedHistory]):
    merge: Commit


@dataclass(frozen=True, slots=True)
class MergeBase(Request[str | None]):
    """The newest commit that both hold, as a hash."""

    first: str
    second: str


@dataclass(frozen=True, slots=True)
class CommitRuns:
    """The runs of one configuration at a commit: how many, are some under way, and the newest exact value."""

    count: int = 0
    under_way: bool = False
    last_done: bool = False
    value: float | None = None


@dataclass(frozen=True, slots=True)
class RunsAtCommits(Request[Mapping[str, CommitRuns]]):
    """By hash, for the commits that the series' configuration was tried at; `value` is the series' there.

    `regression`: a run that it waited for and that was cancelled counts as tried.
    """

    series: Series
    hashes: tuple[str, ...]
    regression: int | None = None


@dataclass(frozen=True, slots=True)
class PointsAround:
    """Of a series, untainted: its values at two commits, and measured commits before and after them."""

    good_value: float | None = None
    bad_value: float | None = None
    earlier: Commit | None = None
    later: Commit | None = None


@dataclass(frozen=True, slots=True)
class PointsAroundRequest(Request[PointsAround]):
    """The points at two commits, and the commits `reach` measured ones before and after them."""

    series: Series
    good: Commit
    bad: Commit
    reach: int = 1


@dataclass(frozen=True, slots=True)
class PointsJudgedSince(Request[int]):
    """How many untainted points of a series after a commit were judged since an experiment has ended: `most`
    at most."""

    series: Series
    bad: Commit
    experiment: int
    most: int


@dataclass(frozen=True, slots=True)
class StepInPairs(Request[str]):
    """How much of a step an experiment's pairs show at its head: `whole`, `none`, `part`, or nothing sure.

    The step, from the level `before` to `after`, may be another one than was suspected when they were
    measured.
    """

    experiment: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class AskedProof:
    """A proof that was asked for a series between two commits, whatever became of it."""

    regression_id: int
    base: Commit
    head: Commit


@dataclass(frozen=True, slots=True)
class ProofsOfSeries(Request[tuple[AskedProof, ...]]):
    series: int


@dataclass(frozen=True, slots=True)
class TimesAnswered(Request[int]):
    """How often pairs of two commits have shown for a purpose what a series does there, whoever asked.

    Pairs that were reused for other regressions count once. `series`, `base` and `head` are keys.
    """

    series: int
    purpose: str
    base: int
    head: int


@dataclass(frozen=True, slots=True)
class RegressionsBetween(Request[tuple[Regression, ...]]):
    """The regressions whose first bad commits lie after one commit, up to another of its branch."""

    good: Commit
    bad: Commit


@dataclass(frozen=True, slots=True)
class ReusedProof:
    """What the pairs of another experiment say of a step between two commits, which hold what it measured.

    `check` is the one whose pairs they are; `regression`, without a check, the one that asked for them.
    """

    experiment: int
    series: Series
    base: Commit
    head: Commit
    verdict: str
    before: float
    after: float
    error: float
    phases_with_step: tuple[str, ...] = ()
    check: int | None = None
    regression: int | None = None


@dataclass(frozen=True, slots=True)
class RefutedForAnother(Request[ReusedProof | None]):
    """Another regression's newest pairs of two commits, where they refuted its step and refute this one too.

    None where they don't, were reused often, or are outdated. The step leads from one level to another one,
    or is that of some phases alone. `regression`: the one that asks.
    """

    series: Series
    base: Commit
    head: Commit
    before: float
    after: float
    regression: int | None = None
    phases_with_step: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergedCheck:
    """A check whose head the commits after `before` hold, up to the one that is asked about or a later one.

    `proof`: what its pairs say of the step; None where they don't tell, or were of other code.
    `intended_up_to`: how much worse, as the logarithm of a ratio, somebody has called intended.
    """

    check: int
    before: Commit
    proof: ReusedProof | None = None
    intended_up_to: float | None = None


@dataclass(frozen=True, slots=True)
class MergedChecks(Request[tuple[MergedCheck, ...]]):
    """Of a series' configuration, the checks of whose heads a commit is, the newest first.

    The step that is suspected there leads from one level to another one, or is that of some phases alone.
    `regression`: of one that somebody
    has reopened nothing is intended.
    """

    series: Series
    bad: Commit
    before: float
    after: float
    regression: int | None = None
    phases_with_step: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PhaseLeftOver(Request[float | None]):
    """The part of a step that an improvement left in the phase that explains it; None where none does.

    `phase`: the one that is known to explain it; empty where the points are to say which.
    """

    step: Change
    improvement: Change
    phase: str = ""


@dataclass(frozen=True, slots=True)
class CauseOnOtherBranch(Request[int | None]):
    """The open regression of another branch whose cause came with a change's commits, or the reverse."""

    change: Change


@dataclass(frozen=True, slots=True)
class StepExplanation:
    """What explains a step: phase with its share (0 to 1), host or device, suspects, operations, the device's
    kernels and idle time, lines of the diff.

    `only_changed_by`: of commits that can't be told apart the only one that changed the first suspect, a
    hash. `slow_processes`: ranks and workers that the others wait for.
    """

    phase: str = ""
    phase_share: float | None = None
    place: str = ""
    place_phase: str = ""
    suspects: tuple[Mapping[str, Any], ...] = ()
    operations: tuple[Mapping[str, Any], ...] = ()
    device: Mapping[str, Any] = field(default_factory=dict)
    excerpts: tuple[Mapping[str, Any], ...] = ()
    only_changed_by: str = ""
    slow_processes: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation(Request[StepExplanation]):
    """Of a primary change, whose cause lies between two commits; `difference` is what is read in the
    repository.

    `experiment` is the one whose pairs say how large the step is; None where none does.
    """

    change: Change
    good: Commit
    bad: Commit
    difference: tuple[str, str]
    experiment: int | None


@dataclass(frozen=True, slots=True)
class DifferencesAtStep(Request[tuple[Confounders, TouchedFiles]]):
    """What moved beside the code at a step, and what the commits of a difference touched."""

    series: Series
    good: Commit
    bad: Commit
    difference: tuple[str, str]
    # Those that were kept with the changes: of runs that history has replaced since.
    markers: tuple[Difference, ...] = ()
