"""Host or device: which of the two took the time that a phase lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dashboard.models import Case, Document, Project, Regression, Series
from dashboard.regressions import judge_run
from dashboard.regressions.explanation.host_or_device import place_by_growth, place_of_loss
from dashboard.regressions.explanation.phase_shares import Sides
from dashboard.regressions.row_facts import series_fact
from tests.dashboard import factories

COUNT, AT = 9, 5
HOST, DEVICE, UNKNOWN = Regression.Place.HOST, Regression.Place.DEVICE, Regression.Place.UNKNOWN
WAITS = Regression.Place.WAITS_FOR_DEVICE


@pytest.mark.parametrize(
    ("grown", "worked", "expected"),
    [
        # The stream took no longer from the phase's begin to its end: whatever the host did, it did alone.
        ({"log": 0.0, "learn": 0.0}, None, HOST),
        # Both took longer: a busy device was waited for, an idle one waited.
        ({"log": 0.004, "learn": 0.0}, 0.0038, DEVICE),
        ({"log": 0.004, "learn": 0.0}, 0.0002, HOST),
        ({"log": 0.004, "learn": 0.0}, None, UNKNOWN),
        # The work is asked for in one phase, and its result is read in another.
        ({"log": 0.0001, "learn": 0.0041, "learn/forward": 0.004}, None, WAITS),
        # Neither a phase around it nor one inside is another place.
        ({"log": 0.0, "log/read": 0.004}, None, HOST),
        # A device that grew faster elsewhere doesn't hold the host up here.
        ({"log": 0.0, "learn": -0.004}, 0.0, HOST),
        # Of what lies outside all phases the stream's time isn't known.
        ({"learn": 0.004}, 0.004, ""),
    ],
)
def test_the_devices_times_tell(grown: Mapping[str, float], worked: float | None, expected: str) -> None:
    place, waits_for = place_by_growth("log", 0.004, grown, worked)
    assert place == expected
    assert waits_for == ("learn" if expected == WAITS else "")


def judged_place(
    project: Project, case: Case, used: str | None, utilization: float, name: str = "step_time"
) -> str:
    """`log` takes 4 ms longer on the host; so does the stream within it, if there is a device."""
    level = {"step_time": (0.010, 0.014), "peak_memory": (1e8, 1.4e8)}[name]
    for commit in factories.create_commits(project, COUNT):
        late = commit.position >= AT
        values = {name: level[late] * factories.run_noise(commit.position)}
        times = {"act": 0.004, "log": (0.006, 0.010)[late]}
        phases = {"phase_self_time": times, "phase_memory": times}
        if used == "cuda":
            values |= {"gpu_utilization": (50.0, utilization)[late], "step_time": (0.010, 0.014)[late]}
            phases["phase_device_time"] = times
        environment = {"path": used} if used else {}
        judge_run(
            factories.store_measured_run(commit, case, values, phases=phases, environment=environment).pk
        )
    return Regression.objects.get().place


def test_without_a_device_all_is_the_hosts(project: Project, case: Case) -> None:
    assert judged_place(project, case, "cpu", 0.0) == Regression.Place.HOST_ALONE


@pytest.mark.parametrize(("utilization", "expected"), [(64.0, DEVICE), (36.0, HOST)])
def test_utilization_tells_who_waited(
    project: Project, case: Case, utilization: float, expected: str
) -> None:
    """5 ms of work in a step of 10 ms; then 9 ms in 14, or still 5."""
    assert judged_place(project, case, "cuda", utilization) == expected


@pytest.mark.parametrize(("source", "expected"), [("rate", DEVICE), ("scaling", "")])
def test_sweeps_record_no_device_time(project: Project, case: Case, source: str, expected: str) -> None:
    series, sides = two_runs(project, case, ("cuda", "cuda"), {"job": {"from": source}})
    assert place_of_loss(series_fact(series), "log", sides, 0.004)[0] == expected


def test_a_case_that_moved_to_a_device_says_nothing(project: Project, case: Case) -> None:
    series, sides = two_runs(project, case, ("cpu", "cuda"), {"job": {"from": "rate"}})
    assert place_of_loss(series_fact(series), "log", sides, 0.004) == ("", "")


def two_runs(
    project: Project, case: Case, used: tuple[str, str], body: Mapping[str, Any]
) -> tuple[Series, Sides]:
    """Of a projected time; the second takes 4 ms longer in `log`, for which the device worked."""
    runs = [
        factories.store_measured_run(
            commit,
            case,
            {"projected_time": 100.0, "step_time": time, "gpu_utilization": 90.0},
            phases={"phase_device_time": {"log": time}},
            environment={"path": path},
        )
        for commit, path, time in zip(factories.create_commits(project, 2), used, (0.006, 0.010), strict=True)
    ]
    for document in Document.objects.all():
        document.body |= body
        document.save()
    return Series.objects.get(metric__name="projected_time"), Sides((runs[0].pk,), (runs[1].pk,))


def test_nothing_is_said_where_nothing_is_known(project: Project, case: Case) -> None:
    assert judged_place(project, case, None, 0.0) == ""


def test_memory_has_no_such_place(project: Project, case: Case) -> None:
    assert judged_place(project, case, "cpu", 0.0, "peak_memory") == ""
