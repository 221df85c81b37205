"""Two measurements whose steps alternate, by the real command line."""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
from array import array
from types import SimpleNamespace
from typing import Any, cast

import pytest
from paceline.measured import timing
from paceline.measured.cuda_device import PhaseEvents
from paceline.measured.phase_nodes import ThreadState
from paceline.measured.phase_rows import TimedPhaseNode, TimedWindow, own_step_times
from paceline.measured.turns import Turns

from tests.harness.conftest import Project

# Each step says when it ended, and on which processors its thread may be.
LOOP = """
import json, os, pathlib, sys, time
import paceline
side = sys.argv[2]
ends = []
{setup}
for number in paceline.steps(range({most})):
    with paceline.phase("learn"):
        sum(range(20000))
    {inside}
    ends.append((time.perf_counter(), len(os.sched_getaffinity(0))))
pathlib.Path(side + ".ends").write_text(json.dumps(ends))
pathlib.Path(side + ".after").write_text(str(len(os.sched_getaffinity(0))))
"""

# A kernel in whose eyes whatever doesn't run waits for a processor, while it is the other's turn as well.
NEVER_ASLEEP = """
from paceline.measured import processor
processor.processor_wait_seconds = lambda: time.perf_counter() - time.thread_time()
"""


def start_run(project: Project, side: str, pipe: str, *arguments: str) -> subprocess.Popen[str]:
    command = project.command(
        "run", "tiny", f"--set=side={side}", f"--turns={pipe}", f"--document={side}.json"
    )
    return subprocess.Popen(
        [*command, "--repetitions=1", "--timed-only", *arguments],
        cwd=project.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def write_project(
    project: Project, setup: str = "", inside: str = "", most: str = "10**6", **settings: object
) -> None:
    """`most`: the steps that the loop has; `steps` of them are measured."""
    script = LOOP.format(setup=setup, inside=inside, most=most)
    project.write(script, **{"params": {"side": "a"}, "steps": 400, **settings})


def run_together(project: Project) -> list[subprocess.Popen[str]]:
    running = [start_run(project, "a", "first"), start_run(project, "b", "second")]
    for process in running:
        process.communicate(timeout=60)
    return running


def step_ends(project: Project, side: str) -> list[tuple[float, int]]:
    found: list[tuple[float, int]] = json.loads((project.folder / f"{side}.ends").read_text())
    return found


def turns_taken(project: Project) -> list[str]:
    """Whose steps ended, run after run."""
    marked = sorted((moment, side) for side in "ab" for moment, _ in step_ends(project, side))
    return [side for side, _ in itertools.groupby(side for _, side in marked)]


def read_document(project: Project, side: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.folder / f"{side}.json").read_text())
    return found


def test_steps_alternate_on_one_processor(project: Project) -> None:
    write_project(project)
    assert [process.returncode for process in run_together(project)] == [0, 0]
    taken = turns_taken(project)
    # Both take 410 steps of about half a millisecond, 30 ms at a time.
    assert len(taken) >= 4
    for side in "ab":
        processors = {count for _, count in step_ends(project, side)}
        assert 1 in processors
        allowed = int((project.folder / f"{side}.after").read_text())
        assert processors <= {1, allowed}
        (repetition,) = read_document(project, side)["repetitions"]
        # What it paused is in no step, and is no waiting for a processor.
        window = repetition["window"]["end"] - repetition["window"]["start"]
        assert repetition["seconds"] < 0.8 * window
        assert repetition["steps"] == 400
        own = repetition["phase_times"]
        assert own["every"] == 1
        assert [len(own["phases"][path]) for path in ("learn", "(unattributed)")] == [400, 400]
        together = sum(map(sum, own["phases"].values())) / 400
        assert together == pytest.approx(repetition["step_time"]["mean"], rel=1e-3)


def test_a_phase_has_the_time_of_those_nested_in_it_in_no_step() -> None:
    state = ThreadState("main", threading.current_thread())
    root = TimedPhaseNode("", None, state)
    learn = TimedPhaseNode("learn", root, state)
    backward = TimedPhaseNode("backward", learn, state)
    learn.series, backward.series = array("d", [5.0, 6.0]), array("d", [4.0, 2.0])
    totals = {id(learn): (11.0, 2), id(backward): (6.0, 2)}
    window = TimedWindow(2, 20.0, [8.0, 12.0], totals, cast(PhaseEvents, None))
    assert own_step_times([learn, backward], root, window) == {
        "every": 1,
        "phases": {"(unattributed)": [3.0, 6.0], "learn": [1.0, 4.0], "learn/backward": [4.0, 2.0]},
    }


def test_whose_turn_it_is_not_does_not_wait_for_a_processor(project: Project) -> None:
    """With the other's turns counted it would wait for longer than all of its own take."""
    write_project(project, setup=NEVER_ASLEEP)
    assert [process.returncode for process in run_together(project)] == [0, 0]
    for side in "ab":
        (repetition,) = read_document(project, side)["repetitions"]
        assert 0 <= repetition["waited"] < 1


def test_waiting_for_the_other_to_hand_over_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing.processor, "processor_wait_seconds", lambda: 5.0)
    turns = cast(Turns, SimpleNamespace(waited=2.0, paused=0.0))
    assert timing.TimingRecorder(1, 2, print, turns).loop._processor_wait() == 3.0
    assert timing.TimingRecorder(1, 2, print).loop._processor_wait() == 5.0


def test_what_goes_on_while_it_waits_is_not_interrupted(project: Project) -> None:
    write_project(
        project,
        setup="import threading; threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
    )
    assert [process.returncode for process in run_together(project)] == [0, 0]
    assert turns_taken(project) == ["a", "b"]
    assert {count for side in "ab" for _, count in step_ends(project, side)} == {
        int((project.folder / "a.after").read_text())
    }


def test_a_thread_that_is_started_in_the_loop_leaves_the_one_processor(project: Project) -> None:
    """The first turn's end lets it: after at most a few hundred steps, however fast they are."""
    sleep = "threading.Thread(target=time.sleep, args=(600,), daemon=True)"
    begin = f"if number == 5: import threading; began = {sleep}; began.start()"
    last = "if number == 2000: ends.append((time.perf_counter(), len(os.sched_getaffinity(began.native_id))))"
    write_project(project, inside=f"{begin}\n    {last}", steps=2000)
    assert [process.returncode for process in run_together(project)] == [0, 0]
    counts = [count for _, count in step_ends(project, "a")]
    assert min(counts[-200:]) == int((project.folder / "a.after").read_text())


def test_one_that_fails_does_not_hold_the_other(project: Project) -> None:
    write_project(project, inside="if number == 60 and side == 'b': raise RuntimeError('no such snake')")
    assert [process.returncode for process in run_together(project)] == [0, 1]
    assert len(step_ends(project, "a")) == 410


@pytest.mark.parametrize("shorter", ["a", "b"])
def test_one_whose_window_is_shorter_does_not_hold_the_other(project: Project, shorter: str) -> None:
    write_project(project, most=f"200 if side == '{shorter}' else 10**6")
    codes = dict(zip("ab", (process.returncode for process in run_together(project)), strict=True))
    assert codes == {shorter: 1, ({"a", "b"} - {shorter}).pop(): 0}


def test_more_threads_stay_where_they_are(project: Project) -> None:
    write_project(project, threads=2)
    assert [process.returncode for process in run_together(project)] == [0, 0]
    assert len(turns_taken(project)) >= 4
    counts = {count for side in "ab" for _, count in step_ends(project, side)}
    assert counts == {int((project.folder / "a.after").read_text())}


@pytest.mark.parametrize(
    ("turns", "more", "sentence"),
    [
        ("third", ["--repetitions=1"], "--turns third must end in first or second"),
        ("nowhere/first", ["--repetitions=1"], "--turns nowhere/first: there is no folder nowhere"),
        ("tiny.py/first", ["--repetitions=1"], "--turns tiny.py/first: there is no folder tiny.py"),
        ("first", [], "--turns first needs --repetitions 1: each one has a partner of its own"),
    ],
)
def test_what_would_wait_for_ever_is_refused(
    project: Project, turns: str, more: list[str], sentence: str
) -> None:
    ended = project.call("run", "tiny", f"--turns={turns}", *more)
    assert (ended.returncode, ended.stderr) == (1, f"paceline: {sentence}\n")


def test_ranks_take_no_turns(project: Project) -> None:
    """One that is stopped leaves the others to go on to their next collective."""
    manifest = project.folder / "paceline.toml"
    manifest.write_text(manifest.read_text().replace("script = ", "processes = 2\nscript = "))
    ended = project.call("run", "tiny", "--turns=first", "--repetitions=1")
    assert ended.returncode == 1
    assert "--turns first: tiny has 2 ranks, of which none can be stopped alone" in ended.stderr


def test_a_file_in_a_pipes_place_is_refused(project: Project) -> None:
    (project.folder / "second").write_text("mine")
    ended = project.call("run", "tiny", "--turns=first", "--repetitions=1")
    sentence = "--turns first: second is something else than a pipe, name another folder"
    assert (ended.returncode, ended.stderr) == (1, f"paceline: {sentence}\n")
