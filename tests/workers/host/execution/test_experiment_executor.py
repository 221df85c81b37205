"""Experiments executed on real commits, with a real repository, database and harness."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest
from paceline import manifest, metrics

from dashboard import experiments
from dashboard.experiments import ExperimentDesign, Side
from dashboard.experiments.paired_phases import paired_phases
from dashboard.host_protocol import ExperimentAssignment, Lease, PairMeasured
from dashboard.models import Case, Commit, Configuration, Document, Experiment, Metric, Project, Run
from tests.workers import repositories
from tests.workers.conftest import MANIFEST, Host, Requested
from tests.workers.scripts import UNDISTURBED
from workers.host.execution import pair_values
from workers.host.execution.executor import PreparedCode
from workers.host.execution.experiment_executor import SIDES, ExperimentExecutor, seed_of_pair
from workers.host.execution.launching import NO_SWEEP, TIMED_ONLY

SHORT = MANIFEST.replace("steps = 20", "steps = 10")
# Waiting takes as long while other tests run beside it.
LOOP = (
    UNDISTURBED
    + """
import time
import paceline

for _ in paceline.steps(range(10**9)):
    with paceline.phase("learn"):
        time.sleep({seconds})
"""
)


# What the phase `learn` does in a step grows with the steps before it.
GROWING = (
    UNDISTURBED
    + """
import sys
import time
import paceline

n = int(sys.argv[sys.argv.index("--n") + 1])
for at in paceline.steps(range(n)):
    # Long enough for what other work adds to the loops that don't grow.
    with paceline.phase("act"):
        time.sleep(0.0008)
    with paceline.phase("learn"):
        # Not at all for nothing: that hands the processor to whoever waits for it.
        if {each}:
            time.sleep({each} * at)
"""
)
SWEPT = (
    SHORT.replace("size = 10", "n = 1000000")
    + """
[benchmarks.tiny.scaling]
parameter = "n"
values = [50, 100, 200]
repetitions = 1
"""
)
# What a document says of a process that may take turns with another one.
ALONE = {
    "environment": {"path": "cpu", "memory_bytes": 10**12},
    "processes": [{"name": "main", "peak_memory": 10**7}],
    "phases": [{"thread": "main"}],
}


@pytest.fixture
def undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is slept for takes as long beside other tests, which set no pair aside.

    Which work does, test_pair_values.py says.
    """
    monkeypatch.setattr(pair_values, "is_disturbed", lambda *_: False)


@pytest.fixture
def suspected(host: Host, requested: Requested) -> Experiment:
    """A proof: the second commit takes four times as long as the first."""
    run = requested({"train.py": LOOP.format(seconds=0.004), "paceline.toml": SHORT})
    return ask_proof(run, {"train.py": LOOP.format(seconds=0.016)}, "step_time", (0.004, 0.016))


def ask_proof(run: Run, files: dict[str, str], name: str, levels: tuple[float, float]) -> Experiment:
    """Whether the commit with these files is worse than the run's."""
    base, head = both_sides(run, files)
    design = ExperimentDesign(
        purpose="proof",
        question="test",
        base=base,
        head=head,
        metric=get_metric(name),
        before=levels[0],
        after=levels[1],
    )
    return experiments.request_experiment(run.commit.project, design)


def both_sides(run: Run, files: dict[str, str]) -> tuple[Side, Side]:
    """The run's commit, and one after it with these files; the run is done."""
    sha = repositories.commit_files(Path(run.commit.project.repository), files)
    row = run.commit
    head = row.project.commits.create(
        hash=sha, branch="main", position=row.position + 1, committed_at=row.committed_at
    )
    Run.objects.update(state="done")
    return Side(row, run.configuration), Side(head, run.configuration)


def get_metric(name: str) -> Metric:
    known = metrics.METRICS[name]
    return Metric.objects.create(name=known.name, unit=known.unit, better=known.better, kind=known.kind)


def let_take_turns(experiment: Experiment) -> None:
    """Let the base have been measured before, as one process that another one may take turns with."""
    run = Run.objects.get(commit=experiment.base_commit)
    Document.objects.create(run=run, format="paceline.document/1", body=ALONE, sha256="0" * 64)


def is_base_first(experiment: Experiment) -> list[bool]:
    return list(experiment.pairs.values_list("base_first", flat=True))


BUILT = """
[environment]
build = ["cp src/value.py built.py"]
python_path = ["src"]
"""


def test_each_side_has_its_own_code(host: Host, requested: Requested) -> None:
    """Both are installed before either is measured: what is built of one never stands in for the other's."""
    run = requested({"src/value.py": "VALUE = 1\n", "paceline.toml": SHORT + BUILT})
    ask_proof(run, {"src/value.py": "VALUE = 2\n"}, "step_time", (1e-4, 2e-4))
    assignment = experiments.claim_experiment("default", "gpu-1")
    assert assignment
    executor = ExperimentExecutor(assignment, -1, host.configuration, host.client)
    sides = [executor.prepare_side(name) for name in SIDES]
    shown = [
        subprocess.check_output(
            [side.python, "-c", "import built, psutil; print(built.VALUE)"], cwd=side.code.folder, text=True
        )
        for side in sides
    ]
    assert shown == ["1\n", "2\n"]
    assert sides[0].python != sides[1].python


@pytest.mark.usefixtures("undisturbed")
def test_interleaved_repetitions_decide(host: Host, requested: Requested) -> None:
    """Each pair has hashes of its own, the same ones on both sides.

    Where texts lie in a set is no difference between two commits.
    """
    hashes = "\nimport os\npaceline.quality('hash_seed', int(os.environ['PYTHONHASHSEED']) % 9973)\n"
    run = requested({"train.py": LOOP.format(seconds=0.008) + hashes, "paceline.toml": SHORT})
    slower = {"train.py": LOOP.format(seconds=0.032) + hashes}
    suspected = ask_proof(run, slower, "step_time", (0.008, 0.032))
    assert host.execute_next()
    suspected.refresh_from_db()
    assert (suspected.state, suspected.verdict, suspected.in_turns) == ("done", "confirmed", False)
    assert (suspected.ratio or 0) > 1.5
    order = is_base_first(suspected)
    assert order[0] != order[1]
    assert order[2] != order[3]
    phases = paired_phases(suspected)
    assert phases
    assert phases.pairs == suspected.pairs.filter(disturbed=False).count()
    assert 0 < 1.5 * phases.before["learn"] < phases.after["learn"] < 1
    base = suspected.base_commit.short
    assert suspected.commands[0].startswith(f"git checkout {base} && python -m paceline run")
    seeds = [pair.others["quality.hash_seed"] for pair in suspected.pairs.all()]
    assert all(seed["base"] == seed["head"] for seed in seeds)
    assert len({seed["base"] for seed in seeds}) == len(seeds) > 3


@pytest.mark.usefixtures("undisturbed")
def test_interleaved_sweeps_decide_on_an_exponent(host: Host, requested: Requested) -> None:
    """Both are the same while a window of ten steps is measured: only whole loops of many steps tell."""
    run = requested({"train.py": GROWING.format(each=0), "paceline.toml": SWEPT})
    asked = ask_proof(run, {"train.py": GROWING.format(each=3e-5)}, "scaling_exponent", (1.0, 1.6))
    assert host.execute_next()
    asked.refresh_from_db()
    assert (asked.state, asked.verdict, asked.in_turns) == ("done", "confirmed", False)
    # A part of the loop became quadratic: its exponent grows by less than 1, and the ratio is e ** that.
    assert 0.4 < math.log(asked.ratio or 1) < 1.1
    assert asked.commands[1].endswith("--repetitions=1 --no-counting")
    phases = paired_phases(asked)
    assert phases
    assert (phases.at, max(phases.deltas, key=lambda path: phases.deltas[path])) == (
        "the whole loop with n 200",
        "learn",
    )
    assert phases.after["learn"] > 10 * phases.before["learn"]


def test_a_person_is_told_how_large_the_difference_is(
    host: Host, requested: Requested, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the wanted precision, by steps in turn, as many of both sides in each pair.

    With the functions of both sides, whose documents say that one process may take turns with another.
    """
    run = requested({"train.py": LOOP.format(seconds=0.004), "paceline.toml": SHORT})
    base, head = both_sides(run, {"train.py": LOOP.format(seconds=0.016)})
    design = ExperimentDesign(
        purpose="person", base=base, head=head, metric=get_metric("step_time"), precision=1.0
    )
    asked, _ = experiments.request_estimate(run.commit.project, design)
    handed_in: list[PairMeasured] = []
    add_pair = host.client.add_pair

    def hand_in(lease: Lease, pair: PairMeasured, commands: Sequence[str]) -> str:
        handed_in.append(pair)
        return add_pair(lease, pair, commands)

    monkeypatch.setattr(host.client, "add_pair", hand_in)
    assert host.execute_next()
    asked.refresh_from_db()
    assert (asked.state, asked.verdict, asked.in_turns) == ("done", "estimated", True)
    assert (asked.low or 0) < (asked.ratio or 0) < (asked.high or 0)
    assert 1.5 < (asked.ratio or 0) < 6
    first, second = asked.commands
    assert first.startswith(
        f"git worktree add --detach ../turns/base {asked.base_commit.short} && {{ (cd ../turns/base"
    )
    assert first.endswith("--turns=../first) & }")
    assert second.endswith("--turns=../second)")
    assert handed_in
    for pair in handed_in:
        base_steps, head_steps = pair.steps["base"], pair.steps["head"]
        assert len(base_steps) == len(head_steps) == 10
        assert 2 < median(head_steps) / median(base_steps) < 6
    assert all(asked.profiles[side]["functions"] for side in ("base", "head"))
    assert asked.seconds > sum(asked.pairs.values_list("seconds", flat=True))


CALLING = (
    UNDISTURBED
    + """
import paceline

def push(number):
    return number

for _ in paceline.steps(range(10**9)):
    for number in range({calls}):
        push(number)
"""
)


def test_an_exact_counter_takes_two_pairs(host: Host, requested: Requested) -> None:
    run = requested({"train.py": CALLING.format(calls=1), "paceline.toml": SHORT})
    base, head = both_sides(run, {"train.py": CALLING.format(calls=4)})
    metric = get_metric("function_calls")
    design = ExperimentDesign(purpose="person", base=base, head=head, metric=metric)
    asked, _ = experiments.request_estimate(run.commit.project, design)
    # As if the functions of both sides were counted before.
    Experiment.objects.update(profiles={"base": {}, "head": {}})
    assert host.execute_next()
    asked.refresh_from_db()
    assert (asked.verdict, asked.pairs.count(), asked.in_turns) == ("estimated", 2, False)
    assert asked.low == asked.ratio == asked.high
    pair = asked.pairs.first()
    assert pair
    assert pair.head - pair.base == 3
    assert asked.commands[0].endswith("--repetitions=1 --no-sweep")


@pytest.mark.usefixtures("suspected")
def test_nothing_is_learned_with_other_seeds_where_functions_are_counted(host: Host) -> None:
    assignment = experiments.claim_experiment("default", "gpu-1")
    assert assignment
    executor = ExperimentExecutor(assignment, -1, host.configuration, host.client)
    benchmark = manifest.parse_manifest(SHORT + "seed = 5\n", "test").benchmarks["tiny"]
    code: Any = SimpleNamespace(benchmark=benchmark, folder=Path(), kept_files="")
    prepared = PreparedCode(code, Path(sys.executable))
    counted = executor.measurement("base", prepared, None, NO_SWEEP)
    assert (counted.seed, counted.hash_seed) == (5, None)
    assert executor.measurement("base", prepared, None, TIMED_ONLY).seed is None


@pytest.mark.parametrize(("kept", "in_turns"), [(False, False), (True, False), (True, True)])
def test_a_printed_command_measures_the_commit(
    host: Host, suspected: Experiment, tmp_path: Path, kept: bool, in_turns: bool
) -> None:
    """By hand, in a clone: the words of a parameter that a shell would part reach the script as they are."""
    Project.objects.update(manifest=SHORT if kept else "")
    Case.objects.update(params={"size": 10, "who": "two words", "fast": True, "digits": "7"})
    (tmp_path / "paceline.toml").write_text(SHORT)
    clone = tmp_path / "clone"
    repositories.run_git(tmp_path, "clone", "--quiet", suspected.project.repository, str(clone))
    if in_turns:
        let_take_turns(suspected)
    assignment = experiments.claim_experiment("default", "gpu-1")
    assert assignment
    executor = ExperimentExecutor(assignment, -1, host.configuration, host.client)
    benchmark = manifest.parse_manifest(SHORT, "test").benchmarks["tiny"]
    commits = (assignment.base.commit, assignment.head.commit)
    codes: Any = [SimpleNamespace(commit=commit, benchmark=benchmark) for commit in commits]
    printed = [
        executor.repeat_command(name, PreparedCode(code, Path(sys.executable)))
        for name, code in zip(SIDES, codes, strict=True)
    ]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    place: dict[str, Any] = {"cwd": clone, "env": {**os.environ, "PATH": path}}
    done = subprocess.run(
        ["sh", "-c", "\n".join([*printed, "wait"])], capture_output=True, text=True, timeout=100, **place
    )
    assert done.stdout.count("step_time ") == 2, done.stderr
    checked_out = tmp_path / "turns" / "head" if in_turns else clone
    assert (done.returncode, repositories.head_commit(checked_out)) == (0, assignment.head.commit)
    assert all("--set=fast=true" in line for line in printed)
    drawn = f"--hash-seed={seed_of_pair(assignment.lease.key, 0)}"
    assert all(drawn in line for line in printed)


def test_an_experiment_goes_before_history(host: Host, suspected: Experiment) -> None:
    Run.objects.update(state="requested")
    assert isinstance(host.client.claim({}), ExperimentAssignment)


@pytest.mark.parametrize("in_turns", [False, True])
def test_a_commit_that_does_not_run_is_named(host: Host, suspected: Experiment, in_turns: bool) -> None:
    if in_turns:
        let_take_turns(suspected)
    source = Path(suspected.project.repository)
    broken = repositories.commit_files(source, {"train.py": "raise RuntimeError('no such snake')"})
    Commit.objects.filter(pk=suspected.head_commit_id).update(hash=broken)
    assert host.execute_next()
    suspected.refresh_from_db()
    assert (suspected.verdict, suspected.state) == ("untestable", "done")
    assert suspected.reason["code"] == "side failed"
    assert suspected.reason["text"].startswith(f"{broken[:10]}: train.py crashed with exit status 1")


def test_of_two_cases_of_one_commit_the_one_that_does_not_run_is_named(
    host: Host, requested: Requested
) -> None:
    short = (
        UNDISTURBED
        + "import sys\nimport paceline\n\n"
        + "for _ in paceline.steps(range({steps})):\n    pass\n"
    )
    steps = "10**9 if '10' in sys.argv[1:] else 3"
    run = requested({"train.py": short.format(steps=steps), "paceline.toml": SHORT})
    base = Side(run.commit, run.configuration)
    case = Case.objects.create(project=run.case.project, benchmark="tiny", key="size=11", params={"size": 11})
    other = Configuration.objects.create(
        case=case, version=run.configuration.version, pool=run.configuration.pool, quick=False
    )
    Run.objects.update(state="done")
    head = Side(run.commit, other)
    design = ExperimentDesign(purpose="claim", base=base, head=head, metric=get_metric("step_time"))
    asked, _ = experiments.request_estimate(case.project, design)
    assert host.execute_next()
    asked.refresh_from_db()
    assert asked.verdict == "untestable"
    named = f"head tiny[size=11] at {run.commit.hash[:10]}: train.py ended after 3 of "
    assert asked.reason["text"].startswith(named)


def test_a_phase_that_a_side_lacks_is_named_with_those_that_it_has(host: Host, suspected: Experiment) -> None:
    """What that pair took is counted, though nothing of it is kept."""
    time_of_phase = get_metric("phase_time")
    Experiment.objects.filter(pk=suspected.pk).update(metric=time_of_phase, phase="learning")
    assert host.execute_next()
    suspected.refresh_from_db()
    assert suspected.verdict == "untestable"
    first = suspected.base_commit.hash[:10]
    lacks = f"{first}: its document has no phase_time of learning; its phases are learn."
    assert suspected.reason["text"] == lacks
    assert suspected.seconds > 0.5


def test_loops_too_short_for_an_exponent_are_named(host: Host, requested: Requested) -> None:
    empty = UNDISTURBED + "import paceline\n\nfor _ in paceline.steps(range(20)):\n    pass\n"
    run = requested({"train.py": empty, "paceline.toml": SWEPT})
    asked = ask_proof(run, {"train.py": empty + "\n"}, "scaling_exponent", (1.0, 1.6))
    assert host.execute_next()
    asked.refresh_from_db()
    assert asked.verdict == "untestable"
    assert "has no scaling_exponent: the sweep's shortest loop took" in asked.reason["text"]
    assert asked.reason["text"].endswith("sweep over larger values.")


def test_a_message_without_an_experiment_does_nothing(host: Host) -> None:
    assert not host.execute_next()
