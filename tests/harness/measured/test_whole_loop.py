"""A whole loop's time, for the sweep over a parameter."""

import time

import pytest
from paceline.measured import processor
from paceline.measured.step_loop import StepLoop
from paceline.measured.timing import TimingRecorder
from paceline.measured.whole_loop import WholeLoopRecorder


def make_recorder() -> WholeLoopRecorder:
    return WholeLoopRecorder(lambda _: None)


def test_the_loop_runs_to_its_own_end() -> None:
    recorder = make_recorder()
    for _ in recorder.steps(range(7)):
        with recorder.phase("learn"), recorder.phase("backward"):
            time.sleep(0.002)
    result = recorder.result()
    assert result["steps"] == 7
    assert result["seconds"] >= result["phases"]["learn"] >= result["phases"]["learn/backward"] >= 0.014


def test_what_lies_before_and_after_the_loop_is_left_out() -> None:
    recorder = make_recorder()
    with recorder.phase("learn"):
        time.sleep(0.02)
    began = time.perf_counter()
    for _ in recorder.steps(range(2)):
        with recorder.phase("learn"):
            pass
    took = time.perf_counter() - began
    with recorder.phase("learn"):
        time.sleep(0.02)
    result = recorder.result()
    assert result["phases"]["learn"] <= result["seconds"] <= took


def test_the_share_that_waited_for_a_processor_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = make_recorder()
    clock = iter((5.0, 5.02))
    monkeypatch.setattr(processor, "processor_wait_seconds", lambda: next(clock))
    for _ in recorder.steps(range(4)):
        time.sleep(0.01)
    result = recorder.result()
    assert result["waited"] == pytest.approx(0.02 / result["seconds"])


def test_several_loops_are_one_run() -> None:
    recorder = make_recorder()
    began = time.perf_counter()
    for _ in range(3):
        assert list(recorder.steps(range(4))) == [0, 1, 2, 3]
        time.sleep(0.005)
    took = time.perf_counter() - began
    result = recorder.result()
    assert result["steps"] == 12
    assert 0.01 <= result["seconds"] <= took


@pytest.mark.parametrize("make", [make_recorder, lambda: TimingRecorder(1, 9, lambda _: None)])
def test_a_step_that_is_broken_off_was_taken(make: type) -> None:
    recorder = make()
    for _ in range(3):
        for number in recorder.steps(range(100)):
            if number == 1:
                break
    loop: StepLoop = recorder.loop
    assert loop.taken == 6  # type: ignore[attr-defined]


def test_a_loop_without_a_step_is_not_complete() -> None:
    recorder = make_recorder()
    assert list(recorder.steps([])) == []
    assert not recorder.loop.complete
