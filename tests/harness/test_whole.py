"""A whole loop's time, for the sweep over a parameter."""

import time

import pytest
from paceline.measured import processor
from paceline.measured.step_loop import StepLoop
from paceline.measured.timing import TimingRecorder
from paceline.measured.whole_loop import WholeLoopRecorder


def whole() -> WholeLoopRecorder:
    return WholeLoopRecorder(lambda _: None)


def test_the_loop_runs_to_its_own_end() -> None:
    found = whole()
    for _ in found.steps(range(7)):
        with found.phase("learn"), found.phase("backward"):
            time.sleep(0.002)
    result = found.result()
    assert result["steps"] == 7
    assert result["seconds"] >= result["phases"]["learn"] >= result["phases"]["learn/backward"] >= 0.014


def test_what_lies_before_and_after_the_loop_is_left_out() -> None:
    found = whole()
    with found.phase("learn"):
        time.sleep(0.02)
    for _ in found.steps(range(2)):
        with found.phase("learn"):
            pass
    with found.phase("learn"):
        time.sleep(0.02)
    result = found.result()
    assert result["phases"]["learn"] <= result["seconds"] < 0.02


def test_the_share_that_waited_for_a_processor_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = whole()
    clock = iter((5.0, 5.02))
    monkeypatch.setattr(processor, "processor_wait_seconds", lambda: next(clock))
    for _ in found.steps(range(4)):
        time.sleep(0.01)
    result = found.result()
    assert result["waited"] == pytest.approx(0.02 / result["seconds"])


def test_several_loops_are_one_run() -> None:
    found = whole()
    for _ in range(3):
        assert list(found.steps(range(4))) == [0, 1, 2, 3]
        time.sleep(0.005)
    result = found.result()
    assert result["steps"] == 12
    assert 0.01 <= result["seconds"] < 0.1


@pytest.mark.parametrize("made", [whole, lambda: TimingRecorder(1, 9, lambda _: None)])
def test_a_step_that_is_broken_off_was_taken(made: type) -> None:
    found = made()
    for _ in range(3):
        for number in found.steps(range(100)):
            if number == 1:
                break
    loop: StepLoop = found.loop
    assert loop.taken == 6  # type: ignore[attr-defined]


def test_a_loop_without_a_step_is_not_complete() -> None:
    found = whole()
    assert list(found.steps([])) == []
    assert not found.loop.complete
