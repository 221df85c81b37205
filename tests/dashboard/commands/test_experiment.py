"""`manage.py experiment`: asks, waits, answers; once with everything real but the services."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from dashboard import services
from dashboard.management.commands.experiment import read_experiment, summarize_progress
from dashboard.models import Experiment, Machine, Pool, Project
from tests.dashboard.commands.conftest import Manage, ServeBy, working_thread
from tests.dashboard.conftest import Repository
from tests.workers.conftest import join_host
from tests.workers.scripts import UNDISTURBED

SHORT = """
[benchmarks.loop]
version = 1
script = "train.py"
warmup_steps = 2
steps = 10
counting_steps = 5
repetitions = 1
time_limit = 60
"""
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


def ask_by_command(*arguments: str, **options: Any) -> tuple[Experiment, str]:
    """The experiment that the command asked for, and what it printed."""
    output = StringIO()
    call_command("experiment", "snakes", *arguments, stdout=output, stderr=StringIO(), **options)
    return Experiment.objects.latest("pk"), output.getvalue()


@pytest.fixture
def compared(tracked: Project, repository: Repository) -> Project:
    """A project whose last two commits differ by four times the time of each step."""
    repository.commit("Describe a loop", paceline_toml=SHORT, train_py=LOOP.format(seconds=0.004))
    repository.commit("Take four times as long", train_py=LOOP.format(seconds=0.016))
    return tracked


@pytest.mark.django_db
def test_it_is_asked_for_at_once(compared: Project, repository: Repository) -> None:
    experiment, printed = ask_by_command("main~1", "main", "--precision", "2%", "--minutes", "3")
    base, head = repository.git("rev-parse", "main~1", "main").split()
    assert (experiment.base_commit.hash, experiment.head_commit.hash) == (base, head)
    assert (experiment.purpose, experiment.precision, experiment.most_seconds) == ("script", 0.02, 180)
    assert printed.splitlines() == [
        f"snakes: {experiment}, loop, {head[:10]} against {base[:10]}",
        "Waiting for a machine.",
        f"http://127.0.0.1:8000/experiments/{experiment.pk}/",
    ]


@pytest.mark.django_db
def test_a_toggle_is_two_cases_at_one_commit(tracked: Project) -> None:
    experiment, printed = ask_by_command("main", "--case", "tiny[size=1]", "--toggle", "size")
    assert experiment.base_commit == experiment.head_commit
    assert (experiment.base_configuration.case.key, experiment.head_configuration.case.key) == (
        "size=1",
        "size=2",
    )
    assert f"tiny[size=1], size=2 against size=1 at {experiment.head_commit.short}" in printed


@pytest.mark.django_db
def test_the_same_question_is_not_asked_twice(tracked: Project) -> None:
    first, _ = ask_by_command("main", "--case", "other", "--toggle", "n=2")
    noted = StringIO()
    call_command("experiment", "snakes", "main", case="other", toggle="n=2", stdout=StringIO(), stderr=noted)
    assert noted.getvalue() == (
        f"{first} asks the same and is under way, until it is known to ±1 %, for 20 min at most: "
        "its answer is this one's.\n"
    )
    assert Experiment.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["main"], "B: it is missing: name the commit to compare with A, or give --toggle."),
        (["nothing", "main"], "A: The repository of snakes has no commit 'nothing'"),
        (["main", "nothing"], "B: The repository of snakes has no commit 'nothing'"),
        (["main", "main"], "--case: the manifest of"),
        (["main", "main", "--case", "other"], "B: it is the same commit and the same case"),
        (["main", "--case", "other", "--toggle", "fast"], "--toggle: the manifest doesn't say"),
        (
            ["main", "--case", "tiny[size=1]", "--toggle", "sise=3"],
            "--toggle: tiny has no parameter 'sise': did",
        ),
        (["main", "main", "--case", "other", "--metric", "speed"], "--metric: 'speed' isn't measured"),
        (["main", "main", "--precision", "1"], "--precision: 1 could be one of a hundred or all"),
        (["main", "main", "--minutes", "-1", "--case", "other"], "--minutes: -1 isn't above 0"),
        (["main", "main", "--pool", "nowhere", "--case", "other"], "--pool: there is no pool 'nowhere'"),
    ],
)
def test_a_wrong_argument_is_named(tracked: Project, arguments: list[str], sentence: str) -> None:
    with pytest.raises(CommandError) as refused:
        ask_by_command(*arguments)
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)
    assert not Experiment.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_person_gets_one_sentence_and_status_1(manage_here: Manage, tracked: Project) -> None:
    done = manage_here("experiment", "snakes", "main")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "B: it is missing" in done.stderr
    helped = manage_here("experiment", "--help")
    assert helped.returncode == 0
    assert all(word in helped.stdout for word in ("PROJECT", "--toggle", "--precision", "Examples:"))


def end_experiment(experiment: Experiment, **fields: Any) -> Experiment:
    values: dict[str, Any] = {"state": "done", "verdict": "estimated", "finished_at": timezone.now()}
    values |= {"ratio": 1.38, "low": 1.35, "high": 1.41, "seconds": 125.0}
    pool, _ = Pool.objects.get_or_create(name="default")
    values["machine"], _ = Machine.objects.get_or_create(name="gpu-1", pool=pool)
    for index in range(5):
        sides = {"base": 0.010, "head": 0.0138, "disturbed": index == 4, "seconds": 25.0}
        phases = {"learn": (0.004, 0.0078), "act": (0.006, 0.006)}
        experiment.pairs.create(index=index, base_first=True, phases=phases, **sides)
    # Last, as the hosts do: who waits reads the pairs once the state says so.
    Experiment.objects.filter(pk=experiment.pk).update(**(values | fields))
    return read_experiment(experiment.pk)


def end_requested(**fields: Any) -> None:
    for experiment in Experiment.objects.filter(state="requested"):
        end_experiment(experiment, **fields)


@pytest.mark.django_db(transaction=True)
def test_waiting_ends_with_the_answer(tracked: Project, serve_by: ServeBy) -> None:
    serve_by(end_requested)
    _, printed = ask_by_command("main", "--case", "other", "--toggle", "n=2", wait=True)
    assert printed.splitlines()[1:5] == [
        "Step time +38 % [35, 41]: worse.",
        "5 pairs (1 disturbed) in 2 min 5 s on gpu-1.",
        "  learn: 4 ms → 7.80 ms (+3.80 ms)",
        "  act: 6 ms → 6 ms (0)",
    ]


@pytest.mark.django_db(transaction=True)
def test_the_answer_is_read_before_the_services_end(
    tracked: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With them their database ends."""
    output, printed_at_end = StringIO(), []

    @contextmanager
    def ending_services(*_: object) -> Iterator[None]:
        with working_thread(end_requested):
            yield
        printed_at_end.append(output.getvalue())

    monkeypatch.setattr(services, "running_services", ending_services)
    call_command("experiment", "snakes", "main", case="other", toggle="n=2", wait=True, stdout=output)
    assert "Step time +38 % [35, 41]: worse." in printed_at_end[0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"verdict": "untestable", "reason": {"code": "side failed", "text": "abc: it crashed."}},
            "It can't be measured: abc: it crashed.",
        ),
        ({"state": "cancelled", "reason": {"code": "cancelled", "person": "ada"}}, "Cancelled by ada."),
    ],
)
def test_without_an_answer_the_status_is_1(
    tracked: Project, serve_by: ServeBy, fields: dict[str, Any], sentence: str
) -> None:
    serve_by(lambda: end_requested(**fields))
    with pytest.raises(CommandError) as refused:
        ask_by_command("main", "--case", "other", "--toggle", "n=2", wait=True)
    assert str(refused.value) == sentence


@pytest.mark.django_db
def test_an_interrupted_wait_leaves_the_experiment(tracked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_experiment: Experiment) -> tuple[float, str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(services, "running_services", lambda *_: nullcontext())
    monkeypatch.setattr("dashboard.management.commands.experiment.summarize_progress", interrupt)
    with pytest.raises(CommandError, match=r"Interrupted: experiment .* stays"):
        ask_by_command("main", "--case", "other", "--toggle", "n=2", wait=True)
    assert Experiment.objects.get().state == "requested"


@pytest.mark.django_db
def test_progress_is_the_budget_that_is_spent(tracked: Project) -> None:
    experiment, _ = ask_by_command("main", "--case", "other", "--toggle", "n=2")
    assert summarize_progress(experiment) == (0, f"{experiment}: requested; Waiting for a machine.")
    Experiment.objects.update(state="measuring", activity="pair 7", seconds=300)
    share, text = summarize_progress(read_experiment(experiment.pk))
    assert (share, text.partition("; ")[0]) == (0.25, f"{experiment}: pair 7")


@pytest.mark.django_db
def test_a_script_reads_json(tracked: Project) -> None:
    experiment, printed = ask_by_command("main", "--case", "other", "--toggle", "n=2", json=True)
    asked = json.loads(printed)
    assert (asked["id"], asked["state"], asked["ratio"], asked["verdict"]) == (
        experiment.pk,
        "requested",
        None,
        None,
    )


@pytest.mark.django_db(transaction=True)
def test_four_times_the_time_is_measured_for_real(
    compared: Project, settings: Any, tmp_path: Path, serve_by: ServeBy, live_server: LiveServer
) -> None:
    settings.PACELINE_HOME = tmp_path / "home"
    host = join_host(tmp_path / "host", live_server.url, "gpu-1")
    serve_by(host.execute_next)
    experiment, printed = ask_by_command("main~1", "main", "--precision", "100%", wait=True, json=True)
    told = json.loads(printed)
    assert (told["project"], told["case"], told["metric"], told["unit"]) == (
        "snakes",
        "loop",
        "step_time",
        "s",
    )
    assert (told["base"], told["head"]) == (experiment.base_commit.hash, experiment.head_commit.hash)
    assert (told["state"], told["verdict"], told["machine"]) == ("done", "estimated", "gpu-1")
    assert 0 < told["low"] < told["ratio"] < told["high"]
    assert 1.5 < told["ratio"] < 8
    assert told["answer"].startswith("Step time +")
    assert told["pairs"] - told["disturbed"] >= 4
    assert told["phases"]["learn"]["head"] > 1.5 * told["phases"]["learn"]["base"] > 0
    assert told["seconds"] > 0
    assert told["address"].endswith(f"/experiments/{told['id']}/")
    functions = experiment.profiles["head"]["functions"]
    assert any(function["file"].endswith("train.py") for function in functions)
