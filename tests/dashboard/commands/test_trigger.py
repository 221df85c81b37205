from __future__ import annotations

import subprocess
import time
from contextlib import nullcontext
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from paceline.progress_bar import ProgressBar

from dashboard import runs, services
from dashboard.management.commands.trigger import summarize_progress
from dashboard.models import Project, Run, Trigger
from tests.dashboard.commands.conftest import Manage, ServeBy
from tests.dashboard.conftest import Repository


@pytest.mark.django_db
def test_runs_are_requested_at_once(tracked: Project) -> None:
    output = StringIO()
    call_command("trigger", "snakes", benchmark=["other"], stdout=output)
    assert output.getvalue() == "snakes: 1 run at 1 commit.\n"
    assert Run.objects.get().trigger == Trigger.objects.get(source="command", state="resolved")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"commit": "nothing"}, "has no commit 'nothing'"),
        ({"commit": "--all"}, "isn't a revision"),
        ({"range": "main"}, "isn't a range"),
        ({"range": "main..main~1"}, "holds no commit"),
        ({"last": "0"}, "ask for 1 to 1000"),
        ({"last": "many"}, "ask for 1 to 1000"),
        ({"benchmark": ["tini"]}, "did you mean tiny?"),
    ],
)
def test_wrong_revisions_are_refused(tracked: Project, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("trigger", "snakes", **options)
    assert sentence in str(refused.value)
    assert not Run.objects.exists()


@pytest.mark.django_db
def test_the_nearest_project_is_named(tracked: Project) -> None:
    with pytest.raises(CommandError, match="did you mean snakes"):
        call_command("trigger", "snake")


@pytest.mark.django_db(transaction=True)
def test_a_person_gets_the_answer_on_standard_output(manage: Manage, tracked: Project) -> None:
    done = manage("trigger", "snakes", "--benchmark", "other")
    assert (done.returncode, done.stdout) == (0, "snakes: 1 run at 1 commit.\n")


def end_next_run(state: str, **why: str) -> None:
    """Claim a run and end it in this state, after a while in which its progress is seen."""
    assignment = runs.claim_run("default", "gpu-1")
    if assignment:
        runs.heartbeat_run(assignment.lease, 0.5, "half")
        time.sleep(0.1)
        Run.objects.filter(pk=assignment.run_id).update(state=state, **why)


@pytest.mark.django_db(transaction=True)
def test_waiting_ends_with_the_runs(tracked: Project, serve_by: ServeBy) -> None:
    serve_by(lambda: end_next_run(Run.State.DONE))
    output = StringIO()
    call_command("trigger", "snakes", wait=True, benchmark=["tiny"], stdout=output)
    assert output.getvalue().count(": done\n") == 2


@pytest.mark.django_db(transaction=True)
def test_waiting_fails_with_a_run(tracked: Project, serve_by: ServeBy) -> None:
    serve_by(lambda: end_next_run(Run.State.FAILED, failure="crash", reason="Broke."))
    output = StringIO()
    with pytest.raises(CommandError, match="1 of 1 run failed"):
        call_command("trigger", "snakes", wait=True, benchmark=["other"], stdout=output)
    assert "failed (crash): Broke." in output.getvalue()


@pytest.mark.django_db
def test_an_interrupted_wait_leaves_the_runs(tracked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_runs: list[Run]) -> tuple[float, str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(services, "running_services", lambda *_: nullcontext())
    monkeypatch.setattr("dashboard.management.commands.trigger.summarize_progress", interrupted)
    with pytest.raises(CommandError, match="Interrupted: the runs stay"):
        call_command("trigger", "snakes", wait=True, benchmark=["other"], stdout=StringIO())
    assert Run.objects.filter(state=Run.State.REQUESTED).count() == 1


@pytest.mark.django_db
def test_progress_says_what_is_measured(tracked: Project) -> None:
    call_command("trigger", "snakes", benchmark=["tiny"], stdout=StringIO())
    assert summarize_progress(list(Run.objects.all())) == (0, "0 of 2 runs; waiting for a worker")
    assignment = runs.claim_run("default", "gpu-1")
    assert assignment is not None
    runs.heartbeat_run(assignment.lease, 0.5, "repetition 2 of 3")
    share, text = summarize_progress(list(Run.objects.order_by("pk")))
    assert share == 0.25
    assert text.endswith("repetition 2 of 3")
    waiting = list(Run.objects.filter(state=Run.State.REQUESTED))
    assert summarize_progress(waiting) == (0, f"0 of 1 run; waiting behind run {assignment.run_id}")


def test_a_bar_is_drawn_on_a_terminal_only() -> None:
    log, terminal = StringIO(), StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    for stream in (log, terminal):
        with ProgressBar(stream) as bar:
            for step in range(5):
                bar.show(step / 4, f"{step} of 4")
    assert log.getvalue() == "  0% 0 of 4\n"
    assert terminal.getvalue().count("\r") == 5
    assert terminal.getvalue().endswith("100% 4 of 4\n")


@pytest.mark.django_db
def test_the_hook_is_installed_in_the_projects_own_repository(
    tracked: Project, repository: Repository
) -> None:
    output = StringIO()
    call_command("install_hook", "snakes", stdout=output)
    folder = repository.folder / ".git/hooks"
    names = ("post-commit", "post-merge", "post-rewrite")
    assert output.getvalue().startswith(f"{' and '.join(names)} in {folder} tell http://")
    for name in names:
        assert subprocess.run(["sh", "-n", str(folder / name)], check=False).returncode == 0


@pytest.mark.django_db
def test_a_hook_needs_a_folder(project: Project) -> None:
    with pytest.raises(CommandError, match="/nowhere is not a folder on this machine"):
        call_command("install_hook", "snakes")
