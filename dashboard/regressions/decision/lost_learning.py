"""What a loss of quality says beside its size: how the guard stands, over how many seeds, and at what speed.

One story: a step that takes less time because it learns less is no gain, and one that takes more is no second
regression. The pairs that proved the loss measured both.
"""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.regressions.decision.facts import Commit, Evidence, ExperimentVerdict, Regression
from dashboard.regressions.decision.primary_change import PrimaryChange
from dashboard.regressions.decision.proofs import verdict_on_size
from dashboard.regressions.decision.series_kinds import is_quality

CODE = "learning"


def learning_of(
    primary: PrimaryChange, verdicts: Sequence[ExperimentVerdict], bad: Commit, regression: Regression | None
) -> Evidence | None:
    """None where it isn't a quality that was lost. What no change shows any more stands as it was known."""
    change = primary.change
    if not is_quality(change.series):
        return None
    known = dict(regression.learning.values) if regression and regression.learning else {}
    sized = verdict_on_size(verdicts, change, bad)
    learned = sized.learning if sized else None
    return Evidence.of(
        CODE,
        state=change.guard_state or known.get("state", ""),
        bound=change.guard_bound if change.guard_state else known.get("bound"),
        seeds=learned.seeds if learned else 0,
        unreported=learned.unreported if learned else 0,
        step_time=learned.step_time if learned else None,
        **({"seed_ignored": True} if learned and learned.seed_ignored else {}),
    )
