"""A cached page is what a new one would be: for each visitor, after each write, with a token that is good."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable
from typing import Any

import brotli
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver

from dashboard.access.rules import OPERATION_RULES, RULES
from dashboard.middleware import page_caching
from dashboard.models import Membership, Project, Regression, Run, Series
from dashboard.page_cache.cached_views import CACHED
from dashboard.page_cache.memory import CachedPage, PageMemory
from dashboard.page_cache.revisions import SeenRevision
from tests.dashboard.access.conftest import create_member
from tests.pages import builders
from tests.pages.test_queries import fill_site

pytestmark = pytest.mark.django_db

TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
AGE = re.compile(r"just now|\b\d+ (?:s|min|h|d)(?: \d+ (?:s|min|h))?\b(?: ago)?")


def count_queries(client: Client, where: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(where).status_code == 200
    return len(queries)


def read_page(client: Client, where: str) -> str:
    """Without the tokens, which differ from answer to answer, and ages, which grow between two looks."""
    return AGE.sub("", TOKEN.sub("", client.get(where).content.decode()))


def test_every_cached_address_is_there_and_only_reads() -> None:
    names = {str(name) for name in get_resolver().reverse_dict if isinstance(name, str)}
    assert names >= CACHED
    assert set(RULES) | set(OPERATION_RULES) >= CACHED


def cached_addresses() -> dict[str, str]:
    """An address of each cached page of a filled site."""
    ids = fill_site(3)
    return {
        "overview": "/",
        "regressions": "/regressions/",
        "regression": f"/regressions/{ids['regression']}/",
        "machines": "/machines/",
        "machine": f"/machines/{ids['machine']}/",
        "deliveries": "/deliveries/",
        "series": f"/series/{ids['series']}/",
        "series-part": f"/series/{ids['series']}/part/?zoom=0-1",
        "series-csv": f"/series/{ids['series']}/points.csv",
        "series-json": f"/series/{ids['series']}/points.json",
        "run": f"/runs/{ids['run']}/",
        "experiment": f"/experiments/{ids['experiment']}/",
        "project": "/projects/snake/",
        **{
            f"project-{name}": f"/projects/snake/{name}/"
            for name in (
                *("runs", "commits", "triggers", "costs", "experiments", "checks", "compare"),
                *("claims", "regressions", "heatmap", "noise"),
            )
        },
        "queue": "/queue/",
        "search": "/search/?q=sna",
        "commit": f"/projects/snake/commits/{ids['commit']}/",
        "project-compare": f"/projects/snake/compare/?base={ids['first']}&head=main",
        "api-regressions": "/api/v1/regressions",
        "api-points": f"/api/v1/series/{ids['series']}/points",
        "api-runs": "/api/v1/projects/snake/runs",
    }


def rename_snake() -> None:
    Project.objects.filter(slug="snake").update(branch="trunk")


def fail_run() -> None:
    run = Run.objects.filter(state=Run.State.MEASURING).latest("pk")
    Run.objects.filter(pk=run.pk).update(state=Run.State.FAILED, failure="crash", reason="It ended.")


def triage_regression() -> None:
    Regression.objects.update(triaged=Regression.Triaged.INTENDED)


def measure_commit() -> None:
    project = Project.objects.get(slug="snake")
    commit = project.commits.order_by("position").last()
    assert commit is not None
    series = Series.objects.filter(configuration__case__project=project, headline=True)[0]
    builders.create_measured_run(commit, series.configuration.case, 0.004, seed=9)


WRITES: tuple[Callable[[], Any], ...] = (rename_snake, fail_run, triage_regression, measure_commit)


def test_each_write_shows_at_once_on_every_page(client: Client, settings: Any) -> None:
    settings.PACELINE_RATES = {}
    addresses = cached_addresses()
    for where in addresses.values():
        client.get(where)
    for write in WRITES:
        write()
        for name, where in addresses.items():
            # A client of its own has nothing in its memory. What is read is kept until the next write.
            assert read_page(client, where) == read_page(Client(), where), f"{name} after {write.__name__}"


def test_a_page_that_is_asked_for_again_is_not_made_again(client: Client) -> None:
    for where in cached_addresses().values():
        client.get(where)
        assert count_queries(client, where) <= 2, where


def test_a_browser_that_has_the_page_is_not_sent_it_again(client: Client) -> None:
    builders.create_history()
    first = client.get("/projects/snake/")
    again = client.get("/projects/snake/", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    rename_snake()
    changed = client.get("/projects/snake/", headers={"If-None-Match": first.headers["ETag"]})
    assert changed.status_code == 200


@pytest.mark.parametrize(("accepted", "encoding"), [("gzip, deflate, br", "br"), ("gzip, br;q=0", "gzip")])
def test_a_page_is_packed_for_who_takes_it_so(client: Client, accepted: str, encoding: str) -> None:
    builders.create_history()
    plain = client.get("/projects/snake/")
    unpack = {"br": brotli.decompress, "gzip": gzip.decompress}[encoding]
    for _ in range(2):
        packed = client.get("/projects/snake/", headers={"Accept-Encoding": accepted})
        assert packed.headers["Content-Encoding"] == encoding
        assert unpack(packed.content) == plain.content
        assert len(packed.content) < len(plain.content) / 3
    assert "Content-Encoding" not in client.get("/projects/snake/").headers


def test_visitors_do_not_share_pages() -> None:
    project = builders.create_history()
    member = create_member("ada", "operator", project)
    known, anonymous = Client(), Client()
    known.force_login(member)
    assert "Sign out" in read_page(known, "/projects/snake/")
    assert "Sign out" not in read_page(anonymous, "/projects/snake/")
    assert "Sign out" in read_page(known, "/projects/snake/")


def test_a_right_that_ends_ends_at_once(client: Client) -> None:
    project = builders.create_history()
    Project.objects.update(visibility=Project.Visibility.PRIVATE)
    client.force_login(create_member("ada", "viewer", project))
    assert "snake" in read_page(client, "/")
    assert client.get("/projects/snake/").status_code == 200
    Membership.objects.all().delete()
    assert client.get("/projects/snake/").status_code == 404
    assert "/projects/snake/" not in read_page(client, "/")


def test_the_token_of_a_cached_page_is_good_and_another_one_each_time() -> None:
    builders.create_history()
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("root"))
    first, second = (client.get("/projects/snake/") for _ in range(2))
    assert first.headers["ETag"] == second.headers["ETag"]
    tokens = [TOKEN.findall(answer.content.decode())[0] for answer in (first, second)]
    assert tokens[0] != tokens[1]
    assert client.post("/sign-out/", {"csrfmiddlewaretoken": "x" * 64}).status_code == 403
    assert client.post("/sign-out/", {"csrfmiddlewaretoken": tokens[1]}).status_code == 302


def test_tokens_of_two_browsers_are_their_own() -> None:
    builders.create_history()
    root = User.objects.create_superuser("root")
    clients = [Client(enforce_csrf_checks=True) for _ in range(2)]
    for client in clients:
        client.force_login(root)
    answers = [client.get("/projects/snake/") for client in clients for _ in range(2)]
    assert answers[0].headers["ETag"] != answers[2].headers["ETag"]
    assert len({answer.cookies["csrftoken"].value for answer in answers}) == 2


def test_a_message_is_shown_once(client: Client) -> None:
    builders.create_history()
    client.force_login(User.objects.create_superuser("root"))
    client.get("/projects/snake/")
    client.post("/projects/snake/settings/", {"visibility": "private", "poll_minutes": "0"})
    shown = [client.get("/projects/snake/").content.decode() for _ in range(3)]
    assert ['class="messages"' in page for page in shown][1:] == [False, False]


def test_a_page_is_made_again_after_a_minute(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    builders.create_history()
    where = "/projects/snake/"
    client.get(where)
    assert count_queries(client, where) == 1
    later = page_caching.time.monotonic() + page_caching.OLDEST_SECONDS + 1
    monkeypatch.setattr(page_caching.time, "monotonic", lambda: later)
    assert count_queries(client, where) > 1


def test_a_part_for_a_script_is_never_a_whole_cached_page(client: Client) -> None:
    builders.create_history()
    where = "/projects/snake/"
    client.get(where)
    assert count_queries(client, where) == 1
    with CaptureQueriesContext(connection) as queries:
        client.get(where, headers={"HX-Request": "true"})
    assert len(queries) > 1


def cached_page(size: int, revision: int = 1) -> CachedPage:
    return CachedPage(revision, 1.0, 1.0, b"x" * size, b"", {}, "", token_place=b"")


def seen_revision(number: int, at: float = 2.0) -> SeenRevision:
    return SeenRevision(number, at)


def test_memory_keeps_to_its_bound_and_drops_what_was_used_longest_ago() -> None:
    memory = PageMemory(30_000)
    for name in "abc":
        memory.store_page(name, cached_page(7_000))
    assert memory.find_page("a", seen_revision(1), 3.0, 0.0)
    memory.store_page("d", cached_page(7_000))
    assert [bool(memory.find_page(name, seen_revision(1), 3.0, 0.0)) for name in "abcd"] == [
        True,
        False,
        True,
        True,
    ]
    memory.store_page("large", cached_page(40_000))
    assert memory.find_page("large", seen_revision(1), 3.0, 0.0) is None
    assert memory.find_page("a", seen_revision(2), 3.0, 0.0) is None


def test_a_page_is_right_for_who_came_while_its_revision_was_the_newest() -> None:
    """Two of 20 that ask at once may see two revisions, and wait for one another's pages."""
    memory = PageMemory(30_000)
    memory.store_page("a", cached_page(100))
    assert memory.find_page("a", seen_revision(2, 1.5), came_at=1.2, made_after=0.0) is None
    assert memory.find_page("a", seen_revision(1, 1.4), came_at=1.3, made_after=0.0)
    assert memory.find_page("a", seen_revision(2, 1.5), came_at=1.2, made_after=0.0), (
        "it was seen as the newest since"
    )
    assert memory.find_page("a", seen_revision(2, 1.5), came_at=1.45, made_after=0.0) is None
    assert memory.find_page("a", seen_revision(1, 1.1), came_at=1.0, made_after=0.0)
    assert memory.find_page("a", seen_revision(2, 1.5), came_at=1.4, made_after=0.0), (
        "an earlier look takes nothing away"
    )


def test_who_waited_for_a_thread_may_get_the_page_of_when_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    builders.create_history("snake", 2)
    client, came_at = Client(), [time.monotonic()]
    monkeypatch.setattr(page_caching, "arrival_time", lambda _request: came_at[0])
    former = read_page(client, "/projects/snake/runs/")
    Run.objects.update(state=Run.State.FAILED)
    assert read_page(client, "/projects/snake/runs/") == former
    came_at[0] = time.monotonic()
    assert read_page(client, "/projects/snake/runs/") != former


def test_who_is_signed_in_sees_what_was_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    builders.create_history("snake", 2)
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    monkeypatch.setattr(page_caching, "arrival_time", lambda _request: 0.0)
    former = read_page(client, "/projects/snake/runs/")
    Run.objects.update(state=Run.State.FAILED)
    assert read_page(client, "/projects/snake/runs/") != former
