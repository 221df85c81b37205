"""The phases that interleaved runs say a step is made of, and what is believed over the runs."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.models import Experiment, Project, Regression
from dashboard.regressions import explaining, paired
from tests.dashboard import factories
from tests.dashboard.regressions.test_blame import TIMES, judge_history


@pytest.fixture
def regression(project: Project) -> Regression:
    """The runs show `replay/sample` four milliseconds slower."""
    line = factories.create_commits(project, 9)
    found = judge_history(
        line, factories.create_case(project), "step_time", (0.010, 0.014), phase_self_time=TIMES
    )
    Regression.objects.update(state="confirmed")
    found.refresh_from_db()
    return found


def create_proof(regression: Regression, *pairs: Any, **fields: Any) -> Experiment:
    """Pairs are phases, or None for one that was disturbed."""
    sides = {"good": regression.last_good, "bad": regression.first_bad, "series": regression.series}
    step = {"before": regression.before, "after": regression.after, "ratio": 1.4}
    ended = {"purpose": "confirm", "state": "done", "verdict": "confirmed"}
    row = Experiment.objects.create(
        regression=regression, pool=regression.series.pool, **(sides | step | ended | fields)
    )
    for index, phases in enumerate(pairs):
        values = {"good": 0.010, "bad": 0.014, "disturbed": phases is None, "seconds": 5.0}
        told = {"act": (0.9, 0.1)} if phases is None else phases
        row.pairs.create(index=index, good_first=True, phases=told, **values)
    return row


def test_they_explain_a_proved_step_whatever_the_runs_show(project: Project, regression: Regression) -> None:
    assert regression.phase == "replay/sample"
    create_proof(regression, *[{"replay/sample": (0.001, 0.001), "learn": (0.005, 0.009)}] * 4)
    explaining.explain_proved(project, regression)
    assert (regression.phase, regression.phase_share) == ("learn", pytest.approx(1.0))


@pytest.mark.parametrize(
    ("pairs", "fields"),
    [
        ((), {}),
        ((None,), {}),
        (({"learn": (0.005, 0.009)}, {}), {}),  # measured before phases were kept
        (({"learn": (0.005, 0.009)},), {"verdict": "refuted"}),
    ],
)
def test_runs_explain_where_no_pairs_do(
    project: Project, regression: Regression, pairs: tuple[Any, ...], fields: dict[str, Any]
) -> None:
    create_proof(regression, *pairs, **fields)
    assert paired.phases_of(regression) is None
    explaining.explain_proved(project, regression)
    assert regression.phase == "replay/sample"


def test_pairs_of_another_commit_or_series_say_nothing_of_this_one(regression: Regression) -> None:
    learn = {"learn": (0.005, 0.009)}
    create_proof(regression, learn, bad=regression.last_good)
    assert paired.phases_of(regression) is None
    create_proof(regression, learn)
    regression.series.metric.kind = "memory"
    assert paired.phases_of(regression) is None
