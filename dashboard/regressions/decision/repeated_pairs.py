"""The end of a proof whose next pairs have answered so often that once more tells nothing new.

Two regressions of causes a few commits apart could hand a series to and fro, and measure for ever.
"""

from __future__ import annotations

from dataclasses import replace

from dashboard.models import Experiment
from dashboard.regressions.decision.facts import Evidence
from dashboard.regressions.decision.proofs import State
from dashboard.regressions.decision.requested_facts import GatheredFacts, TimesAnswered
from dashboard.regressions.decision.wanted_measurements import (
    ANSWERED_OFTEN,
    NextStep,
    Placement,
    WantedExperiment,
)

# The same two commits are measured for a series and a purpose until they have answered so often.
MOST_ANSWERS = 3


def without_repeated(step: NextStep, state: str, commits: int, facts: GatheredFacts) -> NextStep:
    """The step without the pairs that have answered often; where nothing is left it has ended, and says so.

    `commits`: how many its range holds, which the pairs were to tell apart or to prove. What isn't decided by
    these pairs, as another series of a proved cause, is only left out.
    """
    left = tuple(wanted for wanted in step.experiments if not have_answered_often(wanted, facts))
    repeated = [wanted for wanted in step.experiments if wanted not in left]
    if not repeated:
        return step
    step = replace(step, experiments=left)
    place = any(wanted.purpose != Experiment.Purpose.PROOF for wanted in repeated)
    if not step.ended or not (state == State.SUSPECTED or place):
        return step
    return replace(step, placement=Placement(bisection=answered_often_evidence(commits)))


def answered_often_evidence(commits: int) -> Evidence:
    return Evidence.of(ANSWERED_OFTEN, times=MOST_ANSWERS, commits=commits)


def have_answered_often(wanted: WantedExperiment, facts: GatheredFacts) -> bool:
    """Whether pairs of its commits would tell nothing new for its purpose."""
    return times_answered(wanted, facts) >= MOST_ANSWERS


def times_answered(wanted: WantedExperiment, facts: GatheredFacts) -> int:
    """How often pairs of its commits have answered for its purpose, whoever asked."""
    request = TimesAnswered(wanted.series.pk, wanted.purpose, wanted.base.pk, wanted.head.pk)
    return facts.answer_to(request)
