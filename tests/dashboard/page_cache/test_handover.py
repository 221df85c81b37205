"""What one web process has made the others take over, each with tokens of its own visitors."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.page_cache.handover import PLACES, PageHandover
from dashboard.page_cache.memory import CachedPage
from dashboard.page_cache.revisions import SeenRevision
from dashboard.static_files import names
from dashboard.static_files.names import digest_hashed_names, list_hashed_files
from tests.pages import builders

PAGE = CachedPage(
    7, 100.0, 90.0, b"body\nof two lines", b"packed", {"Content-Type": "text/html"}, "digest", b"place"
)
BOOT_ID = "dashboard.page_cache.handover.BOOT_ID"
SEEN, NOW = SeenRevision(7, 80.0), 200.0
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
HOLD = """
import sys, time
from pathlib import Path
from typing import Any
from dashboard.page_cache.handover import PageHandover
with PageHandover(Path(sys.argv[1])).locked_place(("key", 1)):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_page_is_taken_over_as_it_was_made(tmp_path: Path) -> None:
    with PageHandover(tmp_path / "pages").locked_place(("key", 1)) as place:
        assert place.read_page(SEEN, NOW, 0.0) is None
        place.leave_page(PAGE)
    with PageHandover(tmp_path / "pages").locked_place(("key", 1)) as place:
        assert place.read_page(SEEN, NOW, 99.0) == PAGE
        written = SeenRevision(8, 95.0)
        assert place.read_page(written, NOW, 99.0) is None, "something was written since"
        assert place.read_page(written, 90.0, 99.0) == PAGE, "it was right when it was asked for"
        seen_later = place.read_page(SeenRevision(7, 95.0), NOW, 99.0)
        assert seen_later == replace(PAGE, newest_at=95.0)
        assert place.read_page(SEEN, NOW, 101.0) is None, "too old"
        shorter = replace(PAGE, body=b"b", packed=b"")
        place.leave_page(shorter)
        assert place.read_page(SEEN, NOW, 0.0) == shorter


def test_a_page_of_before_the_machine_was_started_anew_is_too_old(tmp_path: Path) -> None:
    with PageHandover(tmp_path).locked_place("key") as place:
        place.leave_page(replace(PAGE, made_at=time.monotonic() + 3600))
        assert place.read_page(SEEN, NOW, time.monotonic() - 60) is None


def test_a_page_of_another_machine_or_start_isnt_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may seem to have been right when a request came, by a clock of its own."""
    (tmp_path / "another").write_text("another")
    with PageHandover(tmp_path / "pages").locked_place("key") as place:
        place.leave_page(PAGE)
    monkeypatch.setattr(BOOT_ID, tmp_path / "another")
    with PageHandover(tmp_path / "pages").locked_place("key") as place:
        assert place.read_page(SEEN, NOW, 0.0) is None
    monkeypatch.setattr(BOOT_ID, tmp_path / "nowhere")
    with PageHandover(tmp_path / "pages").locked_place("key") as place:
        assert place.read_page(SEEN, NOW, 0.0) is None
        place.leave_page(PAGE)
    with PageHandover(tmp_path / "pages").locked_place("key") as place:
        assert place.read_page(SEEN, NOW, 0.0) == PAGE


def test_another_page_of_the_same_place_isnt_taken_for_it(tmp_path: Path) -> None:
    handover = PageHandover(tmp_path)
    for number in range(PLACES + 1):
        with handover.locked_place(("key", number)) as place:
            assert place.read_page(SEEN, NOW, 0.0) is None
            place.leave_page(PAGE)
    assert len(list(tmp_path.iterdir())) <= PLACES


def test_a_page_of_other_scripts_and_styles_isnt_taken_over(tmp_path: Path) -> None:
    with PageHandover(tmp_path, "before").locked_place("key") as place:
        place.leave_page(PAGE)
    with PageHandover(tmp_path, "after").locked_place("key") as place:
        assert place.read_page(SEEN, NOW, 0.0) is None
        place.leave_page(PAGE)
    with PageHandover(tmp_path, "after").locked_place("key") as place:
        assert place.read_page(SEEN, NOW, 0.0) == PAGE


def test_another_script_has_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    former = digest_hashed_names()
    files = list_hashed_files()
    changed = replace(files["charts.js"], hashed_name="charts.000000000000.js")
    monkeypatch.setattr(names, "list_hashed_files", lambda: files | {"charts.js": changed})
    assert digest_hashed_names() != former


@pytest.mark.parametrize("kept", [0.0, 0.02, 0.3, 0.95, 0.99])
def test_a_page_cut_off_in_writing_is_none(tmp_path: Path, kept: float) -> None:
    handover = PageHandover(tmp_path)
    with handover.locked_place("key") as place:
        place.leave_page(PAGE)
        (file,) = tmp_path.iterdir()
        written = file.read_bytes()
        file.write_bytes(written[: int(kept * len(written))])
        assert place.read_page(SEEN, NOW, 0.0) is None


@pytest.mark.parametrize("kept", [0.3, 0.95, 0.99])
def test_a_page_half_written_over_another_is_none(tmp_path: Path, kept: float) -> None:
    handover, former = PageHandover(tmp_path), replace(PAGE, body=b"BODY\nOF TWO LINES", packed=b"PACKED")
    with handover.locked_place("key") as place:
        place.leave_page(PAGE)
        (file,) = tmp_path.iterdir()
        written = file.read_bytes()
        place.leave_page(former)
        over = file.read_bytes()
        cut = int(kept * len(written))
        file.write_bytes(written[:cut] + over[cut:])
        assert place.read_page(SEEN, NOW, 0.0) is None
        place.leave_page(former)
        assert place.read_page(SEEN, NOW, 0.0) == former


def test_a_folder_that_cant_be_written_hands_nothing_over(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "pages", None):
        with PageHandover(folder).locked_place("key") as place:
            place.leave_page(PAGE)
            assert place.read_page(SEEN, NOW, 0.0) is None


def test_pages_are_for_this_account_alone(tmp_path: Path) -> None:
    with PageHandover(tmp_path / "pages").locked_place("key") as place:
        place.leave_page(PAGE)
    (file,) = (tmp_path / "pages").iterdir()
    assert [path.stat().st_mode & 0o077 for path in (file, file.parent)] == [0, 0]


def test_who_waits_gets_the_place_of_a_process_that_died(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        process.kill()
        started = time.monotonic()
        with PageHandover(tmp_path).locked_place(("key", 1)) as place:
            assert place.read_page(SEEN, NOW, 0.0) is None
        assert time.monotonic() - started < 30
    finally:
        process.kill()
        process.communicate()


@pytest.mark.django_db
def test_a_second_process_answers_without_making_the_page(tmp_path: Path, settings: Any) -> None:
    """Each client has a memory of its own, as a process has."""
    settings.HANDED_PAGES = tmp_path / "pages"
    where = f"/regressions/{builders.create_stepped_regression().pk}/"
    first = Client()
    first.force_login(User.objects.create_superuser("root"))
    answers = []
    for client in (first, second_client(first)):
        with CaptureQueriesContext(connection) as queries:
            answers.append((client.get(where), len(queries)))
    (made, asked), (taken, asked_again) = answers
    assert asked_again < asked
    texts = [answer.content.decode() for answer in (made, taken)]
    tokens = [TOKEN.findall(text) for text in texts]
    assert tokens[0]
    assert tokens[0] != tokens[1]
    assert TOKEN.sub("", texts[0]) == TOKEN.sub("", texts[1])


def second_client(first: Client) -> Client:
    """Another web process, asked by the same browser."""
    second = Client()
    second.cookies = first.cookies
    return second
