"""Pairs that have answered what a proof asks already: of a pull request's check, or of another regression."""

from __future__ import annotations

from collections.abc import Collection

from dashboard.regressions.decision.proofs import Purpose, Verdict
from dashboard.regressions.decision.repeated_pairs import times_answered
from dashboard.regressions.decision.requested_facts import (
    GatheredFacts,
    MergedCheck,
    MergedChecks,
    RefutedForAnother,
    ReusedProof,
)
from dashboard.regressions.decision.wanted_measurements import NextStep, ProofContext


def merged_checks(
    request: MergedChecks, checked: Collection[int], facts: GatheredFacts
) -> tuple[MergedCheck, ...]:
    """The checks whose heads a step's commits hold. `checked`: the configurations that any have measured."""
    return facts.answer_to(request) if request.series.configuration_id in checked else ()


def with_proof_on_branch(context: ProofContext, step: NextStep, checked: Collection[int]) -> NextStep:
    """A step that asks for a proof which a check has given on the branch already reuses that one.

    What was refuted between other commits is refuted for these alone; what was confirmed holds for any
    range around them.
    """
    known = answered_questions(context)
    for wanted in step.experiments:
        if wanted.purpose != Purpose.PROOF:
            continue
        levels = (wanted.before, wanted.after)
        merge = MergedChecks(wanted.series, wanted.head, *levels, context.key, wanted.phases_with_step)
        for merged in merged_checks(merge, checked, context.facts):
            proof = merged.proof
            if proof is None or (proof.series.pk, proof.base.pk, proof.head.pk) in known:
                continue
            inside = wanted.base.position < proof.base.position and proof.verdict == Verdict.CONFIRMED
            if inside or proof.base.pk == wanted.base.pk:
                return answer_with(step, proof)
    return step


def with_refutation_for_another(context: ProofContext, step: NextStep) -> NextStep:
    """A proof of a step that pairs of its commits refute, measured for another regression, reuses these.

    What they would confirm is measured anew: the luck of no pairs confirms two regressions.
    """
    known = answered_questions(context)
    for wanted in step.experiments:
        series, base, head = wanted.series, wanted.base, wanted.head
        if wanted.purpose != Purpose.PROOF or series.phase or (series.pk, base.pk, head.pk) in known:
            continue
        if not times_answered(wanted, context.facts):
            continue
        levels = (wanted.before, wanted.after)
        request = RefutedForAnother(series, base, head, *levels, context.key, wanted.phases_with_step)
        proof = context.facts.answer_to(request)
        if proof:
            return answer_with(step, proof)
    return step


def answered_questions(context: ProofContext) -> set[tuple[int, int, int]]:
    """Series, base and head of the pairs that have measured it: a second look at them says nothing new."""
    return {(row.series.pk, row.base.pk, row.head.pk) for row in context.verdicts}


def answer_with(step: NextStep, proof: ReusedProof) -> NextStep:
    """The step with a proof in the place of all that it asks, and what it has found out beside that."""
    return NextStep(residual=step.residual, placement=step.placement, proof=proof)
