import threading
import time
from contextlib import nullcontext

import paceline
import pytest
from paceline.measured.mark_recorder import NODE_LIMIT, MarkRecorder, stable_thread_name
from paceline.measured.phase_nodes import PhaseNode
from paceline.measured.timing import TimingRecorder


def marks() -> MarkRecorder[PhaseNode]:
    return MarkRecorder(PhaseNode)


def paths(found: MarkRecorder[PhaseNode]) -> dict[str, int]:
    return {node.path: node.count for node in found.main.nodes}


def test_outside_a_measurement_marks_do_nothing() -> None:
    with paceline.phase("anything"):
        paceline.count("games")
        paceline.gauge("queue", 3)
        paceline.quality("score", 1.0)
    items = [1, 2]
    assert paceline.steps(items) is items


def test_a_disabled_phase_lets_exceptions_pass() -> None:
    with pytest.raises(KeyError), paceline.phase("anything"):
        raise KeyError


def test_phases_nest_by_path() -> None:
    found = marks()
    with found.phase("learn"):
        with found.phase("forward"):
            pass
        with found.phase("backward"):
            pass
    assert paths(found) == {"learn": 1, "learn/forward": 1, "learn/backward": 1}


def test_a_phase_that_calls_itself_lies_below_itself() -> None:
    found = marks()
    with found.phase("search"), found.phase("search"), found.phase("search"):
        pass
    assert paths(found) == {"search": 1, "search/search": 1, "search/search/search": 1}


def test_an_exception_closes_its_phases() -> None:
    found = marks()
    with pytest.raises(ZeroDivisionError), found.phase("a"), found.phase("b"):
        raise ZeroDivisionError
    with found.phase("c"):
        pass
    assert paths(found) == {"a": 1, "a/b": 1, "c": 1}


def test_time_is_inclusive() -> None:
    found = marks()
    with found.phase("outer"), found.phase("inner"):
        time.sleep(0.01)
    outer, inner = found.main.nodes
    assert outer.total >= inner.total >= 0.01


def test_threads_are_kept_apart() -> None:
    found = marks()

    def work() -> None:
        with found.phase("collect"):
            pass

    with found.phase("learn"):
        thread = threading.Thread(target=work, name="collector")
        thread.start()
        thread.join()
    assert paths(found) == {"learn": 1}
    collector = next(state for state in found.states if state.name == "collector")
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
    found = timing(0, 2)

    def work() -> None:
        with found.phase("collect"):
            barrier.wait()

    for _ in found.steps(range(9)):
        barrier = threading.Barrier(3)
        pool = [threading.Thread(target=work, name=f"actor_{number}") for number in range(3)]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
    row = next(row for row in found.result()["phases"] if row["path"] == "collect")
    assert (row["thread"], row["count"], row["p50"]) == ("actor", 3, None)


def test_a_flood_of_names_stays_bounded() -> None:
    found = marks()
    for number in range(NODE_LIMIT + 50):
        with found.phase(f"batch {number}"):
            pass
    assert len(found.main.nodes) == NODE_LIMIT
    assert found.dropped_phases == 50


@pytest.mark.parametrize("name", ["", "a\nb", None, 3])
def test_a_name_that_can_not_be_shown_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a phase's name must be a printable string"):
        marks().phase(name)


@pytest.mark.parametrize("name", ["(unattributed)", "(setup)"])
def test_a_name_that_the_document_has_itself_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="which is what no phase covers"):
        marks().phase(name)


def timing(warmup: int, steps: int) -> TimingRecorder:
    return TimingRecorder(warmup, steps, lambda _: None)


def test_the_loop_ends_when_the_window_is_complete() -> None:
    found = timing(3, 5)
    assert list(found.steps(range(100))) == list(range(8))
    assert found.loop.complete
    assert list(found.steps(range(100))) == []


def test_several_loops_share_one_window() -> None:
    found = timing(3, 5)
    taken = [list(found.steps(range(3))) for _ in range(4)]
    assert [len(items) for items in taken] == [3, 3, 2, 0]


def test_warmup_is_kept_out_of_the_window() -> None:
    found = timing(2, 3)
    for number in found.steps(range(100)):
        with found.phase("learn"):
            time.sleep(0.02 if number < 2 else 0.001)
    result = found.result()
    learn = next(row for row in result["phases"] if row["path"] == "learn")
    assert result["warmup_seconds"] >= 0.04
    assert learn["total"] < 0.015
    assert learn["count"] == 1


def test_fetching_an_item_belongs_to_its_step() -> None:
    found = timing(0, 3)
    for _ in found.steps(time.sleep(0.005) for _ in range(9)):
        pass
    assert found.result()["step_time"]["p50"] >= 0.005


def test_a_phase_around_the_loop_does_not_hide_those_inside() -> None:
    found = timing(0, 3)
    with found.phase("train"):
        for _ in found.steps(range(9)):
            with found.phase("learn"):
                pass
        with found.phase("save"):
            pass
    assert [node.path for node in found.main.nodes] == ["train", "learn", "train/save"]


def test_phases_after_the_window_are_not_counted() -> None:
    found = timing(0, 3)
    for _ in found.steps(range(9)):
        with found.phase("learn"):
            pass
    with found.phase("learn"):
        time.sleep(0.02)
    learn = next(row for row in found.result()["phases"] if row["path"] == "learn")
    assert learn["count"] == 1
    assert learn["total"] < 0.005


def test_steps_in_another_thread_are_the_main_ones() -> None:
    found = timing(0, 5)

    def train() -> None:
        for _ in found.steps(range(9)):
            with found.phase("learn"):
                pass

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    rows = {row["path"]: row["thread"] for row in found.result()["phases"]}
    assert rows == {"learn": "main", "(unattributed)": "main"}


def test_steps_inside_steps_are_refused() -> None:
    found = timing(0, 5)
    outer = iter(found.steps(range(9)))
    next(outer)
    with pytest.raises(RuntimeError, match=r"inside another paceline\.steps"):
        list(found.steps(range(9)))


def test_a_gauge_shows_the_window_and_a_count_only_adds_there() -> None:
    found = timing(2, 2)
    for number in found.steps(range(9)):
        found.gauge("queue", number)
        found.count("games", 1)
    result = found.result()
    assert (result["gauges"]["queue"], result["counts"]["games"]) == (2.5, 1.0)


def test_long_windows_keep_a_sample_of_each_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.measured.timing.SERIES_LIMIT", 10)
    found = timing(0, 95)
    for _ in found.steps(range(1000)):
        with found.phase("learn"):
            time.sleep(0.0002)
    learn = next(row for row in found.result()["phases"] if row["path"] == "learn")
    assert 0.0002 <= learn["p50"] <= learn["p99"] < 95 * learn["total"]
    assert learn["total"] >= 0.0002


def test_a_nullcontext_costs_as_much_as_a_disabled_phase() -> None:
    def best(mark: object) -> float:
        return min(_time(mark) for _ in range(20))

    assert best(paceline.phase) < 4 * best(lambda _: nullcontext())


def _time(mark: object) -> float:
    started = time.perf_counter()
    for _ in range(2000):
        with mark("x"):  # type: ignore[operator]
            pass
    return time.perf_counter() - started
