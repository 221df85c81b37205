"""The history that fills a site: what was planned is there, and its steps are where they were planned."""

from __future__ import annotations

import numpy as np
import pytest
from django.utils import timezone

from bench.history.filling import fill_site
from bench.history.plan import HistoryPlan, PlanError
from dashboard.models import Change, Point, Regression, Run, Series, SeriesLatest

SMALL = HistoryPlan(series=48, points=2_400, runs=200, regressions=8, projects=2, documents=4)


@pytest.mark.django_db
def test_a_history_has_the_sizes_and_the_steps_that_were_planned() -> None:
    fill_site(SMALL, timezone.now(), lambda _share, _text: None)
    assert (Series.objects.count(), Point.objects.count()) == (48, 2_400)
    assert Run.objects.filter(state=Run.State.DONE).count() == 200
    assert Regression.objects.count() == 8
    assert all(len(latest.recent_positions) == 30 for latest in SeriesLatest.objects.all())
    assert Run.objects.filter(tainted=True).exists()
    found = []
    for change in Change.objects.all():
        rows = Point.objects.filter(series=change.series, run__commit__branch="main", tainted=False)
        around = [rows.filter(position=change.position + shift).first() for shift in (-1, 0)]
        if all(around):
            found.append(abs(np.log(around[1].value / around[0].value / change.ratio)))  # type: ignore[union-attr]
    assert np.median(found) < 0.04


@pytest.mark.parametrize(
    ("sizes", "named"), [({"points": 10}, "points"), ({"runs": 100_000, "points": 9_000_000}, None)]
)
def test_sizes_that_do_not_fit_are_named(sizes: dict[str, int], named: str | None) -> None:
    if named is None:
        HistoryPlan(**sizes).check_sizes()
        return
    with pytest.raises(PlanError, match=named):
        HistoryPlan(**sizes).check_sizes()
