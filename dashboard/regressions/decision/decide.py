"""`decide`: what each regression of a snapshot is to say, what is measured for it next, and who is notified.

Pure: no database, no clock, no repository. What it needs to know beside the snapshot it asks for; see
`requested_facts`. The changes are grouped anew each time, so that the same facts give the same regressions in
whatever order they came in.

In this order: changes become groups of one cause (`grouping`); a group goes on with a stored regression, or
opens one (`continuation`); with its primary change and range it is a draft (`primary_change`); each draft
that something touched has an outcome: its state, what is measured next (`next_step`), and whether it is
reported. Regressions without changes, crossed limits (`limit_outcomes`) and what is left of a step come
after them.
A missing fact raises `FactNotGathered`: the rest is decided all the same, so that one answer names all that
are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from dashboard.measured_kinds import is_exact_counter
from dashboard.models import Regression as Row
from dashboard.regressions.decision.bisection import INCONCLUSIVE
from dashboard.regressions.decision.cause_class import CauseClass, CauseFacts, decide_cause
from dashboard.regressions.decision.continuation import ContinuedGroup, continue_regressions, merge_groups
from dashboard.regressions.decision.facts import (
    Change,
    Commit,
    Evidence,
    ExperimentVerdict,
    Regression,
    Snapshot,
)
from dashboard.regressions.decision.gradual_changes import GRADUAL, has_grown_again, is_gradual_counter
from dashboard.regressions.decision.grouping import Group, group_changes, verdicts_by_regression
from dashboard.regressions.decision.limit_outcomes import with_limits
from dashboard.regressions.decision.lost_learning import learning_of
from dashboard.regressions.decision.next_step import (
    NOT_PROVED,
    end_repeated_bisection,
    plan_next_step,
    residual_beside,
)
from dashboard.regressions.decision.outcomes import (
    BranchCause,
    DecidedRow,
    Decision,
    Outcome,
    as_decided,
    opens_at,
    row_as_stored,
)
from dashboard.regressions.decision.primary_change import (
    PrimaryChange,
    Size,
    bounding_commits,
    choose_primary,
    foremost_change,
    least_worse,
    measured_size,
    times_worse,
)
from dashboard.regressions.decision.proofs import (
    Purpose,
    State,
    Verdict,
    is_between_levels,
    newest_first,
    unmeasured_proofs,
    verdict_on_size,
    verdicts_on_step,
    with_steps_between,
)
from dashboard.regressions.decision.ranges import Range
from dashboard.regressions.decision.repair import LEAST_SHARE, find_repair
from dashboard.regressions.decision.repeated_pairs import answered_often_evidence, without_repeated
from dashboard.regressions.decision.requested_facts import (
    CauseOnOtherBranch,
    DifferencesAtStep,
    Explanation,
    FactNotGathered,
    GatheredFacts,
    MergedChecks,
    PointsJudgedSince,
    RegressionsBetween,
    Request,
    StepExplanation,
)
from dashboard.regressions.decision.reused_proofs import (
    merged_checks,
    with_proof_on_branch,
    with_refutation_for_another,
)
from dashboard.regressions.decision.series_kinds import BETTER, is_same_measurement
from dashboard.regressions.decision.wanted_measurements import (
    NextStep,
    Placement,
    ProofContext,
    ResidualCause,
    WantedExperiment,
    says_answered_often,
)

# Classes of what moved around the commits, proved by nothing but where it lies.
ENVIRONMENT_CAUSES = (Row.Cause.SYSTEM, Row.Cause.DEPENDENCY)
# A proof that couldn't be measured is asked for again once so many points more show the step: what stood in
# its way may be over. A commit that never runs is tried so often again.
POINTS_BEFORE_PROVED_AGAIN = 5
MOST_PROVED_AGAIN = 2
# What pairs refuted at its place, alone and with a commit more on both sides, is looked for between its
# levels when it stands so many points later: what comes little by little isn't at any place.
REFUTED_AT_ITS_PLACE = 2
POINTS_BEFORE_BETWEEN_LEVELS = 8

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def decide(snapshot: Snapshot, facts: GatheredFacts | None = None) -> Decision:
    """The decision on a snapshot; where facts are missing it names them alone, all that it can at once."""
    return _Decider(snapshot, facts or GatheredFacts()).decide()


@dataclass(frozen=True, slots=True)
class _Draft:
    """A group with its regression, its primary change, and the commits between which its cause lies."""

    continued: ContinuedGroup
    primary: PrimaryChange
    verdicts: Sequence[ExperimentVerdict]
    good: Commit
    bad: Commit

    @property
    def regression(self) -> Regression | None:
        return self.continued.regression

    @property
    def members(self) -> Sequence[Change]:
        return self.continued.group.members

    @property
    def range(self) -> Range:
        return Range(self.good.position, self.bad.position)

    @property
    def is_gradual(self) -> bool:
        return self.primary.change.gradual

    @property
    def place(self) -> tuple[int, bool]:
        """The commit at which it is reported, and whether it has come over the commits before that."""
        return self.bad.pk, self.is_gradual

    @property
    def opens(self) -> bool:
        """True for a new regression, and for one that had been withdrawn."""
        return self.regression is None or self.regression.withdrawn

    @property
    def is_environment_only(self) -> bool:
        return bool(self.members) and all(change.environment_only for change in self.members)


class _Decider:
    """One decision, its methods in the order in which they are called.

    `home` are the regressions of the snapshot's branch, `foreign` those of others, whose step may have come
    here by a merge. `off_branch` have lost their commits: they are withdrawn, and take no part in the rest.
    `placed_apart` are experiments whose verdict tells of another commit than their regression's.
    """

    def __init__(self, snapshot: Snapshot, facts: GatheredFacts) -> None:
        self.off_branch = [row for row in snapshot.regressions if row.first_bad.off_branch]
        kept = without_regressions(snapshot, {row.pk for row in self.off_branch})
        self.snapshot = snapshot = replace(kept, verdicts=with_steps_between(kept.verdicts, kept.changes))
        self.facts = facts
        self.missing: set[Request[object]] = set()
        self.placed_apart: set[int] = set()
        self.verdicts = verdicts_by_regression(snapshot.verdicts)
        self.home = [
            regression for regression in snapshot.regressions if regression.branch == snapshot.branch
        ]
        self.foreign = {
            regression.pk: regression
            for regression in snapshot.regressions
            if regression.branch != snapshot.branch
            and not regression.withdrawn
            and regression.state != State.REFUTED
        }

    def decide(self) -> Decision:
        own: list[Group] = []
        branch_causes: list[BranchCause] = []
        groups = group_changes(self.snapshot)
        # A regression that turned out to be two: what is proved at another commit isn't said of it any more.
        self.placed_apart = {
            verdict.experiment for group in groups if not group.owners for verdict in group.verdicts
        }
        for group, cause in self._answered(self._with_branch_cause, groups):
            if cause is None:
                own.append(group)
            else:
                branch_causes.append(cause)
        drafts = self._drafts(continue_regressions(own, self.snapshot))
        affected = [draft for draft in drafts if self._is_affected(draft)]
        outcomes = self._answered(self._outcome, affected)
        outcomes += self._answered(self._outcome_without_changes, self._left_alone(drafts))
        outcomes, released_limits = with_limits(outcomes, self.snapshot, self.home)
        outcomes += self._withdrawn_off_branch()
        candidates = [(outcome.key, outcome.next_step.residual) for outcome in outcomes]
        candidates += self._answered(lambda draft: self._second_residual(draft, outcomes), drafts)
        residuals = self._answered(lambda candidate: self._open_residual(*candidate, outcomes), candidates)
        if self.missing:
            return Decision(missing=frozenset(self.missing))
        return Decision(
            outcomes=tuple(outcomes),
            branch_causes=tuple(branch_causes),
            released=self._released(drafts, branch_causes),
            # Of one commit one: the first.
            residuals=tuple(
                {residual.bad.pk: residual for residual in reversed(residuals) if residual}.values()
            ),
            released_limits=released_limits,
        )

    def _answered(self, ask: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """The answers of those that lack no facts; what the others lack is noted."""
        answers = []
        for item in items:
            try:
                answers.append(ask(item))
            except FactNotGathered as missing:
                self.missing.add(missing.request)
        return answers

    # Branches

    def _with_branch_cause(self, group: Group) -> tuple[Group, BranchCause | None]:
        """A group whose cause came with a merge stays with the regression of the branch where it was made."""
        holders = {change.regression_id for change in group.members}
        at_home = group.owners or holders & {
            regression.pk for regression in self.home if not regression.withdrawn
        }
        if at_home or not group.members or group.is_gradual:
            return group, None
        keys = tuple(change.pk for change in group.changes if change.pk)
        stored = min((holder for holder in holders if holder in self.foreign), default=None)
        if stored is not None:
            repair = self._repair_here(self.foreign[stored], group)
            return group, BranchCause(stored, keys, repair, repair_known=True)
        key_found = self.facts.answer_to(CauseOnOtherBranch(foremost_change(group.members)))
        return group, BranchCause(key_found, keys) if key_found else None

    def _repair_here(self, regression: Regression, group: Group) -> int | None:
        """What has to be repaired once a branch was merged: the step that it made here."""
        same = [change for change in group.members if change.series.pk == regression.series.pk]
        return find_repair(same[0], self.snapshot.changes, self.facts) if same else None

    # Drafts

    def _drafts(self, continued: Sequence[ContinuedGroup]) -> list[_Draft]:
        """What the groups say, those that turned out to be of one commit as one; a gradual one is of many."""
        by_commit: dict[tuple[int, bool], _Draft] = {}
        waiting = list(continued)
        while waiting:
            current = waiting.pop(0)
            draft = self._draft(current)
            if draft is None:
                continue
            other = by_commit.pop(draft.place, None)
            if other:
                waiting.insert(0, merge_groups(other.continued, current, draft.bad))
            else:
                by_commit[draft.place] = draft
        taken = {row.pk for draft in by_commit.values() for row in self._rows_of(draft.continued)}
        for regression in self.home:
            if is_gradual_counter(regression):
                continue  # What lies at its last commit is another cause.
            beside = by_commit.get((regression.first_bad.pk, False))
            if beside and regression.pk not in taken and not regression.withdrawn:
                alone = ContinuedGroup(Group(), regression)
                draft = self._draft(merge_groups(alone, beside.continued, beside.bad))
                if draft:
                    by_commit[draft.place] = draft
        return list(by_commit.values())

    def _rows_of(self, continued: ContinuedGroup) -> list[Regression]:
        return [regression for regression in (continued.regression, *continued.absorbed) if regression]

    def _draft(self, continued: ContinuedGroup) -> _Draft | None:
        """None where nothing tells of it any more: neither a change nor pairs that have confirmed it."""
        known = [verdict for row in self._rows_of(continued) for verdict in self.verdicts.get(row.pk, ())]
        apart = [verdict for verdict in continued.group.verdicts if verdict.experiment in self.placed_apart]
        verdicts = newest_first(
            [*apart, *(verdict for verdict in known if verdict.experiment not in self.placed_apart)]
        )
        primary = choose_primary(continued.group.members, verdicts, continued.regression)
        if primary is None:
            return None
        return _Draft(continued, primary, verdicts, *bounding_commits(primary))

    def _is_affected(self, draft: _Draft) -> bool:
        """True where its changes or verdicts are others than before, or somebody asks."""
        regression, snapshot = draft.regression, self.snapshot
        if snapshot.whole_branch or draft.opens or regression is None or draft.continued.absorbed:
            return True
        if regression.pk in snapshot.focus or regression.pk in snapshot.reconsidered:
            return True
        changes = draft.continued.group.changes
        if any(change.regression_id != regression.pk or change.pk in snapshot.altered for change in changes):
            return True
        if self._lost_changes(regression, changes):
            return True
        # An improvement of its series may have repaired it.
        series = draft.primary.change.series.pk
        return any(
            change.pk in snapshot.altered and change.direction == BETTER and change.series.pk == series
            for change in snapshot.changes
        )

    def _lost_changes(self, regression: Regression, kept: Sequence[Change] = ()) -> bool:
        """True where its row still holds a change that isn't among those kept."""
        keys = {change.pk for change in kept}
        return any(
            change.regression_id == regression.pk and change.pk not in keys
            for change in self.snapshot.changes
        )

    # Outcomes

    def _outcome(self, draft: _Draft) -> Outcome:
        """What becomes of a draft: what its row says, what is measured next, and whether it is reported."""
        regression, primary = draft.regression, draft.primary
        size = measured_size(primary.change, draft.verdicts, draft.bad)
        resized = bool(regression and not draft.opens and regression.ratio != size.ratio)
        proving = self._is_proving(draft, resized)
        triaged_away = regression is not None and regression.triaged_away
        asked_for = regression is not None and bool(regression.active)
        intended = self._intended(draft, size) if proving or draft.opens else None
        step = self._next_step(draft, proving=proving, expected=intended is not None)
        ended = step.ended
        # Where nothing is asked, since it was triaged away or is no news, it stays as it had ended.
        answered_often = step.ended_answered_often or (step.waiting and self._stays_ended(draft))
        goes_on = proving and not ended and not answered_often
        decided = self._decided_row(draft, size, step, answered_often=answered_often, proving=goes_on)
        grown = resized and self.snapshot.live and not draft.is_environment_only
        return Outcome(
            key=regression.pk if regression else None,
            decided=decided,
            changes=tuple(change.pk for change in draft.continued.group.changes if change.pk),
            absorbed=tuple(absorbed.pk for absorbed in draft.continued.absorbed),
            experiments=tuple(
                verdict.experiment for verdict in draft.verdicts if verdict.experiment in self.placed_apart
            ),
            next_step=step,
            opened=draft.opens,
            resized=grown,
            ratio_before=regression.ratio if regression else None,
            announce_again=grown and has_grown_again(regression, primary.change),
            announce=ended and intended is None,
            stop=asked_for and (triaged_away or intended is not None or not proving),
            release_branches=primary.state == State.REFUTED,
            # With what was proved on the branch it is decided once more.
            intended_by_check=None if step.proof else intended,
        )

    def _is_proving(self, draft: _Draft, resized: bool) -> bool:
        """Whether it is to be proved, or goes on being proved; what opens in an old history isn't.

        What pairs have shown and lies elsewhere now had opened before: it is asked again in any case.
        """
        regression, state = draft.regression, draft.primary.state
        going_on = any(row.proving for row in self._rows_of(draft.continued))
        if not draft.primary.change.series.measured_here:
            # What another tool measured can't be measured again.
            return False
        if not self.snapshot.live:
            return going_on or self._left_its_pairs(draft)
        if regression is not None and not regression.series.measured_here:
            # It was imported; now that it is seen here as well, it is news.
            return not draft.is_environment_only
        # Where only the environment changed no commit is blamed, so there is nothing to prove.
        if draft.opens:
            return going_on or not draft.is_environment_only
        if going_on or regression is None or draft.is_environment_only:
            return going_on
        if state == State.CONFIRMED:
            # Its proof was of a smaller step than what has joined it.
            return draft.primary.larger_unproved is not None
        if state in NOT_PROVED:
            return self._is_proved_again(draft)
        # What a counter alone had confirmed is suspected again once a time joins it, and proved then; what no
        # commit was blamed for, once a blamed change joins it.
        joined = regression.cause in ENVIRONMENT_CAUSES and not draft.verdicts
        moved = regression.state != State.SUSPECTED or self._left_its_pairs(draft)
        return state == State.SUSPECTED and (resized or joined or moved)

    def _left_its_pairs(self, draft: _Draft) -> bool:
        """True for a step of which pairs were asked, none of them where it lies now."""
        regression, primary = draft.regression, draft.primary
        if regression is None or draft.opens or draft.is_environment_only or primary.state != State.SUSPECTED:
            return False
        if regression.triaged_away or regression.recovered_by or says_answered_often(regression.bisection):
            return False
        step_verdicts = verdicts_on_step(draft.verdicts, primary.change.series)
        if not any(row.verdict in (Verdict.REFUTED, *INCONCLUSIVE) for row in step_verdicts):
            return False
        # Its row may not say yet what the same judgement sees repaired.
        return regression.merged or self._repair(draft, None) is None

    def _is_proved_again(self, draft: _Draft) -> bool:
        """Whether a proof is due again, since its step still stands points later: one that couldn't be
        measured, or a second one that refuted it."""
        proof, regression, series = draft.primary.proof, draft.regression, draft.primary.change.series
        if proof is None or regression is None or regression.triaged_away or regression.recovered_by:
            return False
        if draft.primary.state == State.REFUTED:
            proofs = verdicts_on_step(draft.verdicts, series)
            seen = draft.primary.change.range
            at_place = [row for row in proofs if row.verdict == Verdict.REFUTED and row.range.holds(seen)]
            wide = [row for row in proofs if is_between_levels(proofs, row)]
            lost = unmeasured_proofs(wide, series)
            due = len(at_place) >= REFUTED_AT_ITS_PLACE and wide == lost and len(lost) <= MOST_PROVED_AGAIN
            tried, enough = [*lost, *at_place], POINTS_BEFORE_BETWEEN_LEVELS
        else:
            tried = unmeasured_proofs(draft.verdicts, series)
            due = proof.verdict in tried and len(tried) <= MOST_PROVED_AGAIN
            enough = POINTS_BEFORE_PROVED_AGAIN
        if not due:
            return False
        judged = self.facts.answer_to(PointsJudgedSince(series, draft.bad, tried[0].experiment, enough))
        return judged >= enough

    def _intended(self, draft: _Draft, size: Size) -> int | None:
        """The check whose slowdown somebody called intended, where the step is that one, at its merge.

        While other commits are left beside it, one of them may be the cause.
        """
        change, regression = draft.primary.change, draft.regression
        if draft.primary.state in NOT_PROVED or (regression and regression.triaged_away):
            return None
        key = regression.pk if regression else None
        merge = MergedChecks(
            change.series, draft.bad, change.before, change.after, key, change.phases_with_step
        )
        found = merged_checks(merge, self.snapshot.checked, self.facts)
        for merged in found:
            alone = draft.good.position >= merged.before.position
            if alone and merged.intended_up_to is not None:
                return merged.check if least_worse(change.series, size) <= merged.intended_up_to else None
        return None

    # What is measured next

    def _next_step(self, draft: _Draft, *, proving: bool, expected: bool) -> NextStep:
        """What is measured next; nothing for what somebody expects, though a proof is reused."""
        regression = draft.regression
        if expected and draft.primary.state != State.SUSPECTED:
            return NextStep()
        if not proving or (regression and (regression.triaged_away or regression.active)):
            return NextStep(waiting=True)
        if draft.is_gradual:
            return NextStep()  # Its counter knows all of its steps.
        context = self._proof_context(draft)
        step = end_repeated_bisection(context, plan_next_step(context))
        step = with_proof_on_branch(context, step, self.snapshot.checked)
        step = without_repeated(step, draft.primary.state, draft.range.width, self.facts)
        if expected and not step.proof:
            return NextStep(waiting=True)
        return with_refutation_for_another(context, step)

    def _proof_context(self, draft: _Draft) -> ProofContext:
        regression = draft.regression
        return ProofContext(
            key=regression.pk if regression else None,
            good=draft.good,
            bad=draft.bad,
            primary=draft.primary,
            changes=draft.continued.group.changes,
            verdicts=draft.verdicts,
            other_steps=self._other_steps(draft),
            proved_again=draft.primary.state in NOT_PROVED and self._is_proved_again(draft),
            nearby=self.snapshot.verdicts,
            facts=self.facts,
        )

    def _other_steps(self, draft: _Draft) -> tuple[int, ...]:
        """The positions at which the primary series of a draft steps, for another cause."""
        own = {change.pk for change in draft.continued.group.changes}
        return tuple(
            change.first_bad.position
            for change in self.snapshot.changes
            if change.pk not in own and is_same_measurement(change.series, draft.primary.change.series)
        )

    def _stays_ended(self, draft: _Draft) -> bool:
        """Whether the proof of the same suspicion has ended, since its pairs have answered often already.

        Its range may have moved: what isn't asked now is suspected there once it may be proved.
        """
        regression, primary = draft.regression, draft.primary
        if regression is None or regression.active or primary.state != State.SUSPECTED:
            return False
        same = regression.series.pk == primary.change.series.pk
        return same and regression.state == State.UNDECIDED and says_answered_often(regression.bisection)

    # What a row says

    def _decided_row(
        self, draft: _Draft, size: Size, step: NextStep, *, answered_often: bool, proving: bool
    ) -> DecidedRow:
        """`answered_often`: its proof has ended, since its pairs have answered often already."""
        regression, primary = draft.regression, draft.primary
        state = State.UNDECIDED if answered_often and primary.state == State.SUSPECTED else primary.state
        placement = step.placement
        if draft.is_gradual:
            steps = len(draft.continued.group.changes)
            placement = Placement(bisection=Evidence.of(GRADUAL, commits=draft.range.width, steps=steps))
        elif answered_often and placement is None:
            placement = Placement(bisection=answered_often_evidence(draft.range.width))
        placement = placement or self._known_placement(draft, state, proving=proving)
        culprit = placement.culprit
        difference = (draft.good.hash, draft.bad.hash)
        if culprit and culprit.parents:
            difference = (culprit.parents[0], culprit.hash)
        explained, explained_for = self._explanation(draft, difference, proving)
        merged = regression is not None and regression.merged
        decided = DecidedRow(
            last_good=draft.good,
            first_bad=draft.bad,
            series=primary.change.series,
            size=size,
            state=state,
            proving=proving,
            recovered_by=regression.recovered_by if merged and regression else self._repair(draft, explained),
            culprit=culprit,
            bisection=placement.bisection,
            explained=explained,
            explained_for=explained_for,
            learning=learning_of(primary, draft.verdicts, draft.bad, regression),
        )
        cause, decided_for = self._cause(draft, decided, difference)
        return replace(decided, cause=cause, decided_for=decided_for)

    def _known_placement(self, draft: _Draft, state: str, *, proving: bool) -> Placement:
        """Where its bisection has ended before, while it lies at the same commit."""
        regression = draft.regression
        if not regression or regression.first_bad.pk != draft.bad.pk or is_gradual_counter(regression):
            return Placement()
        # That pairs have answered often was said of its range and state.
        moved = regression.state != state or regression.range != draft.range
        outdated = says_answered_often(regression.bisection) and (proving or moved)
        return Placement(regression.culprit, None if outdated else regression.bisection)

    def _explanation(
        self, draft: _Draft, difference: tuple[str, str], proving: bool
    ) -> tuple[StepExplanation | None, str]:
        """A new explanation with what it was made for, where the one that is there is of something else.

        While a proved range is narrowed it stays as it is: the runs of the cause's own commits are to come.
        """
        regression, change = draft.regression, draft.primary.change
        known = regression.explained_for if regression else ""
        sized = verdict_on_size(draft.verdicts, change, draft.bad)
        experiment = sized.experiment if sized else None
        key = " ".join(
            str(part)
            for part in (
                Row.difference_key(draft.good.hash, draft.bad.hash),
                Row.difference_key(*difference),
                change.series.pk,
                change.first_bad.position,
                experiment or 0,
            )
        )
        narrowing = proving and draft.primary.state != State.SUSPECTED
        keeps_explanation = key == known or narrowing or draft.primary.state == State.REFUTED
        if known and keeps_explanation and not self.snapshot.whole_branch:
            return None, known
        request = Explanation(change, draft.good, draft.bad, difference, experiment)
        return self.facts.answer_to(request), key

    def _repair(self, draft: _Draft, explained: StepExplanation | None) -> int | None:
        """What took the step back where pairs have placed it, in the phase that explains it."""
        step, known = draft.primary.change, explained or draft.regression
        if draft.primary.proof and draft.primary.state == State.CONFIRMED:
            # Beside them detection may have seen noise, and in its runs another phase.
            step = replace(step, last_good=draft.good, first_bad=draft.bad)
        phase = known.phase if known and (known.phase_share or 0.0) >= LEAST_SHARE else ""
        return find_repair(step, self.snapshot.changes, self.facts, phase)

    def _cause(
        self, draft: _Draft, decided: DecidedRow, difference: tuple[str, str]
    ) -> tuple[CauseClass, str]:
        """The cause class with what it was decided for; as it is where nothing has changed."""
        regression, primary = draft.regression, draft.primary
        proof = next(
            iter(verdicts_on_step(draft.verdicts, primary.change.series)),
            next((row for row in draft.verdicts if row.purpose == Purpose.PROOF), None),
        )
        known = CauseClass(regression.cause, regression.cause_evidence) if regression else CauseClass()
        environment_alone = draft.is_environment_only and proof is None
        if not environment_alone:
            # Nothing is blamed for what may be noise, nor anew while a proved range is narrowed.
            if decided.state == State.SUSPECTED:
                return CauseClass(), ""
            if decided.state == State.CONFIRMED and decided.proving:
                kept = regression is not None and regression.state == State.CONFIRMED
                return (known, regression.decided_for) if kept and regression else (CauseClass(), "")
        proved_by = proof.experiment if proof else 0
        key = f"{decided.state} {proved_by} {environment_alone} {decided.explained_for}"
        reconsidered = regression is not None and regression.pk in self.snapshot.reconsidered
        asked = self.snapshot.whole_branch or reconsidered or decided.explained is not None
        if regression and regression.decided_for == key and not asked:
            return known, key
        return decide_cause(self._cause_facts(draft, decided, proof, difference)), key

    def _cause_facts(
        self, draft: _Draft, decided: DecidedRow, proof: ExperimentVerdict | None, difference: tuple[str, str]
    ) -> CauseFacts:
        regression = draft.regression
        request = DifferencesAtStep(
            decided.series,
            decided.last_good,
            decided.first_bad,
            difference,
            tuple(dict.fromkeys(marker for change in draft.members for marker in change.markers)),
        )
        if decided.explained:
            suspects = suspect_places(decided.explained)
        else:
            suspects = regression.suspects if regression else ()
        confounders, touched = self.facts.answer_to(request)
        return CauseFacts(
            state=decided.state,
            worse=times_worse(decided.series, decided.size),
            limit_alone=bool(regression and regression.has_limit) and not draft.members and proof is None,
            by_counter=bool(draft.members) and is_exact_counter(decided.series),
            environment_only=draft.is_environment_only,
            proof=proof,
            suspects=suspects,
            confounders=confounders,
            touched=touched,
        )

    # Regressions without changes

    def _left_alone(self, drafts: Sequence[_Draft]) -> list[Regression]:
        """Those whose changes are gone and that no pairs have confirmed."""
        taken = {row.pk for draft in drafts for row in self._rows_of(draft.continued)}
        return [
            regression
            for regression in self.home
            if regression.pk not in taken
            and not regression.withdrawn
            and (regression.pk in self.snapshot.focus or self._lost_changes(regression))
        ]

    def _outcome_without_changes(self, regression: Regression) -> Outcome:
        """It is withdrawn, unless a limit holds it, or a residual cause that waits for its first pairs."""
        active = bool(regression.active)
        if regression.has_limit:
            # The manifest's bound stands, as it did before a change joined it.
            decided = row_as_stored(regression, State.CONFIRMED, proving=False)
            return Outcome(regression.pk, decided, stop=active)
        pending = regression.residual and regression.proving and not self.verdicts.get(regression.pk)
        if not pending:
            return Outcome(regression.pk, None, stop=active, release_branches=True)
        step = NextStep(waiting=True)
        if not active and not regression.triaged_away:
            asked = WantedExperiment(
                Purpose.PROOF,
                regression.last_good,
                regression.first_bad,
                regression.series,
                regression.before,
                regression.after,
            )
            step = without_repeated(NextStep((asked,)), regression.state, regression.range.width, self.facts)
        if step.ended:
            return Outcome(regression.pk, None, release_branches=True)
        decided = row_as_stored(regression, regression.state, proving=True)
        return Outcome(regression.pk, decided, next_step=step, stop=active and regression.triaged_away)

    def _withdrawn_off_branch(self) -> list[Outcome]:
        """What was found at commits that are no longer on a branch is said of none."""
        return [
            Outcome(
                regression.pk,
                None,
                stop=bool(regression.active),
                release_branches=True,
                withdrawal=Row.Withdrawal.REWRITTEN,
            )
            for regression in self.off_branch
            if not regression.withdrawn
        ]

    # What is left over

    def _second_residual(
        self, draft: _Draft, outcomes: Sequence[Outcome]
    ) -> tuple[int | None, ResidualCause | None]:
        """What a step that was proved before leaves, once the rest that was looked for first is settled."""
        regression = draft.regression
        if regression is None or draft.opens or regression.triaged_away or regression.active:
            return None, None
        own = [outcome for outcome in outcomes if outcome.key == regression.pk]
        if any(outcome.next_step.residual or not outcome.decided for outcome in own):
            return None, None
        if any(row.proving for row in (*(outcome.decided for outcome in own), regression) if row):
            return None, None
        settled = [
            verdict
            for outcome in outcomes
            if outcome.key in self.snapshot.focus and (outcome.decided is None or outcome.next_step.ended)
            for verdict in self.verdicts.get(outcome.key or 0, ())
        ]
        return regression.pk, residual_beside(self._proof_context(draft), settled) if settled else None

    def _open_residual(
        self, key: int | None, residual: ResidualCause | None, outcomes: Sequence[Outcome]
    ) -> ResidualCause | None:
        """The rest of a regression's step, unless one of the same measurement is known there."""
        if residual is None:
            return None
        near = {row.pk: row for row in self.facts.answer_to(RegressionsBetween(residual.good, residual.bad))}
        near |= {row.pk: row for row in self.home if row.pk in {other.key for other in outcomes}}
        if any(opens_at(other, residual.bad) for other in outcomes):
            return None
        for regression in as_decided(near, outcomes):
            stands = not regression.withdrawn or regression.triaged_away
            if stands and regression.first_bad.pk == residual.bad.pk:
                return None
            inside = residual.range.holds(regression.range) and not regression.withdrawn
            if inside and regression.pk != key and is_same_measurement(regression.series, residual.series):
                return None
        return residual

    def _released(self, drafts: Sequence[_Draft], branch_causes: Sequence[BranchCause]) -> tuple[int, ...]:
        """The changes that a regression held and that belong to none any more."""
        kept = {change.pk for draft in drafts for change in draft.continued.group.changes}
        kept |= {key for cause in branch_causes for key in cause.changes}
        return tuple(
            change.pk
            for change in self.snapshot.changes
            if change.regression_id and change.pk and change.pk not in kept
        )


def without_regressions(snapshot: Snapshot, keys: Collection[int]) -> Snapshot:
    return replace(
        snapshot,
        regressions=tuple(row for row in snapshot.regressions if row.pk not in keys),
        verdicts=tuple(verdict for verdict in snapshot.verdicts if verdict.regression_id not in keys),
    )


def suspect_places(explained: StepExplanation) -> tuple[tuple[str, bool], ...]:
    return tuple(
        (f"{suspect['file']}:{suspect['function']}", bool(suspect.get("changed")))
        for suspect in explained.suspects
    )
