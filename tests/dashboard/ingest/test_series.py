from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dashboard.ingest import BadDocument
from dashboard.models import Metric, Run, Series, SeriesLatest
from tests.dashboard.documents import document_body, metric_row

pytestmark = pytest.mark.django_db
Measure = Callable[..., Run]


def latest_throughput() -> SeriesLatest:
    return SeriesLatest.objects.get(series__metric__name="throughput")


def test_the_latest_state_is_that_of_the_newest_commit(measure: Measure) -> None:
    newest = [measure(position, throughput=100.0 + position) for position in (3, 9, 5)][1]
    latest = latest_throughput()
    assert (latest.position, latest.value, latest.run) == (9, 109, newest)
    assert latest_throughput().recent == [103, 105, 109]


def test_only_the_newest_values_are_kept_at_hand(measure: Measure) -> None:
    for position in range(1, 34):
        measure(position, throughput=float(position))
    assert latest_throughput().recent == [float(position) for position in range(4, 34)]


def test_another_branch_has_points_but_is_not_the_latest(measure: Measure) -> None:
    measure(3, throughput=103.0)
    measure(9, throughput=9.0, branch="try")
    assert latest_throughput().recent == [103]
    assert latest_throughput().series.points.count() == 2


def test_what_is_headline_the_newest_document_says(measure: Measure) -> None:
    fewer = [{**row, "headline": row["name"] == "throughput"} for row in document_body()["metrics"]]
    measure(5)
    measure(3, metrics=fewer)
    assert Series.objects.filter(headline=True).count() == 2
    measure(7, metrics=fewer)
    assert Series.objects.get(headline=True).metric.name == "throughput"


def test_a_case_has_only_so_many_series(measure: Measure, settings: Any) -> None:
    measure(5)
    settings.PACELINE_MOST_SERIES = Series.objects.count()
    measure(6)
    with pytest.raises(
        BadDocument, match=r"metrics: 1 of them are new to the case, .* \(PACELINE_MOST_SERIES\)"
    ):
        measure(7, metrics=[*document_body()["metrics"], metric_row("gauge.new", 1.0)])
    assert not Metric.objects.filter(name="gauge.new").exists()


def test_a_new_version_is_a_new_series(measure: Measure) -> None:
    measure(5)
    before = Series.objects.count()
    measure(6, version=2)
    assert Series.objects.count() == 2 * before
    measure(7, version=2)
    assert Series.objects.count() == 2 * before


def test_a_quality_may_be_better_either_way(measure: Measure) -> None:
    measure(1, metrics=[*document_body()["metrics"], metric_row("quality.loss", 1.0)])
    measure(2, metrics=[*document_body()["metrics"], metric_row("quality.loss", 1.0, better="lower")])
    assert set(Metric.objects.filter(name="quality.loss").values_list("better", flat=True)) == {
        "higher",
        "lower",
    }
