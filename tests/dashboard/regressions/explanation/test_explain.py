"""From two levels in the database and a real repository to a phase and a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dashboard import models
from dashboard.models import Case, Project, Regression
from dashboard.regressions import judge_run
from dashboard.regressions.decision.facts import Change, Commit, Metric, Series
from dashboard.regressions.decision.requested_facts import Explanation
from dashboard.regressions.explanation.explain import only_commit_that_changed
from dashboard.regressions.row_facts import commit_fact
from tests.dashboard import factories
from tests.dashboard.conftest import Repository

REPLAY = """\
import random

class Replay:
    def __init__(self, size):
        self.items = [None] * size

    def push(self, item):
        self.items.append(item)

    def sample(self, n):
        return random.sample(self.items, n)
"""
SLOW = REPLAY.replace("random.sample(self.items, n)", "[random.choice(list(self.items)) for _ in range(n)]")
COUNT, AT = 9, 5


def commit_history(
    project: Project, repository: Repository, at: int = AT, after: str = SLOW
) -> list[models.Commit]:
    """Commits as the repository has them; from `at` on replay.py is `after`."""
    texts = [f"{REPLAY if place < at else after}\n# commit {place}\n" for place in range(COUNT)]
    hashes = repository.commit_line(
        *((f"Commit {place}", {"replay_py": text}) for place, text in enumerate(texts))
    )
    project.mirror.fetch()
    return [factories.create_commit(project, place, name=name) for place, name in enumerate(hashes)]


def profiled_functions(sample: float) -> list[dict[str, Any]]:
    return [
        factories.profiled_function(
            "Replay.sample", line=10, cumulative=sample, self=0.0001, phase="replay/sample"
        ),
        factories.profiled_function(
            "random:Random.choice", "(built-in)", 0, self=sample - 0.0001, cumulative=sample - 0.0001
        ),
    ]


def judge_history(
    line: list[models.Commit], case: Case, name: str, levels: tuple[float, float], **phases: Any
) -> Regression:
    """`phases`: metric=({path: before}, {path: after}); the regression that was found."""
    for place, commit in enumerate(line):
        late = place >= AT
        value = levels[late] * factories.run_noise(place)
        told = {metric: both[late] for metric, both in phases.items()}
        profile = profiled_functions(0.005 if late else 0.001)
        run = factories.store_measured_run(commit, case, {name: value}, phases=told, functions=profile)
        # Of those before it nothing is to be said.
        if late:
            judge_run(run.pk)
    return Regression.objects.get()


# Of any change: who changed a function is read in the repository alone.
CHANGE = Change(
    pk=None,
    series=Series(1, 1, Metric("step_time", "time")),
    last_good=Commit(1, "a" * 40, "main", 1),
    first_bad=Commit(2, "b" * 40, "main", 2),
    before=0.010,
    after=0.014,
)
TIMES: tuple[Mapping[str, float], Mapping[str, float]] = (
    {"act": 0.004, "replay/sample": 0.001, "learn": 0.005},
    {"act": 0.0042, "replay/sample": 0.005, "learn": 0.0048},
)


def test_the_phase_that_lost_most_is_named(project: Project, case: Case) -> None:
    line = factories.create_commits(project, COUNT)
    regression = judge_history(line, case, "step_time", (0.010, 0.014), phase_self_time=TIMES)
    assert regression.phase == "replay/sample"
    assert regression.phase_share == pytest.approx(1.0, abs=0.01)


def test_a_phase_with_a_series_of_its_own_is_explained_within_it(project: Project, case: Case) -> None:
    for commit in factories.create_commits(project, COUNT):
        late = commit.position >= AT
        room = (0.0002, 0.0009)[late] * factories.run_noise(commit.position)
        # Elsewhere the loop moved by more than this phase costs at all.
        own = {"room": 0.1 * room, "room/read": 0.9 * room, "act": (0.050, 0.051)[late]}
        phases = {"phase_time": {"room": room}, "phase_self_time": own}
        run = factories.store_measured_run(commit, case, {"step_time": 0.0502}, phases=phases)
        models.Series.objects.filter(metric__name="phase_time").update(headline=True)
        judge_run(run.pk)
    regression = Regression.objects.get()
    assert (regression.first_bad.position, regression.series.phase) == (AT, "room")
    assert (regression.phase, regression.phase_share) == ("room/read", pytest.approx(0.9, abs=0.01))


def test_a_disturbed_first_run_hides_no_phase(project: Project, case: Case) -> None:
    for commit in factories.create_commits(project, COUNT):
        late = commit.position >= AT
        time = (0.010, 0.014)[late] * factories.run_noise(commit.position)
        phases, disturbed = {"phase_self_time": TIMES[late]}, commit.position == AT
        run = factories.store_measured_run(
            commit, case, {"step_time": time}, phases=phases, tainted=disturbed
        )
        factories.add_point(run, factories.get_series(run, "tensor_operations"), (40.0, 80.0)[late], False)
        judge_run(run.pk)
    regression = Regression.objects.get()
    assert (regression.first_bad.position, regression.phase) == (AT, "replay/sample")


def test_what_three_nested_phases_share_is_told_by_the_one_around_them(project: Project, case: Case) -> None:
    line = factories.create_commits(project, COUNT)
    nested = {f"update/{name}": 0.001 for name in ("forward", "backward", "optimizer")}
    more = dict.fromkeys(nested, 0.0026)
    times = ({"act": 0.007, **nested}, {"act": 0.0072, **more})
    regression = judge_history(line, case, "step_time", (0.010, 0.015), phase_self_time=times)
    assert regression.phase == "update"
    assert regression.phase_share == pytest.approx(0.96, abs=0.01)


@pytest.mark.parametrize(("bad", "said"), [(AT + 1, True), (AT - 1, False)])
def test_of_commits_that_runs_cannot_tell_the_one_that_changed_the_suspect_is_told(
    tracked: Project, repository: Repository, bad: int, said: bool
) -> None:
    line = commit_history(tracked, repository)
    ends = commit_fact(line[2]), commit_fact(line[bad])
    request = Explanation(CHANGE, *ends, (line[2].hash, line[bad].hash), None)
    suspects = [{"file": "replay.py", "function": "Replay.sample", "changed": True}]
    expected = line[AT].hash if said else ""
    assert only_commit_that_changed(tracked, request, suspects) == expected


def test_a_new_phase_is_named(project: Project, case: Case) -> None:
    line = factories.create_commits(project, COUNT)
    both = ({"act": 0.010}, {"act": 0.010, "check": 0.004})
    regression = judge_history(line, case, "step_time", (0.010, 0.014), phase_self_time=both)
    assert (regression.phase, regression.phase_share) == ("check", 1.0)


def test_memory_is_explained_by_the_memory_of_phases(project: Project, case: Case) -> None:
    line = factories.create_commits(project, COUNT)
    both = ({"(setup)": 8e7, "act": 1e6}, {"(setup)": 1e8, "act": 1e6})
    regression = judge_history(line, case, "peak_memory", (1e8, 1.25e8), phase_memory=both)
    assert regression.phase == "(setup)"
    assert regression.phase_share == pytest.approx(0.8, abs=0.03)


def test_memory_that_grew_beside_what_was_changed_is_no_phases(
    repository: Repository, tracked: Project, case: Case
) -> None:
    both = ({"learn": 1e6}, {"learn": 2.6e7})
    line = commit_history(tracked, repository)
    regression = judge_history(line, case, "peak_memory", (1e8, 1.25e8), phase_memory=both)
    assert (regression.suspects[0]["function"], regression.phase) == ("Replay.sample", "")


def test_taken_over_counters_tell_no_memory_of_phases(project: Project, case: Case) -> None:
    """Most commits before the step were not counted: a phase that holds much hasn't grown by all of it."""
    line = factories.create_commits(project, COUNT)
    for place, commit in enumerate(line):
        late = place >= AT
        counted = late or place % 7 == 0
        run = factories.store_measured_run(
            commit,
            case,
            {"peak_memory": (1e8, 1.25e8)[late] * factories.run_noise(place)},
            phases={"phase_memory": {"(setup)": 8e7, "act": (1e6, 2.6e7)[late]}} if counted else {},
            counted_at="" if counted else line[place // 7 * 7].hash,
        )
        if late:
            judge_run(run.pk)
    regression = Regression.objects.get()
    assert (regression.phase, regression.phase_share) == ("act", pytest.approx(1.0, abs=0.03))


def test_calls_are_explained_by_the_calls_of_phases(project: Project, case: Case) -> None:
    line = factories.create_commits(project, COUNT)
    for place, commit in enumerate(line):
        calls = 600.0 if place < AT else 700.0
        per_phase = {"function_calls": {"act": 300.0, "learn": calls - 300}}
        judge_run(factories.store_measured_run(commit, case, {"function_calls": calls}, phases=per_phase).pk)
    regression = Regression.objects.get()
    assert (regression.phase, regression.phase_share) == ("learn", 1.0)


def test_without_phases_none_is_named(project: Project, case: Case) -> None:
    regression = judge_history(factories.create_commits(project, COUNT), case, "step_time", (0.010, 0.014))
    assert (regression.phase, regression.phase_share) == ("", None)


def test_the_changed_function_is_the_first_suspect(
    repository: Repository, tracked: Project, case: Case
) -> None:
    line = commit_history(tracked, repository)
    regression = judge_history(line, case, "step_time", (0.010, 0.014), phase_self_time=TIMES)
    first = regression.suspects[0]
    assert (first["file"], first["function"], first["changed"]) == ("replay.py", "Replay.sample", True)


def test_a_mirror_that_is_missing_costs_only_the_diff(project: Project, case: Case) -> None:
    regression = judge_history(
        factories.create_commits(project, COUNT), case, "step_time", (0.010, 0.014), phase_self_time=TIMES
    )
    assert [suspect["function"] for suspect in regression.suspects] == ["random:Random.choice"]


def test_memory_names_the_changed_function_that_no_step_calls(
    repository: Repository, tracked: Project, case: Case
) -> None:
    line = commit_history(tracked, repository, after=REPLAY.replace("[None] * size", "[0.0] * (2 * size)"))
    both = ({"(setup)": 8e7}, {"(setup)": 1.05e8})
    regression = judge_history(line, case, "peak_memory", (1e8, 1.25e8), phase_memory=both)
    assert [suspect["function"] for suspect in regression.suspects] == ["Replay.__init__"]


@pytest.mark.parametrize(("file", "blamed"), [("requirements_txt", True), ("README_md", False)])
def test_a_new_torch_is_the_commits_doing_where_it_asked_for_it(
    repository: Repository, tracked: Project, case: Case, file: str, blamed: bool
) -> None:
    texts = ["torch==2.13\n" if place >= AT else "torch==2.12\n" for place in range(COUNT)]
    names = repository.commit_line(*((f"Commit {place}", {file: text}) for place, text in enumerate(texts)))
    tracked.mirror.fetch()
    for place, name in enumerate(names):
        commit = factories.create_commit(tracked, place, name=name)
        late = place >= AT
        value = (0.014 if late else 0.010) * factories.run_noise(place)
        torch = {"torch": "2.13.0" if late else "2.12.0"}
        judge_run(factories.store_measured_run(commit, case, {"step_time": value}, environment=torch).pk)
    told = Regression.objects.get()
    assert (told.proving, told.cause) == (blamed, "" if blamed else "dependency")


def test_tensor_operations_that_grew_are_kept(project: Project, case: Case) -> None:
    for commit in factories.create_commits(project, COUNT):
        late = commit.position >= AT
        stack = {"phase": "replay/sample", "count": (1, 256)[late], "seconds": (1e-5, 2e-3)[late]}
        operations = [{"name": "aten::stack", **stack, "phases": [stack]}]
        run = factories.store_measured_run(
            commit,
            case,
            {"step_time": (0.010, 0.014)[late] * factories.run_noise(commit.position)},
            phases={"phase_self_time": TIMES[late]},
            document={"profile": {"steps": 200, "functions": [], "operations": operations}},
        )
        judge_run(run.pk)
    (found,) = Regression.objects.get().operations
    assert (found["operation"], found["phase"]) == ("aten::stack", "replay/sample")
    assert (found["count_before"], found["count_after"]) == (1, 256)
    assert found["share"] == pytest.approx(0.5, abs=0.01)
