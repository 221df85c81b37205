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
from paceline.measured.mark_recorder import MarkRecorder
from paceline.measured.phase_nodes import PhaseNode
from paceline.measured.resident_memory import ResidentMemory
from paceline.measured.timing import TimingRecorder


def marks() -> MarkRecorder[PhaseNode]:
    return MarkRecorder(PhaseNode)


def timing(warmup: int, steps: int) -> TimingRecorder:
    return TimingRecorder(warmup, steps, lambda _: None)


def paths(found: MarkRecorder[Any]) -> dict[str, int]:
    return {node.path: node.count for node in found.main.nodes}


def rows(found: TimingRecorder) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in found.result()["phases"]}


def assert_whole(found: TimingRecorder) -> None:
    """Outermost phases of the main thread and what none covers are the step."""
    outermost = [
        row for row in found.result()["phases"] if row["thread"] == "main" and "/" not in row["path"]
    ]
    assert sum(row["total"] for row in outermost) == pytest.approx(found.result()["step_time"]["mean"])


def test_a_phase_works_on_an_exit_stack() -> None:
    found = marks()
    with contextlib.ExitStack() as stack:
        stack.enter_context(found.phase("learn"))
        stack.enter_context(found.phase("forward"))
    assert paths(found) == {"learn": 1, "learn/forward": 1}
    assert found.main.node is found.main.root


def test_a_kept_manager_may_be_used_anywhere_and_inside_itself() -> None:
    found = marks()
    learn = found.phase("learn")
    with found.phase("train"), learn, learn:
        pass
    with learn:
        pass
    assert paths(found) == {"learn": 1, "train": 1, "train/learn": 1, "train/learn/learn": 1}


def test_a_generator_that_is_resumed_in_another_phase_leaves_no_trace() -> None:
    found = marks()

    def load() -> Iterator[int]:
        for number in range(20):
            with found.phase("load"):
                yield number

    loader = load()
    next(loader)
    for _ in range(10):
        with found.phase("learn"):
            next(loader)
    loader.close()
    assert found.main.node is found.main.root
    assert max(path.count("/") for path in paths(found)) <= 2


def test_an_exception_in_a_generator_closes_its_phase_once() -> None:
    found = marks()

    def load() -> Iterator[int]:
        with found.phase("load"):
            yield 1
            raise ZeroDivisionError

    with found.phase("learn"), pytest.raises(ZeroDivisionError):
        list(load())
    assert paths(found) == {"learn": 1, "learn/load": 1}


def test_a_phase_across_steps_is_billed_to_each_of_them() -> None:
    found = timing(1, 4)
    across = found.phase("across")
    for number in found.steps(range(9)):
        if number % 2:
            across.__exit__(None, None, None)
        time.sleep(0.003)
        if not number % 2:
            across.__enter__()
        time.sleep(0.002)
    assert_whole(found)
    shares = list(found.main.nodes[0].series)
    assert [round(share * 1000) >= 2 for share in shares] == [False, True, False, True]


def test_a_phase_that_is_never_left_has_a_row() -> None:
    found = timing(1, 4)
    for number in found.steps(range(9)):
        if number == 0:
            found.phase("open").__enter__()
        with found.phase("inside"):
            time.sleep(0.002)
    assert_whole(found)
    assert rows(found)["open"]["count"] == 0
    assert rows(found)["open"]["total"] > rows(found)["open/inside"]["total"] > 0.002


def test_a_phase_around_the_fetch_is_cut_at_the_steps() -> None:
    found = timing(1, 4)

    def load() -> Iterator[int]:
        for number in range(9):
            with found.phase("load"):
                yield number

    for _ in found.steps(load()):
        time.sleep(0.002)
    assert_whole(found)
    assert rows(found)["load"]["p99"] <= found.result()["step_time"]["p99"]


def test_a_thread_with_the_number_of_a_dead_one_has_its_own_name() -> None:
    found = marks()
    for name in ("actor", "loader", "actor"):
        thread = threading.Thread(target=lambda: found.phase("work").__enter__(), name=name)
        thread.start()
        thread.join()
    assert sorted(state.name for state in found.states) == ["actor", "loader", "main"]
    assert all(state.node.path == "work" for state in found.states if state.name != "main")


def test_threads_that_a_step_starts_stay_few_and_apart() -> None:
    found = timing(1, 5)

    def work() -> None:
        with found.phase("copy"):
            time.sleep(0.001)

    for _ in found.steps(range(9)):
        with found.phase("learn"):
            thread = threading.Thread(target=work, name="copier")
            thread.start()
            thread.join()
    assert (rows(found)["copy"]["thread"], rows(found)["copy"]["count"]) == ("copier", 1)
    assert_whole(found)


def test_many_threads_lose_no_phase() -> None:
    found = marks()

    def work() -> None:
        for _ in range(2000):
            with found.phase("outer"), found.phase("inner"):
                pass

    pool = [threading.Thread(target=work, name=f"actor_{number}") for number in range(6)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    counted = [node.count for state in found.states for node in state.nodes]
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
    found = timing(0, 5)
    paceline.activate_recorder(found)
    yield found
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
    found = timing(100, steps)
    for number in found.steps(range(2 * steps)):
        with found.phase("learn"):
            pass
        found.lap("rest")
        if number == 200:
            gc.collect()
            before = resident.read()
    assert found.loop.complete
    # At this rate a million steps need less than a megabyte.
    assert resident.read() - before < steps
