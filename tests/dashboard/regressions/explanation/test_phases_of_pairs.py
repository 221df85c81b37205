"""What interleaved pairs say of the phases is believed over the runs of both levels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django.plugin import DjangoDbBlocker

from dashboard.models import Regression
from dashboard.regressions import advance_proof
from tests.dashboard import factories
from tests.dashboard.regressions.explanation.test_explain import TIMES, judge_history
from tests.dashboard.shared_rows import share_rows

LEARN = {"learn": (0.005, 0.009)}


@pytest.fixture(scope="module")
def judged_history(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    """The key of what each test's `regression` is read from."""
    with share_rows(django_db_blocker, lambda: judge_slower_replay().pk) as made:
        yield made


def judge_slower_replay() -> Regression:
    project = factories.create_project()
    line = factories.create_commits(project, 9)
    return judge_history(
        line, factories.create_case(project), "step_time", (0.010, 0.014), phase_self_time=TIMES
    )


@pytest.fixture
def regression(judged_history: int, db: None) -> Regression:
    """The runs show `replay/sample` four milliseconds slower."""
    return Regression.objects.get(pk=judged_history)


def end_proof(regression: Regression, verdict: str, *pairs: Any) -> Regression:
    """The regression once its proof has ended with these pairs."""
    row = factories.end_experiment(regression.experiments.get(), verdict, ratio=1.4)
    factories.add_pairs(row, *pairs)
    advance_proof(regression.pk)
    return Regression.objects.get()


def test_pairs_explain_a_proved_step_whatever_the_runs_show(regression: Regression) -> None:
    assert regression.phase == "replay/sample"
    found = end_proof(regression, "confirmed", *[{"replay/sample": (0.001, 0.001), **LEARN}] * 4)
    assert (found.state, found.phase, found.phase_share) == ("confirmed", "learn", pytest.approx(1.0))


@pytest.mark.parametrize(
    ("verdict", "pairs"),
    [
        ("confirmed", ()),
        ("confirmed", (None,)),
        ("confirmed", (LEARN, {})),  # measured before phases were kept
        ("refuted", (LEARN,)),
    ],
)
def test_runs_explain_where_no_pairs_do(regression: Regression, verdict: str, pairs: tuple[Any, ...]) -> None:
    assert end_proof(regression, verdict, *pairs).phase == "replay/sample"
