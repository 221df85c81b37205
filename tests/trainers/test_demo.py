from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from dashboard import runs
from dashboard.management import demonstration
from dashboard.management.commands import demo
from dashboard.management.commands.demo import estimate_time, parse_seed
from dashboard.management.demonstration import BuiltHistory, DemonstrationError
from dashboard.management.demonstration_table import format_table
from dashboard.models import Change, Project, Regression, Run
from tests.dashboard import factories
from tests.prepared_python import prepared_starts

MANIFEST = '[benchmarks.snake]\nversion = 1\nscript = "train.py"\nsteps = 10\n'

PLANTED = {"kind": "regression", "metric": "step_time", "phase": "push", "function": "push"}


@pytest.fixture
def home(tmp_path: Path, settings: Any) -> Path:
    settings.PACELINE_HOME = tmp_path / "home"
    return tmp_path / "home"


@pytest.fixture
def built(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, int, Any], BuiltHistory]:
    """In the place of the builder, which measures for a minute: three commits, of which two are measured."""

    def build(repository: Path, seed: int, show: Callable[[float, str], None], options: Any) -> BuiltHistory:
        from trainers.planted.repository import create_repository

        show(0.5, "half of it is built")
        commits = create_repository(
            repository, [(name, {"paceline.toml": MANIFEST, name: ""}) for name in ("one", "two", "three")]
        )
        planted = PLANTED | {"commit": commits[1], "percent": 31.0}
        return BuiltHistory(seed, repository, commits, commits[::2], [planted])

    monkeypatch.setattr(demonstration, "build_history", build)
    return build


def call_demo(*arguments: str) -> str:
    said = StringIO()
    call_command("demo", *arguments, stdout=said)
    return said.getvalue()


@pytest.mark.django_db
def test_a_new_project_asks_for_the_commits_that_are_to_be_measured(built: Any) -> None:
    result = json.loads(call_demo("--json", "--seed", "7"))
    assert (result["seed"], result["project"]) == (7, "demo-7")
    assert [run["commit"] for run in result["runs"]] == result["commits"][::2]
    assert {run.state for run in Run.objects.all()} == {Run.State.REQUESTED}
    assert result["regressions"] == result["refuted"] == result["improvements"] == []


@pytest.mark.django_db
def test_each_call_makes_a_project_of_its_own(built: Any) -> None:
    for _ in range(3):
        call_demo("--seed", "7")
    assert set(Project.objects.values_list("slug", flat=True)) == {"demo-7", "demo-7-2", "demo-7-3"}


@pytest.mark.django_db
def test_an_interrupted_demonstration_stays(built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_ids: list[int], _bar: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "wait_for_runs", interrupt)
    monkeypatch.setattr(demo.services, "running_services", lambda *_: nullcontext())
    with pytest.raises(CommandError, match="project demo-7 stays"):
        call_demo("--wait", "--seed", "7")
    assert Run.objects.filter(state=Run.State.REQUESTED).count() == 2


@pytest.mark.django_db
def test_it_waits_until_every_run_is_judged(built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def look(_seconds: float) -> None:
        looks.append(Run.objects.filter(judged_at=None).count())
        Run.objects.update(state=Run.State.DONE, judged_at=timezone.now() if len(looks) > 1 else None)

    monkeypatch.setattr(demo, "time", SimpleNamespace(sleep=look, monotonic=time.monotonic))
    monkeypatch.setattr(demo.services, "running_services", lambda *_: nullcontext())
    assert "found" in call_demo("--wait", "--seed", "7")
    assert looks == [2, 2]


@pytest.mark.django_db
def test_it_waits_for_what_is_measured_again(built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[Run] = []

    def look(_seconds: float) -> None:
        if not again:
            disturbed = Run.objects.order_by("pk").last()
            assert disturbed
            Run.objects.update(state=Run.State.DONE, judged_at=timezone.now())
            again.append(runs.repeat_run(disturbed, disturbed.commit, 0, not_before=timedelta(hours=1)))
            return
        assert Run.objects.get(pk=again[0].pk).not_before is None
        Run.objects.update(state=Run.State.DONE, judged_at=timezone.now())

    monkeypatch.setattr(demo, "time", SimpleNamespace(sleep=look, monotonic=time.monotonic))
    monkeypatch.setattr(demo.services, "running_services", lambda *_: nullcontext())
    call_demo("--wait", "--seed", "7")
    assert Run.objects.get(pk=again[0].pk).state == Run.State.DONE


@pytest.mark.django_db
def test_without_json_the_address_is_said(built: Any) -> None:
    said = call_demo("--seed", "7")
    assert said.startswith("Project demo-7: http://")
    assert "2 runs are requested" in said


@pytest.mark.django_db
@pytest.mark.parametrize("seed", ["x", "-1", "1.5", "4294967296"])
def test_a_wrong_seed_is_refused(built: Any, seed: str) -> None:
    with pytest.raises(CommandError, match="must be a whole number from 0 to 4294967295"):
        call_demo("--seed", seed)
    assert not Project.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--history", "small"], "--history is 'small', must be one of planted, larger, same, toggles."),
        (["--kind", "several"], "--kind is 'several', must be one of single, distributed."),
        (["--kind", "distributed", "--history", "larger"], "--history belongs to --kind single."),
        (["--toggle", "memory"], "--benchmark and --toggle belong to --history toggles."),
        (["--plant"], "--commits and --plant belong to --history same."),
        (["--commits", "40", "--history", "larger"], "--commits and --plant belong to --history same."),
        (
            ["--history", "same", "--commits", "11"],
            "--commits is '11', must be a whole number from 12 to 500.",
        ),
        (["--history", "same", "--commits", "x"], "--commits is 'x', must be a whole number from 12 to 500."),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str], sentence: str) -> None:
    with pytest.raises(CommandError) as refused:
        call_demo(*arguments)
    assert str(refused.value).startswith(sentence)


@pytest.mark.django_db
def test_the_builder_is_told_which_history_is_wanted(built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    builder = demonstration.build_history
    monkeypatch.setattr(
        demonstration, "build_history", lambda *given: told.append(given[3]) or builder(*given)
    )
    call_demo("--json", "--history", "same", "--commits", "20", "--plant")
    assert told == [["--history=same", "--commits=20", "--plant"]]


@pytest.mark.django_db
def test_a_commit_is_measured_by_the_benchmarks_that_the_builder_names(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainers.planted.repository import create_repository

    told: list[Any] = []

    def build(repository: Path, seed: int, _show: Any, options: Any) -> BuiltHistory:
        told.append(options)
        manifest = MANIFEST + MANIFEST.replace("snake", "worm")
        commits = create_repository(
            repository, [(name, {"paceline.toml": manifest, name: ""}) for name in ("one", "two")]
        )
        return BuiltHistory(seed, repository, commits, commits, [], {commits[0]: ["worm"]})

    monkeypatch.setattr(demonstration, "build_history", build)
    result = json.loads(call_demo("--json", "--kind", "distributed"))
    assert told == [["--history=distributed"]]
    assert [run["case"] for run in result["runs"]] == ["worm", "snake", "worm"]


def test_a_seed_is_drawn_where_none_is_given() -> None:
    assert len({parse_seed(None) for _ in range(20)}) > 10


@pytest.mark.django_db
def test_what_the_builder_says_last_is_why_it_failed(home: Path) -> None:
    taken = demonstration.repository_folder("demo-7")
    taken.mkdir(parents=True)
    (taken / "mine").write_text("")
    failing = pytest.raises(DemonstrationError, match="is there already and isn't empty")
    with prepared_starts(), failing:
        demonstration.build_history(taken, 7, lambda _fraction, _text: None)


@pytest.mark.django_db
def test_a_wrong_toggle_is_said_without_the_builders_name(home: Path) -> None:
    options = ["--history=toggles", "--toggle=nope"]
    failing = pytest.raises(DemonstrationError, match=r"^The repository can't be built: --toggle is 'nope'")
    with prepared_starts(), failing:
        demonstration.build_history(home / "new", 7, lambda _fraction, _text: None, options)


@pytest.mark.django_db
def test_a_folder_left_behind_is_not_used_again(home: Path) -> None:
    demonstration.repository_folder("demo-7").mkdir(parents=True)
    assert demonstration.free_slug(7) == "demo-7-2"
    shutil.rmtree(home)
    assert demonstration.free_slug(7) == "demo-7"


@pytest.fixture
def judged(db: None) -> dict[str, Any]:
    """The report on four commits: the second is slower, the third faster, and one suspicion was refuted."""
    project = factories.create_project("demo-1")
    commits = factories.create_commits(project, 4)
    case = factories.create_case(project, "snake", batch_size=32)
    phases = [{"push": 0.1, "targets": 0.8}, {"push": 0.5, "targets": 0.8}, {"push": 0.5, "targets": 0.2}]
    runs = [
        factories.store_measured_run(
            commit, case, {"step_time": sum(own.values())}, phases={"phase_self_time": own}
        )
        for commit, own in zip(commits, phases, strict=False)
    ]
    series = factories.get_series(runs[0], "step_time")
    values = {
        "project": project,
        "series": series,
        "before": 1.0,
        "after": 1.4,
        "ratio": 1.4,
        "phase": "push",
    }
    suspects = [{"function": "push", "file": "replay.py", "calls_before": 1.0, "calls_after": 2.0}]
    values |= {"phase": "push"}
    Regression.objects.create(**values, last_good=commits[0], first_bad=commits[1], suspects=suspects)
    Regression.objects.create(**values, last_good=commits[2], first_bad=commits[3], state="refuted")
    Change.objects.create(
        series=series, last_good=commits[1], first_bad=commits[2], position=2, confidence=1.0,
        direction="improvement", before=1.3, after=0.7, ratio=0.54, reach_good=1, reach_bad=2,
    )  # fmt: skip
    planted = PLANTED | {"commit": commits[1].hash, "percent": 38.0}
    hashes = [commit.hash for commit in commits]
    return demonstration.report_findings(
        project, BuiltHistory(1, Path("/nowhere"), hashes, hashes, [planted])
    )


def test_a_regression_is_told_with_its_range_phase_and_suspects(judged: dict[str, Any]) -> None:
    (regression,) = judged["regressions"]
    assert (regression["last_good"], regression["first_bad"]) == tuple(judged["commits"][:2])
    assert (regression["case"], regression["metric"]) == ("snake[batch_size=32]", "step_time")
    assert (regression["phase"], regression["change_percent"]) == ("push", 40.0)
    assert (regression["state"], regression["suspects"][0]["function"]) == ("suspected", "push")


def test_what_was_refuted_is_listed_apart(judged: dict[str, Any]) -> None:
    assert [entry["first_bad"] for entry in judged["refuted"]] == [judged["commits"][3]]


def test_an_improvement_is_told_with_the_phase_that_became_lighter(judged: dict[str, Any]) -> None:
    (improvement,) = judged["improvements"]
    assert (improvement["commit"], improvement["before"]) == (judged["commits"][2], judged["commits"][1])
    assert (improvement["phase"], improvement["change_percent"]) == ("targets", -46.0)


def test_the_table_sets_what_was_planted_beside_what_was_found(judged: dict[str, Any]) -> None:
    lines = format_table(judged)
    second, third, fourth = (commit[:10] for commit in judged["commits"][1:])
    assert lines[1].split(maxsplit=1)[0] == second
    assert lines[1].endswith("step_time +38%, push, push  step_time +40%, push, push (suspected)")
    assert lines[2:] == [
        f"refuted: {fourth} step_time +40%, push (refuted)",
        f"improvement: {third} step_time -46%, targets",
    ]


def test_the_clock_guesses_what_is_left() -> None:
    assert estimate_time(0.25, 60) == "1:00 gone, about 3:00 left"
    assert estimate_time(0.0, 5) == "0:05 gone"


def test_a_regression_where_nothing_was_planted_is_a_line_of_its_own(judged: dict[str, Any]) -> None:
    first, *_ = format_table(judged | {"planted": []})[1:]
    assert first == f"nothing planted: {judged['commits'][1][:10]} step_time +40%, push, push (suspected)"


def test_what_was_planted_and_not_found_is_said(judged: dict[str, Any]) -> None:
    broken = {"commit": judged["commits"][0], "kind": "broken", "event": "doesn't run"}
    row = format_table(judged | {"planted": [broken]})[1]
    assert row.split("  ", 1)[0] == judged["commits"][0][:10]
    assert row.endswith("nothing")
