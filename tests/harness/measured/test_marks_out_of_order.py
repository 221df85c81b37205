"""MarkRecorder where the code does unusual things: out of order, across steps, threads and processes."""

import contextlib
import gc
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import paceline
import pytest
from paceline.measured.resident_memory import ResidentMemory
from paceline.measured.timing import TimingRecorder

from tests.harness.measured.recorders import make_recorder, make_timing_recorder, phase_counts


def rows_by_path(recorder: TimingRecorder) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in recorder.result()["phases"]}


def assert_whole(recorder: TimingRecorder) -> None:
    """Outermost phases of the main thread and what none covers are the step."""
    outermost = [
        row for row in recorder.result()["phases"] if row["thread"] == "main" and "/" not in row["path"]
    ]
    assert sum(row["total"] for row in outermost) == pytest.approx(recorder.result()["step_time"]["mean"])


def test_a_phase_works_on_an_exit_stack() -> None:
    recorder = make_recorder()
    with contextlib.ExitStack() as stack:
        stack.enter_context(recorder.phase("learn"))
        stack.enter_context(recorder.phase("forward"))
    assert phase_counts(recorder) == {"learn": 1, "learn/forward": 1}
    assert recorder.main.node is recorder.main.root


def test_a_kept_manager_may_be_used_anywhere_and_inside_itself() -> None:
    recorder = make_recorder()
    learn = recorder.phase("learn")
    with recorder.phase("train"), learn, learn:
        pass
    with learn:
        pass
    assert phase_counts(recorder) == {"learn": 1, "train": 1, "train/learn": 1, "train/learn/learn": 1}


def test_a_generator_that_is_resumed_in_another_phase_leaves_no_trace() -> None:
    recorder = make_recorder()

    def load() -> Iterator[int]:
        for number in range(20):
            with recorder.phase("load"):
                yield number

    loader = load()
    next(loader)
    for _ in range(10):
        with recorder.phase("learn"):
            next(loader)
    loader.close()
    assert recorder.main.node is recorder.main.root
    assert max(path.count("/") for path in phase_counts(recorder)) <= 2


def test_an_exception_in_a_generator_closes_its_phase_once() -> None:
    recorder = make_recorder()

    def load() -> Iterator[int]:
        with recorder.phase("load"):
            yield 1
            raise ZeroDivisionError

    with recorder.phase("learn"), pytest.raises(ZeroDivisionError):
        list(load())
    assert phase_counts(recorder) == {"learn": 1, "learn/load": 1}


def test_a_phase_across_steps_is_billed_to_each_of_them() -> None:
    recorder = make_timing_recorder(1, 4)
    across = recorder.phase("across")
    for number in recorder.steps(range(9)):
        if number % 2:
            across.__exit__(None, None, None)
        time.sleep(0.003)
        if not number % 2:
            across.__enter__()
        time.sleep(0.002)
    assert_whole(recorder)
    shares = list(recorder.main.nodes[0].series)
    assert [round(share * 1000) >= 2 for share in shares] == [False, True, False, True]


def test_a_phase_that_is_never_left_has_a_row() -> None:
    recorder = make_timing_recorder(1, 4)
    for number in recorder.steps(range(9)):
        if number == 0:
            recorder.phase("open").__enter__()
        with recorder.phase("inside"):
            time.sleep(0.002)
    assert_whole(recorder)
    assert rows_by_path(recorder)["open"]["count"] == 0
    assert rows_by_path(recorder)["open"]["total"] > rows_by_path(recorder)["open/inside"]["total"] > 0.002


def test_a_phase_around_the_fetch_is_cut_at_the_steps() -> None:
    recorder = make_timing_recorder(1, 4)

    def load() -> Iterator[int]:
        for number in range(9):
            with recorder.phase("load"):
                yield number

    for _ in recorder.steps(load()):
        time.sleep(0.002)
    assert_whole(recorder)
    assert rows_by_path(recorder)["load"]["p99"] <= recorder.result()["step_time"]["p99"]


def test_a_thread_with_the_number_of_a_dead_one_has_its_own_name() -> None:
    recorder = make_recorder()
    for name in ("actor", "loader", "actor"):
        thread = threading.Thread(target=lambda: recorder.phase("work").__enter__(), name=name)
        thread.start()
        thread.join()
    assert sorted(state.name for state in recorder.states) == ["actor", "loader", "main"]
    assert all(state.node.path == "work" for state in recorder.states if state.name != "main")


def test_threads_that_a_step_starts_stay_few_and_apart() -> None:
    recorder = make_timing_recorder(1, 5)

    def work() -> None:
        with recorder.phase("copy"):
            time.sleep(0.001)

    for _ in recorder.steps(range(9)):
        with recorder.phase("learn"):
            thread = threading.Thread(target=work, name="copier")
            thread.start()
            thread.join()
    row = rows_by_path(recorder)["copy"]
    assert (row["thread"], row["count"]) == ("copier", 1)
    assert_whole(recorder)


def test_many_threads_lose_no_phase() -> None:
    recorder = make_recorder()

    def work() -> None:
        for _ in range(2000):
            with recorder.phase("outer"), recorder.phase("inner"):
                pass

    pool = [threading.Thread(target=work, name=f"actor_{number}") for number in range(6)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    counted = [node.count for state in recorder.states for node in state.nodes]
    assert sum(counted) == 6 * 2 * 2000


def in_child(check: Any) -> int:
    """Run a check in a forked process and return its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            status = 0 if check() else 2
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def active() -> Iterator[TimingRecorder]:
    recorder = make_timing_recorder(0, 5)
    paceline.activate_recorder(recorder)
    yield recorder
    paceline._stop_recording()


def test_a_forked_process_measures_nothing(active: TimingRecorder) -> None:
    def check() -> bool:
        with paceline.phase("learn"):
            paceline.lap("x")
            paceline.count("games")
        return len(list(paceline.steps(range(50)))) == 50 and not active.main.nodes

    assert in_child(check) == 0
    assert len(list(paceline.steps(range(50)))) == 5


def test_a_loop_that_forks_runs_on_in_both_processes(active: TimingRecorder) -> None:
    taken, statuses = 0, []
    for number in paceline.steps(range(20)):
        taken += 1
        if number == 2:
            child = os.fork()
            if child == 0:
                continue
            statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        if not statuses and number > 2 and taken == 20:
            os._exit(0)
    assert (taken, statuses) == (5, [0])


def test_a_lock_that_another_thread_held_does_not_block_a_forked_process(active: TimingRecorder) -> None:
    with active._lock:
        assert in_child(lambda: active.count("games", 1) is None) == 0


def test_steps_leave_no_memory_behind() -> None:
    steps, resident = 200_000, ResidentMemory()
    recorder = make_timing_recorder(100, steps)
    for number in recorder.steps(range(2 * steps)):
        with recorder.phase("learn"):
            pass
        recorder.lap("rest")
        if number == 200:
            gc.collect()
            before = resident.read()
    assert recorder.loop.complete
    # At this rate a million steps need less than a megabyte.
    assert resident.read() - before < steps
