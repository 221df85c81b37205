"""Into a merged branch: a range ends at a merge, and one of the commits that it brought may be to blame.

A commit of the branch is based on an older commit than the merge: it is measured against its own merge base
with the merge's first parent, so that what happened beside the branch isn't counted. The branch's newest
commit comes first: if it doesn't have the step, the merge itself is to blame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard.models import Experiment
from dashboard.regressions.decision import bisection
from dashboard.regressions.decision.facts import Change, Commit, Evidence
from dashboard.regressions.decision.proofs import Verdict, applies_to_series, newest_first
from dashboard.regressions.decision.requested_facts import (
    CommitRow,
    CommitRuns,
    CommitsBetween,
    HistoryOfMerge,
    MergeBase,
    MergedHistory,
    RunsAtCommits,
)
from dashboard.regressions.decision.wanted_measurements import (
    NextStep,
    Placement,
    ProofContext,
    measure_in_full,
)

Purpose = Experiment.Purpose

# Of a counter's step, as of a pair's: with less than the first part a commit has none, with more than the
# second all of it.
NEARLY_NONE, NEARLY_ALL = 0.25, 0.75
MOST_NAMED = 5


def look_into_merge(context: ProofContext, skipped: Mapping[str, str], counter: Change | None) -> NextStep:
    """Go on inside the merge that a range ends at.

    `skipped` are the commits that can't tell, with their verdicts; `counter` is the exact counter that
    tells, if one does. What the commits alone don't say is returned with the step.
    """
    good, bad = context.good, context.bad
    single = good.hash in bad.parents[:1] or context.range.width == 1
    if not single:
        return placed_at(None, range_left(context, skipped))
    if len(bad.parents) < 2:
        return placed_at(None, None)
    if len(bad.parents) > 2:
        return placed_at(None, Evidence.of("octopus", merge=bad.hash, branches=len(bad.parents) - 1))
    history = context.facts.answer_to(HistoryOfMerge(bad))
    if history.trouble:
        return placed_at(None, Evidence.of("unreadable merge", merge=bad.hash, trouble=history.trouble))
    return MergedBranch(context, counter, history, *bad.parents).next_step()


def placed_at(culprit: Commit | None, bisection_found: Evidence | None) -> NextStep:
    return NextStep(placement=Placement(culprit, bisection_found))


@dataclass(frozen=True, slots=True)
class MergedBranch:
    """A merge by its parents: the branch that it was merged into, and the tip of the other."""

    context: ProofContext
    counter: Change | None
    history: MergedHistory
    main: str
    tip: str

    def next_step(self) -> NextStep:
        """Measure what tells most; at the end, what is known."""
        merge, brought = self.context.bad.hash, self.history.brought
        if self.history.base is None:
            return placed_at(None, Evidence.of("unrelated merge", merge=merge))
        if not brought:
            return placed_at(None, Evidence.of("empty merge", merge=merge))
        if self.counter is not None and (waiting := self.waits_for_runs()):
            return waiting
        verdicts = self.verdicts()
        if self.tip not in verdicts and self.history.base == self.main and self.history.same_files:
            verdicts[self.tip] = Verdict.WHOLE  # The same files against the same commit: it was measured.
        proof = self.context.primary.proof
        if self.tip not in verdicts and proof is not None and proof.verdict.measured_head == self.tip:
            verdicts[self.tip] = Verdict.WHOLE  # What proved the step was measured at the tip itself.
        if self.tip not in verdicts:
            return self.ask_for(self.tip)
        at_tip = verdicts[self.tip]
        if at_tip == Verdict.NONE:
            return placed_at(
                None, Evidence.of("merge itself", merge=merge, tip=self.tip, base=self.history.base)
            )
        if at_tip in bisection.INCONCLUSIVE:
            values = {"tip": self.tip, "base": self.history.base, "verdict": str(at_tip)}
            return placed_at(None, Evidence.of("branch can't tell", merge=merge, **values))
        left = bisection.narrow_branch(brought, verdicts)
        if left.middle is not None:
            return self.ask_for(left.middle)
        return self.name_suspects(left.suspects, verdicts)

    def name_suspects(self, suspects: Sequence[str], verdicts: Mapping[str, str]) -> NextStep:
        """The end: the one commit of the branch that is to blame, or those that nothing tells apart."""
        values = {"merge": self.context.bad.hash, "brought": len(self.history.brought)}
        if len(suspects) > 1:
            suspect_verdicts = [verdicts.get(sha, "") for sha in suspects]
            return placed_at(
                None,
                Evidence.of(
                    "one of branch",
                    suspects=tuple(suspects[:MOST_NAMED]),
                    count=len(suspects),
                    **values,
                    **count_inconclusive(suspect_verdicts),
                ),
            )
        (sha,) = suspects
        part = ""
        if verdicts[self.tip] == Verdict.PART:
            part = "merge has the rest"
        elif verdicts[sha] == Verdict.PART:
            part = "branch has the rest"
        culprit = self.context.facts.answer_to(CommitRow(sha))
        return placed_at(culprit, Evidence.of("came by merge", commit=sha, part=part, **values))

    def base_of(self, sha: str) -> str:
        """What a commit of the branch is measured against."""
        return self.context.facts.answer_to(MergeBase(self.main, sha)) or self.main

    def verdicts(self) -> dict[str, str]:
        if self.counter is not None:
            return self.verdicts_by_counter(self.counter)
        series = self.context.primary.change.series
        done = [
            verdict
            for verdict in newest_first(self.context.verdicts)[::-1]
            if verdict.purpose == Purpose.MERGE and verdict.head.hash in self.history.brought
        ]
        return {verdict.head.hash: verdict.verdict for verdict in done if applies_to_series(verdict, series)}

    def ask_for(self, sha: str) -> NextStep:
        """Measure a commit of the branch, and its base where a counter tells."""
        facts = self.context.facts
        commit, base = facts.answer_to(CommitRow(sha)), facts.answer_to(CommitRow(self.base_of(sha)))
        if self.counter is None:
            return NextStep((self.context.experiment(Purpose.MERGE, base, commit),))
        step = measure_in_full(self.context, [base, commit])
        merge = self.context.bad.hash
        return placed_at(None, Evidence.of("branch can't be measured", merge=merge)) if step.ended else step

    def counted(self) -> Mapping[str, CommitRuns]:
        """The counter at the commits of the branch that were tried, and at the bases of these."""
        assert self.counter is not None  # noqa: S101 - for the type checker
        facts, key = self.context.facts, self.context.key
        brought = tuple(self.history.brought)
        tried = facts.answer_to(RunsAtCommits(self.counter.series, brought, key))
        bases = tuple(dict.fromkeys(self.base_of(sha) for sha in tried))
        of_bases: Mapping[str, CommitRuns] = (
            facts.answer_to(RunsAtCommits(self.counter.series, bases, key)) if bases else {}
        )
        return {**of_bases, **tried}

    def waits_for_runs(self) -> NextStep | None:
        under_way = any(run.under_way for run in self.counted().values())
        return NextStep(waiting=True) if under_way else None

    def verdicts_by_counter(self, counter: Change) -> dict[str, str]:
        """What the counter says of the commits that were measured, each against its base."""
        runs = self.counted()
        measured = [sha for sha in self.history.brought if sha in runs and self.base_of(sha) in runs]
        return {sha: verdict_by_counter(counter, runs[sha], runs[self.base_of(sha)]) for sha in measured}


def verdict_by_counter(counter: Change, there: CommitRuns, base: CommitRuns) -> str:
    """The verdict of an exact counter on a commit against its base."""
    if there.value is None or base.value is None or counter.after == counter.before:
        return Verdict.UNTESTABLE
    share = (there.value - base.value) / (counter.after - counter.before)
    if share >= NEARLY_ALL:
        return Verdict.WHOLE
    return Verdict.NONE if share <= NEARLY_NONE else Verdict.PART


def range_left(context: ProofContext, skipped: Mapping[str, str]) -> Evidence:
    """Several commits are left, of which none can be distinguished from the others."""
    inside = context.facts.answer_to(CommitsBetween(context.good, context.bad))
    skipped_verdicts = [skipped[sha] for sha in inside if sha in skipped]
    return Evidence.of("range", commits=context.range.width, **count_inconclusive(skipped_verdicts))


def count_inconclusive(verdicts: Sequence[str]) -> dict[str, int]:
    """Why no more is known: how many don't run, and how many can't be told apart."""
    return {
        "untestable": sum(verdict == Verdict.UNTESTABLE for verdict in verdicts),
        "undecided": sum(verdict == Verdict.UNDECIDED for verdict in verdicts),
    }
