"""Laps: marks that bill what ran since the one before."""

import threading
from collections.abc import Callable

import paceline
import pytest
from paceline.measured import mark_recorder, phase_nodes, timing, whole_loop
from paceline.measured.mark_recorder import MarkRecorder
from paceline.measured.phase_nodes import PhaseNode


class Clock:
    """A clock that only `work` moves on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def work(self, milliseconds: int) -> None:
        self.now += milliseconds / 1000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stopped = Clock()
    for module in (mark_recorder, phase_nodes, timing, whole_loop):
        monkeypatch.setattr(module, "perf_counter", stopped)
    return stopped


def make_recorder(warmup: int, steps: int) -> timing.TimingRecorder:
    return timing.TimingRecorder(warmup, steps, lambda _: None)


def phase_milliseconds(recorder: timing.TimingRecorder) -> dict[str, float]:
    """Milliseconds per step by path."""
    return {row["path"]: round(row["total"] * 1000, 6) for row in recorder.result()["phases"]}


def test_a_lap_without_a_measurement_does_nothing() -> None:
    assert paceline.lap("anything") is None


def test_laps_share_the_step_between_them(clock: Clock) -> None:
    recorder = make_recorder(1, 5)
    for _ in recorder.steps(range(9)):
        clock.work(4)
        recorder.lap("act")
        clock.work(2)
        recorder.lap("learn")
        clock.work(1)
    assert phase_milliseconds(recorder) == {"act": 4, "learn": 2, "(unattributed)": 1}


def test_a_lap_may_come_several_times_in_a_step(clock: Clock) -> None:
    recorder = make_recorder(0, 3)
    for _ in recorder.steps(range(9)):
        for _ in range(2):
            recorder.lap("draw")
            clock.work(2)
            recorder.lap("push")
    row = next(row for row in recorder.result()["phases"] if row["path"] == "push")
    assert (row["count"], row["total"], row["p50"]) == pytest.approx((2, 0.004, 0.004))


def test_a_phase_between_laps_belongs_to_neither(clock: Clock) -> None:
    recorder = make_recorder(2, 3)
    for _ in recorder.steps(range(9)):
        clock.work(2)
        with recorder.phase("env"):
            clock.work(8)
        recorder.lap("act")
        with recorder.phase("update"):
            clock.work(16)
    assert phase_milliseconds(recorder) == {"env": 8, "act": 2, "update": 16, "(unattributed)": 0}


def test_laps_inside_a_phase_begin_with_it(clock: Clock) -> None:
    recorder = make_recorder(2, 3)
    for _ in recorder.steps(range(9)):
        clock.work(1)
        with recorder.phase("learn"):
            clock.work(2)
            recorder.lap("forward")
            with recorder.phase("backward"):
                clock.work(4)
            clock.work(8)
            recorder.lap("optimizer")
            clock.work(16)
        clock.work(32)
        recorder.lap("rest")
    milliseconds = phase_milliseconds(recorder)
    assert milliseconds == {
        **{"learn": 30, "learn/forward": 2, "learn/backward": 4, "learn/optimizer": 8},
        **{"rest": 33, "(unattributed)": 0},
    }


def test_laps_of_other_threads_and_outside_the_loop_count_for_nothing() -> None:
    recorder = make_recorder(1, 3)
    recorder.lap("before")
    for _ in recorder.steps(range(9)):
        thread = threading.Thread(target=recorder.lap, args=("elsewhere",))
        thread.start()
        thread.join()
    recorder.lap("after")
    assert list(phase_milliseconds(recorder)) == ["(unattributed)"]
    assert not recorder.laps


def test_a_name_that_can_not_be_shown_is_refused() -> None:
    recorder = make_recorder(1, 3)
    loop = iter(recorder.steps(range(9)))
    next(loop)
    recorder.lap("")
    with pytest.raises(ValueError, match="a phase's name must be a printable string"):
        next(loop)


@pytest.mark.parametrize(
    "make", [lambda: MarkRecorder(PhaseNode), lambda: whole_loop.WholeLoopRecorder(lambda _: None)]
)
def test_other_recorders_bill_laps_at_once(clock: Clock, make: Callable[[], MarkRecorder[PhaseNode]]) -> None:
    recorder = make()
    with recorder.phase("learn"):
        clock.work(2)
        recorder.lap("forward")
        with recorder.phase("backward"):
            clock.work(4)
        recorder.lap("rest")
    milliseconds = {node.path: round(node.total * 1000, 6) for node in recorder.main.nodes}
    assert milliseconds == {"learn": 6, "learn/forward": 2, "learn/backward": 4, "learn/rest": 0}
