import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from paceline.watching.step_watch import StepWatch

from tests.harness.conftest import LOOP, Project

GOLDEN = Path(__file__).parents[2] / "golden" / "paceline.document-1.json"

FAILING = {
    "tiny.py crashed with exit status 1": "print('before')\nraise ValueError('broken')",
    "tiny.py crashed with exit status 3": "import sys; sys.exit(3)",
    "tiny.py never iterated over paceline.steps": "print('nothing to do')",
    "tiny.py ended after 5 of 110 steps": "import paceline\nfor n in paceline.steps(range(5)): pass",
    "ended without a result": "import os; os._exit(0)",
    "tiny.py was killed by signal 9": "import os; os.kill(os.getpid(), 9)",
    "a count's name must be a printable string of at most 190 characters, not 'tokens": (
        "import paceline\nfor n in paceline.steps(range(999)): paceline.count('tokens\\tseen')"
    ),
    "paceline.steps was called inside another": (
        "import paceline\nfor n in paceline.steps(range(9)):\n  for m in paceline.steps(range(9)): pass"
    ),
}


@pytest.mark.parametrize("sentence", FAILING)
def test_a_failing_benchmark_is_one_sentence(project: Project, sentence: str) -> None:
    project.write(FAILING[sentence])
    ended = project.call("run", "tiny", "--document", "out.json")
    assert ended.returncode == 1
    assert sentence in ended.stderr
    assert ended.stderr.strip().splitlines()[-1].startswith("paceline: ")
    assert not (project.folder / "out.json").exists()


def test_a_loop_too_short_for_counting_keeps_what_was_timed(prepared_project: Project) -> None:
    prepared_project.write("import paceline, torch\nfor n in paceline.steps(range(149)): torch.ones(1)")
    measured = prepared_project.measure()
    names = {row["name"] for row in measured["metrics"]}
    assert "step_time" in names
    assert not names & {"function_calls", "tensor_operations", "phase_memory"}
    warning = next(row for row in measured["warnings"] if row["code"] == "nothing_counted")
    windows = "of the 210 steps that counting takes (10 to warm up and two windows of 100)"
    assert warning["message"] == f"nothing was counted: tiny.py ended after 149 {windows}"
    assert warning["advice"] == "let its loop run longer or lower counting_steps"


def test_a_loop_without_torch_is_counted_in_one_window(project: Project) -> None:
    project.write("import paceline\nfor n in paceline.steps(range(119)): pass", counting_warmup_steps=20)
    warning = next(row for row in project.measure()["warnings"] if row["code"] == "nothing_counted")
    assert (
        "ended after 119 of the 120 steps that counting takes (20 to warm up and a window of 100)"
        in (warning["message"])
    )


def test_what_ended_well_is_told_apart_from_what_crashed(project: Project) -> None:
    said = {}
    for script in ("print('done')", "import paceline\nfor n in paceline.steps(range(5)): print(n)", "1 / 0"):
        project.write(script)
        said[script] = project.call("run", "tiny").stderr.splitlines()[-2]
    well = "--- it ended without an error"
    assert list(said.values()) == [well, well, "---"]


def test_a_forked_process_leaves_no_result(project: Project) -> None:
    project.write(f"import os, sys\nif os.fork() == 0: sys.exit(0)\nos.wait()\n{LOOP}")
    assert project.call("run", "tiny").returncode == 0


def test_the_last_lines_of_the_output_are_shown(project: Project) -> None:
    project.write("print('first words')\nraise ValueError('broken')")
    stderr = project.call("run", "tiny").stderr
    assert stderr.count("first words") == 1
    assert "runpy" not in stderr
    assert "ValueError: broken" in stderr


def test_the_time_limit_ends_the_run(project: Project) -> None:
    project.write("import time\ntime.sleep(100)\nopen('slept', 'w')", time_limit=1)
    assert "took longer than its time_limit of 1 s" in project.call("run", "tiny").stderr
    assert not (project.folder / "slept").exists()


@pytest.mark.parametrize(
    ("script", "mark"),
    [("import time\ntime.sleep(60)", "--- its time limit was over"), ("", "--- it ended without an error")],
)
def test_the_end_of_a_silent_script_is_marked(project: Project, script: str, mark: str) -> None:
    project.write(script, time_limit=2)
    assert project.call("run", "tiny").stderr.splitlines()[-2:-1] == [mark]


def test_a_hang_is_told_from_a_limit_that_is_too_low(tmp_path: Path) -> None:
    hanging = start_run(tmp_path / "hanging", "if n == 5: time.sleep(60)")
    slow = start_run(tmp_path / "slow", "time.sleep(0.2)")
    for run, said in ((hanging, "at least 5 steps of 110 seen, the last "), (slow, " ago: raise it or")):
        _, stderr = run.communicate(timeout=60)
        assert said in stderr.splitlines()[-1]
        assert ("raise it" in stderr) == (run is slow)
        assert stderr.splitlines()[-2] == "--- its time limit was over"


def start_run(folder: Path, work: str) -> subprocess.Popen[str]:
    """Start a run whose every step does this work; its limit is long beside the start of a process."""
    folder.mkdir()
    project = Project(folder)
    project.write(f"import paceline, time\nfor n in paceline.steps(range(200)):\n    {work}", time_limit=8)
    return subprocess.Popen(project.command("run", "tiny"), cwd=folder, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("told", "stalled"),
    [
        # Five steps within a second, then none for the rest of ten.
        ([(0, 1), (5, 1.5)], True),
        # An evaluation came before that took a third as long.
        ([(0, 1), (5, 1.5), (6, 4)], False),
        # The second step may take as long as the first one's compiling.
        ([(0, 1), (1, 1.5)], False),
    ],
)
def test_steps_stay_away(told: list[tuple[int, float]], stalled: bool) -> None:
    watch = StepWatch(0.0)
    for done, now in told:
        watch.note(done, now)
    assert watch.has_stalled(10.0) == stalled


@pytest.mark.parametrize(
    ("told", "still"),
    [
        # The last step is no longer ago than the evaluation before it took.
        ([(0, 1), (5, 1.5), (6, 6), (7, 8)], True),
        ([(0, 1), (5, 1.5), (6, 4)], False),
        # So early nobody knows how far apart steps are.
        ([(0, 1), (2, 9.9)], False),
    ],
)
def test_steps_still_come(told: list[tuple[int, float]], still: bool) -> None:
    watch = StepWatch(0.0)
    for done, now in told:
        watch.note(done, now)
    assert watch.still_steps(10.0) == still


WRONG = {
    ("run", "tinny"): "has no benchmark 'tinny', it has tiny",
    ("run", "tiny", "--set", "batch"): "--set 'batch' must be KEY=VALUE",
    ("run", "tiny", "--repetitions", "0"): "--repetitions is 0, must be between 1 and 100",
    ("run", "tiny", "--manifest", "none.toml"): "none.toml: can't be read",
    ("run", "tiny", "--document", "none/out.json"): "none/out.json: there is no folder none",
    ("run", "tiny", "--document", "."): ".: is a folder, name a file in it",
    ("run", "tiny", "--progress", "/"): "/: is a folder, name a file in it",
    ("show", "none.json"): "none.json: No such file or directory",
    ("show", "paceline.toml"): "paceline.toml: is not valid JSON",
    ("compare", "none.json", "tiny.py"): "none.json: No such file or directory",
    ("run",): "the following arguments are required: name; see paceline run --help",
    ("run", "tiny", "--fast"): "unrecognized arguments: --fast; see paceline --help",
    ("run", "tiny", "--repetitions", "two"): "argument --repetitions: invalid int value: 'two'; see",
    ("lsit",): "invalid choice: 'lsit'",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_wrong_argument_is_one_sentence(project: Project, arguments: tuple[str, ...]) -> None:
    ended = project.call(*arguments)
    assert ended.returncode == 1
    assert WRONG[arguments] in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_documents_that_cannot_be_compared_are_named(project: Project) -> None:
    for name, version in (("a.json", 1), ("b.json", 2)):
        raw = json.loads(GOLDEN.read_text())
        raw["benchmark"]["version"] = version
        (project.folder / name).write_text(json.dumps(raw))
    ended = project.call("compare", "a.json", "b.json")
    assert ended.returncode == 1
    assert ended.stderr.startswith(
        "paceline: a.json and b.json: the documents differ in their benchmark's version"
    )


def test_a_broken_document_is_named_with_its_path(project: Project) -> None:
    raw = json.loads(GOLDEN.read_text())
    raw["metrics"][0]["value"] = "fast"
    (project.folder / "a.json").write_text(json.dumps(raw))
    ended = project.call("show", "a.json")
    assert ended.stderr == "paceline: a.json: metrics[0].value: must be a finite number\n"


def test_modules_of_the_current_folder_are_not_taken_for_pythons(project: Project) -> None:
    for name in ("argparse", "json", "queue", "signal", "statistics", "threading"):
        (project.folder / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    listed = subprocess.run(
        [sys.executable, "-m", "paceline", "list"], cwd=project.folder, capture_output=True, text=True
    )
    assert listed.stdout.startswith("tiny  version 1")


def test_a_reader_that_stops_reading_is_no_failure_to_tell_of(project: Project) -> None:
    command = subprocess.Popen(
        project.command("show", str(GOLDEN)), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert command.stdout is not None
    command.stdout.close()
    assert command.communicate()[1] == b""
    assert command.returncode == 1


def test_a_terminal_of_few_letters_shows_every_document(project: Project) -> None:
    raw = json.loads(GOLDEN.read_text())
    raw["phases"][0]["path"] = "späť"
    (project.folder / "a.json").write_text(json.dumps(raw))
    shown = subprocess.run(
        project.command("show", "a.json"),
        cwd=project.folder,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0
    assert "sp\\xe4\\u0165" in shown.stdout


def test_processors_that_are_not_there_are_named(project: Project) -> None:
    project.write(LOOP, affinity=[4095])
    assert "tiny wants processors that this process may not use: [4095]" in project.call("run", "tiny").stderr


def test_a_missing_script_is_named(project: Project) -> None:
    (project.folder / "tiny.py").unlink()
    assert "benchmarks.tiny.script: there is no tiny.py in" in project.call("run", "tiny").stderr


def start_sleeper(project: Project, *arguments: str) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Start a run whose script starts a process in a session of its own; return both their ids too."""
    script = (
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
        "open('pids.part', 'w').write(f'{os.getpid()} {child.pid}')\n"
        "os.rename('pids.part', 'pids')\n"
        "time.sleep(300)\n"
    )
    project.write(script)
    run = subprocess.Popen(
        project.command("run", "tiny", *arguments), cwd=project.folder, stdin=subprocess.PIPE
    )
    wait_until(lambda: (project.folder / "pids").exists())
    return run, [int(word) for word in (project.folder / "pids").read_text().split()]


def test_a_signal_ends_the_whole_tree(project: Project) -> None:
    run, pids = start_sleeper(project)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=60) == 1
    wait_until(lambda: not any(is_alive(pid) for pid in pids))


def test_the_end_of_stdin_ends_the_whole_tree(project: Project) -> None:
    run, pids = start_sleeper(project, "--watch-stdin")
    assert run.stdin is not None
    run.stdin.close()
    assert run.wait(timeout=60) == 1
    wait_until(lambda: not any(is_alive(pid) for pid in pids))


def test_the_measured_process_dies_with_a_killed_harness(project: Project) -> None:
    run, pids = start_sleeper(project)
    run.kill()
    run.wait(timeout=60)
    wait_until(lambda: not is_alive(pids[0]))
    assert not is_alive(pids[0])
    os.kill(pids[1], signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def wait_until(condition: object, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def test_a_signal_that_was_ignored_before_ends_nothing(project: Project) -> None:
    """As `nohup` starts it."""
    project.write(
        "import os, time\nopen('met', 'w').close()\nwhile not os.path.exists('heard'): time.sleep(0.02)"
    )
    started = project.command("run", "tiny")
    ignoring = [sys.executable, "-c", IGNORING, *started]
    run = subprocess.Popen(ignoring, cwd=project.folder, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: (project.folder / "met").exists())
    run.send_signal(signal.SIGHUP)
    # Whoever heeds it has ended by then.
    time.sleep(0.5)
    (project.folder / "heard").touch()
    _, printed = run.communicate(timeout=60)
    assert "tiny.py never iterated over paceline.steps" in printed


IGNORING = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""
