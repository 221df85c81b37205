"""Adding a project by pages: its repository is tested, shown, and added with its first runs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client
from pytest_django import Settings

from dashboard.models import Project, RepositoryTest, Run, Trigger
from dashboard.project_setup.repository_tests import perform_test
from dashboard.querysets.durations import newest_durations
from tests.dashboard.access.conftest import create_member, create_permitted
from tests.dashboard.conftest import MANIFEST, Repository
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

NEW = "/projects/new/"


@pytest.fixture(scope="module")
def training_code(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository with a manifest, and a branch without; no test changes it."""
    made = Repository(tmp_path_factory.mktemp("code") / "Training Code")
    made.commit("Begin", train_py="print(1)\n")
    made.git("branch", "bare")
    made.commit("Add a manifest", paceline_toml=MANIFEST)
    return made


@pytest.fixture
def code(training_code: Repository, tmp_path: Path, settings: Settings) -> Repository:
    """The same, of which no mirror is there yet."""
    settings.PACELINE_HOME = tmp_path / "home"
    return training_code


def ask_test(client: Client, address: object, **form: str) -> str:
    """The page of a test that has ended."""
    where = client.post(NEW, {"repository": str(address), **form})["Location"]
    perform_test(RepositoryTest.objects.latest("pk").pk)
    return str(where)


def add_form(**fields: Any) -> dict[str, Any]:
    form = {"slug": "mine", "visibility": "public", "keeps": "", "manifest": "", "which": "5"}
    return form | fields


def test_a_project_is_added(signed_in: Client, code: Repository) -> None:
    assert "Its code will run on the hosts" in shown_text(signed_in.get(NEW))
    where = ask_test(signed_in, code.folder)
    shown = signed_in.get(where)
    text = shown_text(shown)
    assert "The repository can be fetched; its branch main is read." in text
    assert "tiny[size=1] tiny[size=2]" in text
    assert "3 cases: as many runs for each commit." in text
    assert "How long a commit takes is unknown before the first full run:" in text
    assert 'value="training-code"' in shown.content.decode()
    answer = signed_in.post(where, add_form(), follow=True)
    assert answer.redirect_chain[-1][0] == "/projects/mine/"
    assert "mine is added, and you administer it" in shown_text(answer)
    assert Trigger.objects.get().revisions == {"last": 5}


@pytest.mark.parametrize("choice", [{"which": "0"}, {"which": "last", "last": "0"}])
def test_a_project_without_first_runs_promises_none(
    signed_in: Client, code: Repository, choice: dict[str, str]
) -> None:
    said = shown_text(signed_in.post(ask_test(signed_in, code.folder), add_form(**choice), follow=True))
    assert "mine is added. Nothing is measured yet" in said
    assert "once the repository has been read" not in said


def test_a_running_test_is_asked_for_again(signed_in: Client, code: Repository) -> None:
    where = signed_in.post(NEW, {"repository": str(code.folder)})["Location"]
    assert f'hx-get="{where}status/"' in signed_in.get(where).content.decode()
    assert "Waiting for a worker" in shown_text(signed_in.get(f"{where}status/"))
    perform_test(RepositoryTest.objects.get().pk)
    assert "HX-Refresh" in signed_in.get(f"{where}status/")


def test_a_failed_test_says_why_and_keeps_the_address(signed_in: Client, tmp_path: Path) -> None:
    shown = signed_in.get(ask_test(signed_in, tmp_path))
    assert "There is no git repository at this address" in shown_text(shown)
    assert f'value="{tmp_path}"' in shown.content.decode()


def test_a_refused_address_is_told_at_its_field(signed_in: Client) -> None:
    form = {"repository": "https://host/x", "password": "a secret", "user": ""}
    answer = signed_in.post(NEW, form)
    assert (answer.status_code, "Give the user too" in shown_text(answer)) == (400, True)
    assert "a secret" not in answer.content.decode()
    assert not RepositoryTest.objects.exists()


def test_another_branch_is_read(signed_in: Client, code: Repository) -> None:
    ask_test(signed_in, code.folder)
    where = ask_test(signed_in, "", again=str(RepositoryTest.objects.get().pk), branch="bare")
    shown = signed_in.get(where)
    assert "has no paceline.toml" in shown_text(shown)
    assert "[benchmarks.train]" in shown.content.decode()
    answer = signed_in.post(where, add_form())
    assert "nothing can be measured" in shown_text(answer)
    signed_in.post(where, add_form(keeps="yes", manifest=MANIFEST, which="last", last="2"))
    project = Project.objects.get()
    assert (project.branch, project.manifest) == ("bare", MANIFEST)
    assert Trigger.objects.get().revisions == {"last": 2}


def test_a_wrong_field_is_told_and_nothing_is_added(
    signed_in: Client, code: Repository, settings: Settings
) -> None:
    settings.PACELINE_MOST_RUNS = 50
    where = ask_test(signed_in, code.folder)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"slug": "my training"}, "A name has letters from a to z, digits, - and _, such as my-training."),
        ({"slug": " "}, "The name must not be empty."),
        ({"slug": "x" * 61}, "The name must have at most 60 characters."),
        ({"slug": "new"}, "No project can be called new"),
        ({"slug": "paceline"}, "paceline is kept for the site"),
        ({"visibility": "x"}, "Visibility must be one of public, private"),
        ({"which": "last", "last": "many"}, "The number of commits must be a whole number, 0 to 1000"),
        ({"which": "last", "last": "1001"}, "At most 1000 commits"),
        ({"keeps": "yes", "manifest": "a = \n"}, "line 1"),
        ({"keeps": "yes", "manifest": " "}, "The manifest is empty"),
        ({"benchmarks": ["other", "walker"]}, "Benchmarks: the manifest has none called 'walker'."),
        ({"which": "20"}, "20 commits would be 60 runs, this site takes 50 at once"),
    ]
    for fields, sentence in wrong:
        answer = signed_in.post(where, add_form(**fields))
        assert (answer.status_code, sentence in shown_text(answer)) == (400, True), fields
        assert not Project.objects.exists()


def test_chosen_benchmarks_alone_are_measured(signed_in: Client, code: Repository) -> None:
    signed_in.post(ask_test(signed_in, code.folder), add_form(benchmarks=["other"], visibility="private"))
    assert Trigger.objects.get().benchmarks == ["other"]


def test_a_manifest_is_shown_before_it_is_kept(signed_in: Client) -> None:
    answer = signed_in.post(f"{NEW}manifest/", {"manifest": MANIFEST})
    assert "3 cases" in shown_text(answer)
    assert "line 1" in shown_text(signed_in.post(f"{NEW}manifest/", {"manifest": "a = \n"}))


def test_a_test_is_its_askers_alone(signed_in: Client, code: Repository, client: Client) -> None:
    where = ask_test(signed_in, code.folder)
    other = Client()
    other.force_login(User.objects.create_superuser("root"))
    assert other.get(where).status_code == other.get(f"{where}status/").status_code == 404


def test_whom_the_site_lets_add_is_offered_it(client: Client, code: Repository) -> None:
    project = builders.create_project()
    assert f'href="{NEW}"' not in client.get("/").content.decode()
    client.force_login(create_member("eve", "admin", project))
    assert client.get(NEW).status_code == 403
    client.force_login(create_permitted("grace", "add_project"))
    assert f'href="{NEW}"' in client.get("/").content.decode()
    answer = client.post(NEW, {"repository": str(code.folder)})
    assert "administrators of the site alone" in shown_text(answer)


def test_an_empty_site_offers_it(signed_in: Client) -> None:
    assert f'href="{NEW}"' in signed_in.get("/").content.decode()


def test_durations_of_the_same_repository_are_expected_again(signed_in: Client, code: Repository) -> None:
    other = builders.create_project("other")
    Project.objects.update(repository=str(code.folder))
    commit = builders.create_commits(other, 1)[0]
    run = builders.create_measured_run(commit, builders.create_case(other, "tiny", size=1), 0.001)
    Run.objects.filter(pk=run.pk).update(finished_at=F("claimed_at") + timedelta(seconds=100))
    text = shown_text(signed_in.get(ask_test(signed_in, code.folder)))
    assert "On one machine the 1 case that ran before takes about 1 min 40 s a commit" in text


def test_the_newest_whole_run_of_a_case_counts(signed_in: Client) -> None:
    line = builders.create_measured_commits(3)
    Run.objects.update(finished_at=F("claimed_at") + timedelta(seconds=100))
    newest = line[-1].runs.get()
    Run.objects.filter(pk=newest.pk).update(finished_at=F("claimed_at") + timedelta(seconds=200))
    builders.create_run(line[-1], newest.case, Run.State.FAILED, failure="crash")
    assert newest_durations(Project.objects.all()) == {str(newest.case): 200.0}
    shown = shown_text(signed_in.get("/projects/snake/"))
    assert "A commit with all these cases takes about 3 min 20 s on one machine" in shown
    assert "about 3 min 20 s a commit" in shown


def test_a_name_that_is_or_was_taken_is_not_suggested(signed_in: Client, code: Repository) -> None:
    project = builders.create_project("training-code")
    project.former_names.create(slug="training-code-2")
    shown = signed_in.get(ask_test(signed_in, code.folder)).content.decode()
    assert 'value="training-code-3"' in shown
