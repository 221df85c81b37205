from __future__ import annotations

import json
import logging
import logging.config
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

from dashboard import dispatch
from dashboard.access.rules import ANYBODY, RULES
from dashboard.structured_logs import current_ids, log_context, logging_settings
from tests.processes import CHECKOUT, running_worker
from tests.workers.waiting import wait_until
from workers.site import tasks

Printed = Callable[[], list[str]]
handler500 = "dashboard.error_pages.show_server_error"


def answer_in_log(_request: HttpRequest) -> HttpResponse:
    logging.getLogger("views").warning("seen")
    return HttpResponse(str(current_ids()["request"]))


def fail_unforeseen(_request: HttpRequest) -> HttpResponse:
    raise RuntimeError("nobody foresaw it")


urlpatterns = [
    path("seen", answer_in_log, name="seen"),
    path("broken", fail_unforeseen, name="broken"),
    path("", include("dashboard.urls")),
]


@pytest.fixture
def visitor(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Client:
    for name in ("seen", "broken"):
        monkeypatch.setitem(RULES, name, ANYBODY)
    settings.ROOT_URLCONF = __name__
    return Client(raise_request_exception=False)


@pytest.fixture
def printed(request: pytest.FixtureRequest) -> Iterator[Printed]:
    """The lines that the site's handler prints, in the format that the test's mark names, else in lines."""
    stream = StringIO()
    configured = logging_settings("INFO", getattr(request, "param", "line"))
    configured["handlers"]["console"]["stream"] = stream
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    logging.config.dictConfig(configured)
    yield lambda: stream.getvalue().splitlines()
    root.handlers[:], root.level = before


AS_JSON = pytest.mark.parametrize("printed", ["json"], indirect=True)


def test_a_line_without_ids_is_as_ever(printed: Printed) -> None:
    logging.getLogger("dashboard.runs").warning("%d were lost", 3)
    (line,) = printed()
    assert re.fullmatch(r"[\d-]{10} [\d:,]{12} WARNING dashboard\.runs: 3 were lost", line)


def test_a_line_has_the_ids_of_where_it_was_logged(printed: Printed) -> None:
    with log_context(task="0123456789abcdef", request="r-1"), log_context(run=12):
        logging.getLogger("dashboard.runs").warning("inside")
    logging.getLogger("dashboard.runs").warning("outside")
    inside, outside = printed()
    assert inside.endswith(" WARNING dashboard.runs [task=01234567 request=r-1 run=12]: inside")
    assert outside.endswith(" WARNING dashboard.runs: outside")


@AS_JSON
def test_json_has_one_object_per_line(printed: Printed) -> None:
    with log_context(run=12, task="0123456789abcdef"):
        try:
            raise ValueError("two\nlines")
        except ValueError:
            logging.getLogger("dashboard.runs").exception("went\nwrong: %s", object)
    (line,) = map(json.loads, printed())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line.pop("exception").startswith("Traceback (most recent call last):\n")
    assert line == {
        "level": "ERROR",
        "logger": "dashboard.runs",
        "message": "went\nwrong: <class 'object'>",
        "run": 12,
        "task": "0123456789abcdef",
    }


def test_an_id_is_made_for_a_request_and_answered(visitor: Client, printed: Printed) -> None:
    answer = visitor.get("/seen")
    made = answer.headers["X-Request-ID"]
    assert re.fullmatch(r"[0-9a-f]{12}", made)
    assert answer.content.decode() == made
    assert printed()[0].endswith(f" WARNING views [request={made}]: seen")
    assert visitor.get("/seen").headers["X-Request-ID"] != made


def test_a_short_clean_id_of_a_proxy_is_taken(visitor: Client) -> None:
    given = "proxy-7.a_B" + "0" * 53
    assert visitor.get("/seen", headers={"X-Request-ID": given}).headers["X-Request-ID"] == given


@pytest.mark.parametrize("given", ["", "0" * 65, "a b", "a]: b", "ä", "a\n"])
def test_any_other_id_is_not(visitor: Client, given: str) -> None:
    answered = visitor.get("/seen", headers={"X-Request-ID": given}).headers["X-Request-ID"]
    assert re.fullmatch(r"[0-9a-f]{12}", answered)


@AS_JSON
def test_djangos_own_lines_have_the_id(visitor: Client, printed: Printed) -> None:
    answer = visitor.get("/nowhere", headers={"X-Request-ID": "r-1"})
    assert answer.status_code == 404
    assert [(line["message"], line["request"]) for line in map(json.loads, printed())] == [
        ("Not Found: /nowhere", "r-1")
    ]


@AS_JSON
def test_the_page_of_an_error_has_the_id_of_its_line(visitor: Client, printed: Printed) -> None:
    answer = visitor.get("/broken")
    (line,) = map(json.loads, printed())
    assert line["exception"].endswith("RuntimeError: nobody foresaw it")
    assert answer.status_code == 500
    assert f"under the request <code>{line['request']}</code>" in answer.content.decode()


def test_a_tasks_lines_have_its_id_and_its_subjects(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(tasks.runs, "resolve_trigger", lambda *_, **__: seen.append(current_ids()))
    tasks.resolve_trigger.apply(args=[7], task_id="t-1")
    assert seen == [{"task": "t-1", "trigger": 7}]
    assert current_ids() == {}


def test_one_task_in_two_threads_leaves_neither_of_them_named() -> None:
    began, ended = Barrier(2, timeout=30), Barrier(2, timeout=30)

    def run_task() -> dict[str, str | int]:
        dispatch.enter_task_context("t-1", tasks.resolve_trigger, [7])
        began.wait()
        dispatch.leave_task_context("t-1")
        ended.wait()
        return dict(current_ids())

    with ThreadPoolExecutor(2) as threads:
        assert [each.result() for each in [threads.submit(run_task) for _ in range(2)]] == [{}, {}]


def test_every_subject_is_that_of_a_task() -> None:
    assert set(dispatch.SUBJECTS) <= set(dispatch.app.tasks)


def test_a_worker_logs_in_json_and_names_the_request(
    site_environment: dict[str, str], tmp_path: Path
) -> None:
    environment = {**site_environment, "PACELINE_LOG_FORMAT": "json", "PACELINE_HOME": str(tmp_path)}
    with running_worker(environment, "service", "fetches", log=tmp_path / "worker.log") as worker:
        with log_context(request="r-1"):
            dispatch.send_task(dispatch.RESOLVE, "seven")
        wait_until(lambda: "expected a number but got 'seven'" in worker.output)
    # What Celery shows at its start is for people, and absent with --quiet.
    lines = [json.loads(line) for line in worker.output.splitlines() if line.startswith("{")]
    assert any(line["message"].endswith(" ready.") for line in lines)
    # The queue may still hold what another test has sent, whose rows are gone.
    (failed,) = [line for line in lines if "exception" in line and line.get("trigger") == "seven"]
    assert failed["logger"] == "celery.app.trace"
    assert failed["request"] == "r-1"


def test_an_unknown_format_ends_the_start() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=CHECKOUT,
        env={"PACELINE_LOG_FORMAT": "xml", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "PACELINE_LOG_FORMAT must be one of line, json, not 'xml'." in done.stdout + done.stderr
