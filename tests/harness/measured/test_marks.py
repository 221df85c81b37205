import _thread
import gc
import math
import threading
import time
from contextlib import nullcontext

import paceline
import pytest
from paceline.measured.mark_recorder import NODE_LIMIT, stable_thread_name
from paceline.measured.timing import PENDING_STEPS, TimingRecorder

from tests.harness.measured.recorders import make_recorder, make_timing_recorder, phase_counts


def test_outside_a_measurement_marks_do_nothing() -> None:
    with paceline.phase("anything"):
        paceline.count("games")
        paceline.gauge("queue", 3)
        paceline.quality("score", 1.0)
        paceline.setting("bf16", "off")
    items = [1, 2]
    assert paceline.steps(items) is items


def test_a_disabled_phase_lets_exceptions_pass() -> None:
    with pytest.raises(KeyError), paceline.phase("anything"):
        raise KeyError


def test_phases_nest_by_path() -> None:
    recorder = make_recorder()
    with recorder.phase("learn"):
        with recorder.phase("forward"):
            pass
        with recorder.phase("backward"):
            pass
    assert phase_counts(recorder) == {"learn": 1, "learn/forward": 1, "learn/backward": 1}


def test_a_phase_that_calls_itself_lies_below_itself() -> None:
    recorder = make_recorder()
    with recorder.phase("search"), recorder.phase("search"), recorder.phase("search"):
        pass
    assert phase_counts(recorder) == {"search": 1, "search/search": 1, "search/search/search": 1}


def test_an_exception_closes_its_phases() -> None:
    recorder = make_recorder()
    with pytest.raises(ZeroDivisionError), recorder.phase("a"), recorder.phase("b"):
        raise ZeroDivisionError
    with recorder.phase("c"):
        pass
    assert phase_counts(recorder) == {"a": 1, "a/b": 1, "c": 1}


def test_time_is_inclusive() -> None:
    recorder = make_recorder()
    with recorder.phase("outer"), recorder.phase("inner"):
        time.sleep(0.01)
    outer, inner = recorder.main.nodes
    assert outer.total >= inner.total >= 0.01


def test_threads_are_kept_apart() -> None:
    recorder = make_recorder()

    def work() -> None:
        with recorder.phase("collect"):
            pass

    with recorder.phase("learn"):
        thread = threading.Thread(target=work, name="collector")
        thread.start()
        thread.join()
    assert phase_counts(recorder) == {"learn": 1}
    collector = next(state for state in recorder.states if state.name == "collector")
    assert [node.path for node in collector.nodes] == ["collect"]


@pytest.mark.parametrize(
    ("name", "stable"),
    [
        ("Thread-12 (work)", "work"),
        ("ThreadPoolExecutor-0_3", "ThreadPoolExecutor"),
        ("actor", "actor"),
        ("7", "7"),
    ],
)
def test_a_thread_is_named_alike_in_every_run(name: str, stable: str) -> None:
    assert stable_thread_name(name) == stable


def test_threads_of_one_name_are_summed() -> None:
    recorder = make_timing_recorder(0, 2)

    def work() -> None:
        with recorder.phase("collect"):
            barrier.wait()

    for _ in recorder.steps(range(9)):
        barrier = threading.Barrier(3)
        pool = [threading.Thread(target=work, name=f"actor_{number}") for number in range(3)]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
    row = next(row for row in recorder.result()["phases"] if row["path"] == "collect")
    assert (row["thread"], row["count"], row["p50"]) == ("actor", 3, None)


def test_a_flood_of_names_stays_bounded() -> None:
    recorder = make_recorder()
    for number in range(NODE_LIMIT + 50):
        with recorder.phase(f"batch {number}"):
            pass
    assert len(recorder.main.nodes) == NODE_LIMIT
    assert recorder.dropped_phases == 50


@pytest.mark.parametrize("name", ["", "a\nb", None, 3])
def test_a_name_that_can_not_be_shown_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a phase's name must be a printable string"):
        make_recorder().phase(name)


@pytest.mark.parametrize("name", ["(unattributed)", "(setup)"])
def test_a_name_that_the_document_has_itself_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="which is what no phase covers"):
        make_recorder().phase(name)


def test_the_loop_ends_when_the_window_is_complete() -> None:
    recorder = make_timing_recorder(3, 5)
    assert list(recorder.steps(range(100))) == list(range(8))
    assert recorder.loop.complete
    assert list(recorder.steps(range(100))) == []


def test_a_loop_that_runs_on_yields_everything() -> None:
    recorder, complete = make_timing_recorder(3, 5), []
    recorder.loop.run_on = lambda: complete.append(recorder.result()["steps"])
    assert list(recorder.steps(iter(range(20)))) == list(range(20))
    for number in recorder.steps(range(20)):
        # A loop inside a loop is nothing to refuse any more.
        assert list(recorder.steps(range(number))) == list(range(number))
    assert complete == [5]


@pytest.mark.parametrize("steps", [100, 200, 1000])
def test_the_last_step_of_the_window_is_reported(steps: int) -> None:
    told: list[int] = []
    recorder = TimingRecorder(5, steps, told.append)
    list(recorder.steps(range(10**4)))
    assert told[-1] == 5 + steps


def test_a_loop_left_at_its_last_step_leaves_the_result() -> None:
    complete: list[int] = []
    recorder = TimingRecorder(0, 3, lambda _: None)
    recorder.loop.run_on = lambda: complete.append(recorder.result()["steps"])
    for number in recorder.steps(range(9)):
        if number == 2:
            break
    assert complete == [3]
    assert list(recorder.steps(range(4))) == [0, 1, 2, 3]


def test_what_works_beside_the_steps_bears_its_own_name() -> None:
    recorder = make_timing_recorder(0, 2)
    asked, answered = threading.Event(), threading.Event()

    def take_steps() -> None:
        for _ in recorder.steps(range(9)):
            asked.set()
            answered.wait(10)

    thread = threading.Thread(target=take_steps)
    thread.start()
    assert asked.wait(10)
    with recorder.phase("answer"):
        pass
    answered.set()
    thread.join()
    rows = {row["path"]: row["thread"] for row in recorder.result()["phases"]}
    assert rows == {"answer": "MainThread", "(unattributed)": "main"}


def test_a_hook_in_autograds_thread_takes_no_steps_from_the_main_one() -> None:
    recorder, done = make_timing_recorder(0, 2), threading.Event()

    def end_step() -> None:
        recorder.loop.follow_thread()
        done.set()

    with recorder.phase("backward"):
        # Not one of Python's own threads, as those of autograd aren't.
        _thread.start_new_thread(end_step, ())
        assert done.wait(10)
    assert recorder.main.thread is threading.current_thread()
    assert phase_counts(recorder) == {"backward": 1}


@pytest.mark.parametrize(
    ("around", "path", "thread"),
    [("backward", "backward/forward", "main"), ("learn", "forward", "Dummy")],
)
def test_what_autograds_thread_computes_again_belongs_to_the_backward_pass(
    around: str, path: str, thread: str
) -> None:
    recorder, done = make_timing_recorder(0, 1), threading.Event()

    def compute_again() -> None:
        with recorder.phase("forward"):
            pass
        done.set()

    for _ in recorder.steps(range(9)):
        with recorder.phase(around):
            _thread.start_new_thread(compute_again, ())
            assert done.wait(10)
    rows = {row["path"]: row["thread"] for row in recorder.result()["phases"]}
    assert rows[path] == thread


def test_several_loops_share_one_window() -> None:
    recorder = make_timing_recorder(3, 5)
    taken = [list(recorder.steps(range(3))) for _ in range(4)]
    assert [len(items) for items in taken] == [3, 3, 2, 0]


def test_warmup_is_kept_out_of_the_window() -> None:
    recorder = make_timing_recorder(2, 3)
    for number in recorder.steps(range(100)):
        with recorder.phase("learn"):
            time.sleep(0.02 if number < 2 else 0.001)
    result = recorder.result()
    learn = next(row for row in result["phases"] if row["path"] == "learn")
    assert result["warmup_seconds"] >= 0.04
    assert 0.001 <= learn["total"] <= result["seconds"] / 3
    assert learn["count"] == 1


@pytest.mark.parametrize(("warmup", "taken"), [(3, 2), (1, 1), (0, 0)])
def test_ranks_that_open_their_windows_slowly_keep_no_measured_step_waiting(
    monkeypatch: pytest.MonkeyPatch, warmup: int, taken: int
) -> None:
    recorder = make_timing_recorder(warmup, 2)
    when: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: when.append(recorder.loop.taken))
    list(recorder.steps(range(9)))
    assert when == [taken]


def test_each_step_has_its_own_time_of_a_phase_that_came_later() -> None:
    recorder = make_timing_recorder(0, 2 * PENDING_STEPS + 9)
    began = PENDING_STEPS + 3
    ended = []
    for number in recorder.steps(range(10**6)):
        with recorder.phase("learn"):
            pass
        if number >= began and number % 2:
            with recorder.phase("save"):
                pass
        ended.append(recorder.main.nodes[-1].total)
    learn, save = recorder.main.nodes
    assert all(share > 0 for share in learn.series)
    assert sum(learn.series) == pytest.approx(learn.total)
    assert [number for number, share in enumerate(save.series) if share] == list(
        range(began, len(save.series), 2)
    )
    assert save.series[-2:].tolist() == pytest.approx([ended[-2] - ended[-3], ended[-1] - ended[-2]])
    assert min(recorder.loop.times) > 0


def test_fetching_an_item_belongs_to_its_step() -> None:
    recorder = make_timing_recorder(0, 3)
    for _ in recorder.steps(time.sleep(0.005) for _ in range(9)):
        pass
    assert recorder.result()["step_time"]["p50"] >= 0.005


def test_a_phase_around_the_loop_does_not_hide_those_inside() -> None:
    recorder = make_timing_recorder(0, 3)
    with recorder.phase("train"):
        for _ in recorder.steps(range(9)):
            with recorder.phase("learn"):
                pass
        with recorder.phase("save"):
            pass
    assert [node.path for node in recorder.main.nodes] == ["train", "learn", "train/save"]


def test_phases_after_the_window_are_not_counted() -> None:
    recorder = make_timing_recorder(0, 3)
    for _ in recorder.steps(range(9)):
        with recorder.phase("learn"):
            pass
    with recorder.phase("learn"):
        time.sleep(0.02)
    result = recorder.result()
    learn = next(row for row in result["phases"] if row["path"] == "learn")
    assert learn["count"] == 1
    assert learn["total"] <= result["seconds"] / 3


def test_steps_in_another_thread_are_the_main_ones() -> None:
    recorder = make_timing_recorder(0, 5)

    def train() -> None:
        for _ in recorder.steps(range(9)):
            with recorder.phase("learn"):
                pass

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    rows = {row["path"]: row["thread"] for row in recorder.result()["phases"]}
    assert rows == {"learn": "main", "(unattributed)": "main"}


def test_steps_inside_steps_are_refused() -> None:
    recorder = make_timing_recorder(0, 5)
    outer = iter(recorder.steps(range(9)))
    next(outer)
    with pytest.raises(RuntimeError, match=r"inside another paceline\.steps"):
        list(recorder.steps(range(9)))


@pytest.mark.parametrize("name", ["", "tokens\tseen", "x" * 191, 3])
@pytest.mark.parametrize("report", ["count", "gauge", "quality"])
def test_a_number_has_a_name_that_a_document_can_hold(name: str, report: str) -> None:
    with pytest.raises(ValueError, match=f"a {report}'s name must be a printable string of at most 190"):
        getattr(make_recorder(), report)(name, 1)


def test_what_is_no_finite_number_is_counted_and_left_out() -> None:
    recorder = make_timing_recorder(1, 4)
    for number in recorder.steps(range(9)):
        # As with fp16: the first gradients overflow, in the warm-up and behind it.
        recorder.gauge("grad_norm", math.inf if number < 3 else 2.0)
        recorder.gauge("loss", math.nan if number else 1.0)
        recorder.count("tokens", math.inf if number == 0 else 16)
        recorder.count("games", math.nan if number == 2 else 10**400 if number == 3 else 1)
    result = recorder.result()
    assert (result["gauges"], result["counts"]) == ({"grad_norm": 2.0}, {"tokens": 16.0})
    assert result["unusable"] == {"gauges": {"grad_norm": 2, "loss": 4}, "counts": {"games": 2}}


def test_a_gauge_shows_the_window_and_a_count_only_adds_there() -> None:
    recorder = make_timing_recorder(2, 2)
    for number in recorder.steps(range(9)):
        recorder.gauge("queue", number)
        recorder.count("games", 1)
    result = recorder.result()
    assert (result["gauges"]["queue"], result["counts"]["games"]) == (2.5, 1.0)


def test_long_windows_keep_a_sample_of_each_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.measured.timing.SERIES_LIMIT", 10)
    recorder = make_timing_recorder(0, 95)
    for _ in recorder.steps(range(1000)):
        with recorder.phase("learn"):
            time.sleep(0.0002)
    learn = next(row for row in recorder.result()["phases"] if row["path"] == "learn")
    assert 0.0002 <= learn["p50"] <= learn["p99"] < 95 * learn["total"]
    assert learn["total"] >= 0.0002


def test_a_nullcontext_costs_as_much_as_a_disabled_phase() -> None:
    def best(mark: object) -> float:
        return min(_time_mark(mark) for _ in range(20))

    assert best(paceline.phase) < 4 * best(lambda _: nullcontext())


def _time_mark(mark: object) -> float:
    started = time.perf_counter()
    for _ in range(2000):
        with mark("x"):  # type: ignore[operator]
            pass
    return time.perf_counter() - started
