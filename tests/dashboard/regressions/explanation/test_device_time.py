"""What a device did otherwise between two profiled runs."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.models import Document, Regression
from dashboard.pages.regressions.device import rest_of_kernels
from dashboard.regressions.explanation.device_time import explain_on_device, subtract_timelines
from dashboard.regressions.explanation.phase_shares import Sides
from dashboard.sentences.measurements import device_time
from tests.pages import builders
from tests.pages.documents import complete_document

MM = ("ampere_sgemm", "aten::mm", "learn/forward", 6.0, 4e-3)
PUSH = ("index_put_kernel<float>", "aten::index_put_", "learn/push", 12.0, 9e-4)
SORT = ("radix_sort", "aten::index_put_", "learn/push", 12.0, 3e-4)

Raw = dict[str, Any]


def make_timeline(*kernels: tuple[str, str, str, float, float], idle: dict[tuple[str, str], float]) -> Raw:
    names = ("name", "operation", "phase", "count", "seconds")
    busy = sum(row[4] for row in kernels)
    return {
        "device": "cuda",
        "steps": 10,
        "step_seconds": busy + sum(idle.values()),
        "busy_seconds": busy,
        "explained": 1.0,
        "launches": 20.0,
        "rows": [{"kind": "kernel", **dict(zip(names, row, strict=True))} for row in kernels],
        "rest": {"rows": 0, "count": 0.0, "seconds": 0.0},
        "idle": [
            {"cause": cause, "phase": phase, "count": 1.0, "seconds": seconds}
            for (cause, phase), seconds in idle.items()
        ],
        "phases": [],
    }


BEFORE = make_timeline(MM, idle={("host", "act"): 1e-3})
AFTER = make_timeline(
    MM, PUSH, SORT, idle={("host", "act"): 1e-3, ("data", "data_loading"): 5e-4, ("unexplained", ""): 1e-4}
)


def make_regression(before: Raw = BEFORE, after: Raw = AFTER) -> Regression:
    return Regression(device=subtract_timelines(before, after))


def test_collectives_are_no_kernels_and_what_nothing_hides_of_them_is_idle_time() -> None:
    nccl = ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "c10d::allreduce_", "learn/backward", 2.0, 3e-3)
    after = make_timeline(MM, idle={("host", "act"): 1e-3, ("collectives", "learn/backward"): 2e-3})
    sent = {
        "kind": "kernel",
        **dict(zip(("name", "operation", "phase", "count", "seconds"), nccl, strict=True)),
    }
    regression = make_regression(after={**after, "rows": [*after["rows"], sent]})
    assert device_time.describe_new_kernels(regression) == ""
    assert device_time.describe_idle_growth(regression) == (
        "2 ms more in which the device waits in collectives in learn/backward"
    )


def test_new_kernels_are_said_with_the_operation_that_launched_them() -> None:
    said = device_time.describe_new_kernels(make_regression())
    assert said == "2 new kernels, 1.20 ms: index_put in learn/push"
    assert device_time.describe_new_kernels(make_regression(AFTER, BEFORE)) == ""
    assert device_time.describe_new_kernels(Regression()) == ""


def test_a_kernel_is_new_or_slower_or_left_out() -> None:
    slower = ("ampere_sgemm", "aten::mm", "learn/forward", 6.0, 6e-3)
    regression = make_regression(AFTER, make_timeline(slower, PUSH, SORT, idle={}))
    assert device_time.kernel_lines(regression) == [
        "ampere_sgemm in learn/forward takes 6 ms per step instead of 4 ms"
    ]
    assert device_time.kernel_lines(make_regression())[0] == (
        "index_put_kernel<float> in learn/push is new, 12 times per step, and takes 900 µs"
    )


def test_the_differences_add_up_to_what_the_step_lost() -> None:
    device = make_regression().device
    lost = device["step"][1] - device["step"][0]
    rest_before, rest_after = rest_of_kernels(device)
    explained = sum(
        row["seconds_after"] - row["seconds_before"] for row in [*device["kernels"], *device["idle"]]
    )
    assert explained + rest_after - rest_before == pytest.approx(lost)


def test_idle_time_that_grew_is_said_by_its_cause() -> None:
    said = device_time.describe_idle_growth(make_regression())
    assert said == "500 µs more in which the device waits for data in data_loading"
    assert device_time.describe_idle_growth(make_regression(BEFORE, BEFORE)) == ""
    two = make_timeline(MM, idle={("host", "act"): 1e-3, ("host", "learn"): 3e-3})
    said = device_time.describe_idle_growth(make_regression(BEFORE, two))
    assert said.endswith("waits for the host to launch something, mostly in learn")
    unexplained = make_timeline(MM, idle={("host", "act"): 1e-3, ("unexplained", ""): 1e-3})
    assert "no known cause" in device_time.describe_idle_growth(make_regression(BEFORE, unexplained))


@pytest.mark.django_db
def test_the_nearest_runs_with_a_device_are_compared(django_assert_num_queries: Any) -> None:
    line = builders.create_measured_commits(4)
    runs = [commit.runs.get().pk for commit in line]
    for run, timeline in ((runs[0], BEFORE), (runs[3], AFTER)):
        body = complete_document(device_profile=timeline)
        Document.objects.filter(run=run).update(body=body)
    with django_assert_num_queries(1):
        found = explain_on_device(Sides(good=(runs[0], runs[1]), bad=(runs[2], runs[3])))
    assert [row["kernel"] for row in found["kernels"]] == ["index_put_kernel<float>", "radix_sort"]
    assert explain_on_device(Sides(good=(runs[1],), bad=(runs[3],))) == {}


@pytest.mark.django_db
def test_a_timeline_of_the_processor_is_no_device() -> None:
    line = builders.create_measured_commits(2)
    runs = [commit.runs.get().pk for commit in line]
    for run in runs:
        body = complete_document(device_profile={**BEFORE, "device": "cpu"})
        Document.objects.filter(run=run).update(body=body)
    assert explain_on_device(Sides(good=(runs[0],), bad=(runs[1],))) == {}


@pytest.mark.django_db
def test_the_page_has_the_kernels_the_causes_and_the_sentences(client: Client) -> None:
    regression = builders.create_stepped_regression(device=make_regression().device)
    shown = " ".join(client.get(f"/regressions/{regression.pk}/").content.decode().split())
    assert "On the device: 2 new kernels, 1.20 ms: index_put in learn/push." in shown
    assert "Idle: waits for data" in shown
    assert "All other kernels" in shown
    assert "index_put_kernel&lt;float&gt;" in shown
    Regression.objects.update(device={})
    assert 'id="device"' not in client.get(f"/regressions/{regression.pk}/").content.decode()
