"""The budget of false alerts per 100 commits, kept over all series of a commit and over all commits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

# What an alert earned is spent over the commits after it: a tenth of what is left in each.
DECAY = 0.9
COMMITS = 100
# A refuted alert makes the p-values this many times less credible, until as many commits have passed as may
# hold one false alert.
DISTRUST = math.e


@dataclass(frozen=True, slots=True)
class Decision:
    """What one commit raised: the keys of its series, and the chance of a false alert that it was allowed."""

    raised: tuple[str, ...]
    risk: float


@dataclass(frozen=True, slots=True)
class FalseAlarmBudget:
    """What may be risked by the next commit. A value: each commit gives the budget of the one after it.

    Of `per_100_commits` false alerts each commit may risk a hundredth, whatever became of those before: a
    quiet year saves nothing up, and spends nothing. Each alert earns a `reward`, a part of a false one, spent
    over the commits that follow. An alert is a commit, however many of its series are in it. With valid
    p-values the expected number of false alerts in T commits with A alerts is at most

        per_100_commits * T / 100 + reward * A.

    P-values of real series aren't always valid. So alerts that were checked and refuted lower the `trust`
    in them, which recovers as fast as the budget allows: from where trust can't fall any further, because
    nothing is raised there, no more false alerts come in T commits than per_100_commits * T / 100.
    """

    per_100_commits: float = 1.0
    reward: float = 0.0
    earned: float = 0.0
    trust: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.per_100_commits <= COMMITS:
            raise ValueError(f"per_100_commits must be above 0 and at most 100, not {self.per_100_commits}")
        if not 0 <= self.reward < 1:
            raise ValueError(f"reward must be at least 0 and below 1, not {self.reward}")

    @property
    def per_commit(self) -> float:
        """The false alerts that one commit may cost."""
        return self.per_100_commits / COMMITS

    @property
    def risk(self) -> float:
        """The chance of a false alert that the next commit may take."""
        return min(1.0, self.trust * (self.per_commit + (1 - DECAY) * self.earned))

    def decide(self, p_values: Mapping[str, float]) -> tuple[Decision, FalseAlarmBudget]:
        """Which series of a commit raise an alert, by their p-values; and the budget of the next commit.

        Holm's procedure at this commit's risk: it holds under any dependence between the series, and once
        the strongest is raised it asks less of the next one. Series that can't tell (p = 1) take no part.
        Raises ValueError for a p-value outside [0, 1].
        """
        for key, p in p_values.items():
            if not 0 <= p <= 1:
                raise ValueError(f"the p-value of {key} must be between 0 and 1, not {p}")
        raised = reject_by_holm({key: p for key, p in p_values.items() if p < 1}, self.risk)
        earned = self.earned * DECAY + (self.reward if raised else 0.0)
        trust = min(1.0, self.trust * DISTRUST**self.per_commit)
        return Decision(raised, self.risk), replace(self, earned=earned, trust=trust)

    def after_refutation(self) -> FalseAlarmBudget:
        """The budget once an alert was found false, by an experiment or a person; once for each."""
        return replace(self, trust=self.trust / DISTRUST)


def reject_by_holm(p_values: Mapping[str, float], risk: float) -> tuple[str, ...]:
    """The keys whose null hypotheses Holm's procedure rejects at this joint risk, strongest first."""
    ordered = sorted(p_values, key=lambda key: (p_values[key], key))
    raised = []
    for rank, key in enumerate(ordered):
        if p_values[key] > risk / (len(ordered) - rank):
            break
        raised.append(key)
    return tuple(raised)
