from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from dashboard import dispatch, runs
from dashboard.models import OutboxMessage, Project, Run, Trigger
from dashboard.repositories import MOST_COMMITS
from dashboard.triggers import reading_commits
from tests.dashboard.conftest import MANIFEST, Repository
from workers.site import tasks

pytestmark = pytest.mark.django_db
URL = "/projects/snakes/trigger/"


@pytest.fixture
def operator(db: None) -> User:
    user = User.objects.create_user("ada")
    user.user_permissions.add(Permission.objects.get(codename="add_trigger"))
    return user


def post_form(client: Client, **form: Any) -> str:
    """What the page says behind the form."""
    answer = client.post(URL, form, follow=True)
    assert answer.status_code == (200 if answer.redirect_chain else 400)
    return unescape(answer.content.decode())


@pytest.mark.parametrize(
    ("form", "revisions"),
    [
        ({}, {}),
        ({"which": "newest", "commit": "typed before", "last": "10"}, {}),
        ({"which": "commit", "commit": " v1.0 "}, {"commit": "v1.0"}),
        ({"which": "range", "range": "v1..v2"}, {"range": "v1..v2"}),
        ({"which": "last", "last": "5"}, {"last": 5}),
    ],
)
def test_the_button_requests(
    client: Client, project: Project, operator: User, form: dict[str, str], revisions: dict[str, Any]
) -> None:
    client.force_login(operator)
    # Nobody can ask a repository that isn't there: the worker finds out.
    assert "The repository is being read." in post_form(client, **form, benchmarks=["tiny", "other"])
    trigger = Trigger.objects.get()
    assert (trigger.source, trigger.revisions, trigger.requested_by) == ("web", revisions, operator)
    assert trigger.benchmarks == ["tiny", "other"]


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"which": "commit", "commit": "--all"}, "isn't a revision"),
        ({"which": "commit"}, "Say which commits"),
        ({"which": "benchmarks"}, "Say which commits"),
        ({"which": "last", "last": "many"}, "ask for 1 to 1000"),
        ({"which": "last", "last": "²"}, "ask for 1 to 1000"),
        ({"which": "last", "last": "9" * 5000}, "The last 99999999999999999999 commits can't be measured"),
        ({"which": "range", "range": "main"}, "isn't a range"),
        ({"which": "newest", "benchmarks": ["x" * 101]}, "can't be right"),
    ],
)
def test_wrong_revisions_are_one_sentence(
    client: Client, project: Project, operator: User, form: dict[str, Any], sentence: str
) -> None:
    client.force_login(operator)
    assert sentence in post_form(client, **form)
    assert not Trigger.objects.exists()


def test_who_is_not_signed_in_signs_in_first(client: Client, project: Project) -> None:
    assert client.post(URL)["Location"] == "/sign-in/?next=/projects/snakes/"
    # Whose session has ended had typed something: the next page says that it is gone, and does so once.
    shown = [client.get("/sign-in/?next=/projects/snakes/").content.decode() for _ in range(2)]
    assert ["You are signed out, so what was sent wasn" in page for page in shown] == [True, False]
    assert not Trigger.objects.exists()


def test_a_viewer_may_not(client: Client, project: Project) -> None:
    client.force_login(User.objects.create_user("eve"))
    assert client.post(URL).status_code == 403
    assert not Trigger.objects.exists()


def test_the_form_is_protected(project: Project, operator: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    refused = client.post(URL)
    assert refused.status_code == 403
    assert "go back, load the page again, and send it once more" in refused.content.decode()


def test_the_address_fills_the_form_in(client: Client, project: Project, operator: User) -> None:
    client.force_login(operator)
    shown = client.get(URL, {"which": "commit", "commit": "v1.0"}).content.decode()
    assert 'value="commit" checked' in shown
    assert 'name="commit" value="v1.0"' in shown
    assert not Trigger.objects.exists()


def test_a_commit_that_is_not_there_is_refused_with_what_was_typed(
    client: Client, tracked: Project, operator: User
) -> None:
    client.force_login(operator)
    shown = post_form(client, which="commit", commit="no-such-tag", last="77")
    assert "The repository of snakes has no commit 'no-such-tag'; its branches are: main." in shown
    assert 'name="commit" value="no-such-tag"' in shown
    assert 'name="last" value="77"' in shown
    assert "has no commit 'gone'" in post_form(client, which="range", range="gone..main")
    assert not Trigger.objects.exists()


def test_a_commit_that_the_mirror_lacks_is_looked_for_at_once(
    client: Client, tracked: Project, repository: Repository, operator: User
) -> None:
    client.force_login(operator)
    tracked.mirror.fetch()
    newest = repository.commit("Go on")
    post_form(client, which="commit", commit=newest[:12])
    assert Trigger.objects.get().revisions == {"commit": newest[:12]}


def test_an_unknown_benchmark_is_refused_with_what_was_typed(
    client: Client, tracked: Project, operator: User
) -> None:
    client.force_login(operator)
    tracked.mirror.fetch()
    shown = post_form(client, which="last", last="3", benchmarks=["zzz"])
    assert "has no benchmark 'zzz'; it has tiny, other." in shown
    assert 'name="last" value="3"' in shown
    assert not Trigger.objects.exists()


def test_a_benchmark_that_came_since_is_looked_for_at_once(
    client: Client, tracked: Project, repository: Repository, operator: User
) -> None:
    client.force_login(operator)
    tracked.mirror.fetch()
    added = MANIFEST.replace("[benchmarks.other]", "[benchmarks.newer]")
    (repository.folder / "paceline.toml").write_text(added)
    repository.commit("Measure more")
    post_form(client, benchmarks=["newer"])
    assert Trigger.objects.get().benchmarks == ["newer"]
    assert "has no benchmark 'other'; did you mean newer? It has tiny, newer." in post_form(
        client, benchmarks=["other"]
    )
    # One of these commits has it: the others are left out, and the trigger says so.
    post_form(client, which="last", last="2", benchmarks=["other"])
    assert Trigger.objects.count() == 2


def test_a_range_without_a_commit_is_refused(client: Client, tracked: Project, operator: User) -> None:
    client.force_login(operator)
    tracked.mirror.fetch()
    assert "The range main..main holds no commit" in post_form(client, which="range", range="main..main")
    assert not Trigger.objects.exists()


def test_an_imported_history_says_at_once_that_nothing_can_be_measured(
    client: Client, project: Project, operator: User
) -> None:
    Project.objects.update(repository="")
    client.force_login(operator)
    assert "nothing of it can be measured" in post_form(client)
    assert not Trigger.objects.exists()


def test_what_was_requested_is_linked_until_it_has_ended(
    client: Client, tracked: Project, operator: User
) -> None:
    client.force_login(operator)
    post_form(client, benchmarks=["other"])
    trigger = Trigger.objects.get()
    (run,) = runs.resolve_trigger(trigger.pk)
    page = f"/projects/snakes/triggers/{trigger.pk}/"
    shown = client.get(f"{page}status/").content.decode()
    assert f'Its run is <a href="/runs/{run}/">#{run}</a>, requested.' in shown
    Run.objects.update(state="done")
    assert client.get(f"{page}status/")["HX-Refresh"] == "true"
    assert f'Its run is <a href="/runs/{run}/">#{run}</a>, done.' in client.get(page).content.decode()
    assert client.get("/projects/other/triggers/1/").status_code == 404


def test_the_form_allows_what_a_person_may_ask_for(client: Client, tracked: Project, operator: User) -> None:
    client.force_login(operator)
    assert f'max="{MOST_COMMITS}"' in client.get("/projects/snakes/trigger/").content.decode()


def test_what_the_worker_refuses_can_be_changed_and_asked_again(
    client: Client, project: Project, operator: User
) -> None:
    asked = {"range": "a..b"}
    trigger = Trigger.objects.create(
        project=project, source="web", revisions=asked, benchmarks=["tiny"], state="refused", detail="Away."
    )
    client.force_login(operator)
    shown = unescape(client.get(f"/projects/snakes/triggers/{trigger.pk}/").content.decode())
    assert 'href="/projects/snakes/trigger/?which=range&range=a..b&benchmarks=tiny"' in shown


def test_commits_that_nobody_asked_for_are_looked_for_and_offered(
    client: Client, tracked: Project, repository: Repository, operator: User
) -> None:
    client.force_login(operator)
    runs.resolve_trigger(Trigger.objects.create(project=tracked, source=Trigger.Source.COMMAND).pk)
    newer = [repository.commit(subject) for subject in ("Sleep", "Eat")]
    page, button = "/projects/snakes/commits/", "/projects/snakes/read-commits/"
    assert "Nothing is missing among the newest 40" in client.get(page).content.decode()
    # The first commit too: it came before the one that was asked for.
    assert "3 commits more are known now." in client.post(button, follow=True).content.decode()
    shown = client.get(page).content.decode()
    assert "3 of the newest 40 commits that were read have no result." in shown
    assert "Measure what is missing" in shown
    assert not Run.objects.filter(commit__hash__in=newer).exists()
    assert "Each of the newest commits of main was known." in client.post(button, follow=True).text


def test_a_slow_repository_is_read_by_a_worker(
    client: Client,
    tracked: Project,
    repository: Repository,
    operator: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client.force_login(operator)
    runs.resolve_trigger(Trigger.objects.create(project=tracked, source=Trigger.Source.COMMAND).pk)
    repository.commit("Sleep")
    known = tracked.commits.count()
    monkeypatch.setattr(reading_commits, "CHECK_SECONDS", 0.0001)
    shown = client.post("/projects/snakes/read-commits/", follow=True).text
    assert "A worker goes on reading it" in shown
    message = OutboxMessage.objects.get(task=dispatch.READ_COMMITS)
    assert tracked.commits.count() == known
    tasks.read_newest_commits(*message.arguments)
    # The first commit too: it came before the one that was asked for.
    assert tracked.commits.count() == known + 2
    assert not OutboxMessage.objects.exists()


def test_what_a_worker_cannot_read_is_told_by_a_refused_trigger(project: Project) -> None:
    reading_commits.read_slow_repository(project.pk, 40)
    assert "/nowhere can't be fetched" in Trigger.objects.get(state=Trigger.State.REFUSED).detail


def test_a_repository_that_cannot_be_read_says_so(client: Client, project: Project, operator: User) -> None:
    client.force_login(operator)
    shown = unescape(client.post("/projects/snakes/read-commits/", follow=True).content.decode())
    assert "/nowhere can't be fetched" in shown


def last_reading(client: Client) -> str:
    """When the repository was read last, as the page says it: its commits have times too."""
    (told,) = re.findall(r"last read <time[^>]*>([^<]*)</time>", client.get("/projects/snakes/commits/").text)
    return str(told)


def test_the_page_says_when_the_repository_was_read_last_and_why_it_is_not_since(
    client: Client, tracked: Project, operator: User
) -> None:
    client.force_login(operator)
    runs.resolve_trigger(Trigger.objects.create(project=tracked, source=Trigger.Source.COMMAND).pk)
    Project.objects.update(repository_read_at=timezone.now() - timedelta(minutes=3))
    page = "/projects/snakes/commits/"
    assert last_reading(client) == "3 min ago"
    Project.objects.update(repository="/nowhere")
    client.post("/projects/snakes/read-commits/")
    shown = unescape(client.get(page).content.decode())
    assert ">3 min ago</time>; it can't be read since: /nowhere can't be fetched" in shown
    Project.objects.update(repository=tracked.repository)
    client.post("/projects/snakes/read-commits/")
    shown = unescape(client.get(page).content.decode())
    assert (last_reading(client), "can't be read" in shown) == ("just now", False)


def test_what_an_earlier_repository_said_is_not_noted_of_the_new_one(project: Project) -> None:
    earlier = Project.objects.get(pk=project.pk)
    Project.objects.update(repository="/another")
    earlier.note_reading("/nowhere can't be fetched")
    earlier.note_reading()
    project.refresh_from_db()
    assert (project.repository_problem, project.repository_read_at) == ("", None)
    project.note_reading("/another can't be fetched")
    project.refresh_from_db()
    assert project.repository_problem == "/another can't be fetched"


def test_a_page_that_is_loaded_again_still_says_that_it_was_read_just_now(
    client: Client, tracked: Project, operator: User
) -> None:
    client.force_login(operator)
    runs.resolve_trigger(Trigger.objects.create(project=tracked, source=Trigger.Source.COMMAND).pk)
    client.post("/projects/snakes/read-commits/", follow=True)
    Project.objects.update(repository_read_at=timezone.now() - timedelta(minutes=3), poll_minutes=7)
    assert last_reading(client) == "3 min ago"
    client.post("/projects/snakes/read-commits/", follow=True)
    assert last_reading(client) == "just now"


def test_a_repository_of_which_nobody_knows_when_it_was_read_is_said_nothing_of(
    client: Client, tracked: Project, operator: User
) -> None:
    """Its commits came from an archive, or before anybody noted it."""
    client.force_login(operator)
    runs.resolve_trigger(Trigger.objects.create(project=tracked, source=Trigger.Source.COMMAND).pk)
    Project.objects.update(repository_read_at=None)
    shown = unescape(client.get("/projects/snakes/commits/").text)
    assert ("Look for newer commits" in shown, "read yet" in shown, "last read" in shown) == (
        True,
        False,
        False,
    )
    Project.objects.update(repository="/nowhere")
    client.post("/projects/snakes/read-commits/", follow=True)
    shown = unescape(client.get("/projects/snakes/commits/").text)
    assert "<span class=\"muted\">It can't be read: /nowhere can't be fetched" in shown


def test_what_another_branch_had_is_listed_once_it_is_merged(
    client: Client, tracked: Project, repository: Repository, operator: User
) -> None:
    """By moving the branch there; with the tags that name what is read."""
    client.force_login(operator)
    runs.resolve_trigger(Trigger.objects.create(project=tracked, source=Trigger.Source.COMMAND).pk)
    repository.git("switch", "--quiet", "--create", "faster")
    beside = repository.commit("Tune")
    asked = Trigger.objects.create(
        project=tracked, source=Trigger.Source.COMMAND, revisions={"commit": beside}
    )
    runs.resolve_trigger(asked.pk)
    repository.git("switch", "--quiet", "main")
    repository.git("merge", "--quiet", "--ff-only", "faster")
    repository.git("tag", "v1.0")
    assert tracked.commits.get(hash=beside).branch == "faster"
    # The first commit, and this one.
    answer = client.post("/projects/snakes/read-commits/", follow=True).content.decode()
    assert "2 commits more are known now." in answer
    merged = tracked.commits.get(hash=beside)
    assert (merged.branch, merged.tags) == ("main", ["v1.0"])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"repository": ""}, "snakes has no repository, only an imported history"),
        ({"branch": "gone"}, "its branches are: main."),
    ],
)
def test_where_no_commits_can_be_looked_for(
    client: Client, tracked: Project, operator: User, changes: dict[str, str], sentence: str
) -> None:
    """An imported history, and a branch that was renamed."""
    runs.resolve_trigger(Trigger.objects.create(project=tracked, source=Trigger.Source.COMMAND).pk)
    Project.objects.update(**changes)
    client.force_login(operator)
    known = tracked.commits.count()
    assert sentence in unescape(client.post("/projects/snakes/read-commits/", follow=True).text)
    assert (tracked.commits.count(), tracked.commits.exclude(branch="main").count()) == (known, 0)


def test_who_may_not_ask_for_runs_may_not_look_for_commits(client: Client, tracked: Project) -> None:
    runs.resolve_trigger(Trigger.objects.create(project=tracked, source=Trigger.Source.COMMAND).pk)
    client.force_login(User.objects.create_user("eve"))
    assert client.post("/projects/snakes/read-commits/").status_code == 403
    assert "Look for newer commits" not in client.get("/projects/snakes/commits/").text
