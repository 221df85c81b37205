from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dashboard import ingest
from dashboard.host_protocol import RunAssignment
from dashboard.ingest import BadDocument
from dashboard.models import Case, Configuration, Limit, Point, Run, Series, SeriesLatest
from dashboard.querysets import limits
from tests.dashboard.documents import encoded_document

pytestmark = pytest.mark.django_db
Measure = Callable[..., Run]
GOLDEN = Path(__file__).parents[2] / "golden"
THROTTLED = {"code": "throttled", "message": "It throttled.", "advice": "Cool it.", "taints": True}


def limit_row(crossed: bool | None, metric: str = "throughput", **changes: Any) -> dict[str, Any]:
    value = None if crossed is None else 100.0
    row = {"metric": metric, "phase": None, "minimum": 80.0, "maximum": None, "value": value}
    return {**row, "crossed": crossed, **changes}


def test_a_limit_stands_beside_its_point(measure: Measure) -> None:
    run = measure(3, limits=[limit_row(True), limit_row(None, "gpu_utilization")])
    (limit,) = Limit.objects.all()
    assert (limit.run, limit.position, limit.minimum, limit.value, limit.crossed) == (run, 3, 80, 100, True)
    assert limit.series.metric.name == "throughput"
    assert SeriesLatest.objects.get(series=limit.series).limit == limit


def test_what_stands_crossed_is_what_the_newest_run_says(measure: Measure) -> None:
    measure(5, limits=[limit_row(True)])
    assert [latest.position for latest in limits.currently_crossed()] == [5]
    measure(3, limits=[limit_row(False)])
    assert limits.currently_crossed().count() == 1
    measure(7, limits=[limit_row(False)])
    assert limits.currently_crossed().count() == 0
    measure(9, limits=[limit_row(True)], warnings=[THROTTLED])
    assert limits.currently_crossed().count() == 0


def test_a_limit_that_the_manifest_drops_is_forgotten(measure: Measure) -> None:
    measure(5, limits=[limit_row(True)])
    measure(6)
    assert limits.currently_crossed().count() == 0


def test_two_limits_on_one_metric_are_refused(assignment: RunAssignment) -> None:
    with pytest.raises(BadDocument, match=r"limits\[1\]: throughput of phase None stands twice"):
        ingest.store_document(assignment.lease, encoded_document(limits=[limit_row(True), limit_row(False)]))
    assert not Point.objects.exists()


@pytest.mark.parametrize("name", ["paceline.document-1.json", "paceline.document-1-complete.json"])
def test_every_golden_document_is_stored_whole(assignment: RunAssignment, name: str) -> None:
    body = json.loads((GOLDEN / name).read_bytes())
    benchmark = body["benchmark"]
    Case.objects.update(benchmark=benchmark["name"], key=benchmark["case"])
    Configuration.objects.update(version=benchmark["version"], quick=body["protocol"]["quick"])
    ingest.store_document(assignment.lease, json.dumps(body).encode())
    assert Point.objects.count() == len(body["metrics"])
    judged = [row for row in body.get("limits", ()) if row["crossed"] is not None]
    assert Limit.objects.count() == len(judged)
    exponents = Series.objects.filter(metric__name="scaling_exponent")
    assert exponents.count() == sum(row["name"] == "scaling_exponent" for row in body["metrics"])
