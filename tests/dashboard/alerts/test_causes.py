"""The first line of an alert: only code names a commit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.alerts.kinds.payload import alert_payload
from dashboard.models import Delivery
from dashboard.sentences.regressions import regressions as sentences

Make = Callable[..., Delivery]


@pytest.mark.parametrize("cause", ["", "code"])
def test_code_names_the_commit(make_delivery: Make, cause: str) -> None:
    regression = make_delivery("email", "a@example.org").regression
    regression.cause = cause
    assert f"since {regression.first_bad.short}" in sentences.regression_title(regression)


def test_another_cause_says_what_moved(make_delivery: Make) -> None:
    regression = make_delivery("email", "a@example.org").regression
    regression.cause = "dependency"
    regression.cause_evidence = [
        {"code": "installed otherwise", "items": [["numpy", "1.26", "2.0"]], "count": 1},
        {"code": "asked for in", "items": ["uv.lock"], "count": 1},
    ]
    title = sentences.regression_title(regression)
    assert "; dependency: installed otherwise: numpy 1.26 → 2.0; " in title
    assert regression.first_bad.short not in title


def test_a_commit_that_a_merge_brought_is_named_with_its_merge(make_delivery: Make) -> None:
    delivery = make_delivery("email", "a@example.org")
    regression = delivery.regression
    merge, regression.culprit = regression.first_bad, regression.last_good
    assert f"since {regression.last_good.short}" in sentences.regression_title(regression)
    fields = alert_payload(delivery)["regression"]
    assert (fields["commit"]["hash"], fields["merged_by"]["hash"]) == (regression.last_good.hash, merge.hash)
