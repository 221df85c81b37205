"""The pages of the files that the site keeps beside a manifest."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from dashboard.access import Visitor
from dashboard.host_protocol import files_version
from dashboard.models import Project
from dashboard.pages.form_fields import text_version
from dashboard.pages.runs.document_parts import reproduction_command
from dashboard.pages.settings.manifest import keep_written
from dashboard.projects.kept_files import keep_files, read_kept_files
from tests.dashboard.conftest import MANIFEST
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

MANIFEST_PAGE = "/projects/snake/settings/manifest/"
FILE_PAGE = f"{MANIFEST_PAGE}file/"


@pytest.fixture
def project(db: None) -> Project:
    return builders.create_project("snake")


def test_files_are_uploaded_changed_and_removed(client: Client, admin: User, project: Project) -> None:
    uploaded = SimpleUploadedFile("train.py", b"print(1)\r\n")
    form = {"action": "upload", "folder": "bench/", "files": uploaded}
    shown = client.post(FILE_PAGE, form, follow=True)
    assert "bench/train.py counts from now on" in shown_text(shown)
    # Without a manifest that is kept they would be of no use, and the page says so.
    assert "They count once a manifest is kept here" in shown_text(shown)
    Project.objects.update(manifest=MANIFEST)
    shown = client.get(MANIFEST_PAGE)
    assert "They count once" not in shown_text(shown)
    assert f'href="{FILE_PAGE}?path=bench/train.py"' in shown.content.decode()
    assert "print(1)" in client.get(f"{FILE_PAGE}?path=bench/train.py").content.decode()
    moved = {"action": "keep", "former": "bench/train.py", "path": "run.py", "text": "\r\nprint(2)"}
    client.post(FILE_PAGE, moved)
    assert read_kept_files(project) == {"run.py": "\nprint(2)"}
    client.post(FILE_PAGE, {"action": "remove", "former": "run.py", "path": "run.py"})
    assert read_kept_files(project) == {}


def test_what_cannot_be_kept_stays_in_the_form(client: Client, admin: User, project: Project) -> None:
    answer = client.post(FILE_PAGE, {"action": "keep", "path": "../x.py", "text": "print(3)"})
    assert answer.status_code == 400
    assert "must be a path inside the repository" in shown_text(answer)
    assert "print(3)" in answer.content.decode()
    assert "Choose at least one file" in shown_text(client.post(FILE_PAGE, {"action": "upload"}))
    image = SimpleUploadedFile("x.png", b"\x89PNG\xff")
    shown = shown_text(client.post(FILE_PAGE, {"action": "upload", "files": image}))
    assert "x.png is no text" in shown


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"action": "remove", "path": "no.py"}, "path: no file 'no.py' is kept."),
        ({"action": "remove"}, "path: no file '' is kept."),
        ({"action": "drop", "path": "run.py"}, "action: must be one of keep, remove, upload."),
        ({"path": "new.py", "text": "print(3)"}, "action: must be one of keep, remove, upload."),
        ({"action": "keep", "path": ".", "text": "print(3)"}, "'.' must be a path inside the repository"),
        ({"action": "keep", "path": "paceline.toml/x", "text": "y"}, "'paceline.toml/x' is the manifest"),
        # Another file's text would be gone.
        ({"action": "keep", "path": "run.py", "text": "print(3)"}, "path: run.py is kept already"),
        (
            {"action": "keep", "former": "two.py", "path": "run.py", "text": "2"},
            "path: run.py is kept already",
        ),
    ],
)
def test_what_was_not_meant_changes_no_kept_file(
    client: Client, admin: User, project: Project, form: dict[str, str], sentence: str
) -> None:
    before = {"run.py": "print(1)", "two.py": "print(2)"}
    keep_files(None, project, before)
    answer = client.post(FILE_PAGE, form)
    assert (answer.status_code, sentence in shown_text(answer)) == (400, True)
    assert read_kept_files(project) == before


@pytest.mark.parametrize("action", ["keep", "remove"])
def test_a_file_that_somebody_else_changed_stays(
    client: Client, admin: User, project: Project, action: str
) -> None:
    keep_files(None, project, {"run.py": "print(1)"})
    opened = client.get(FILE_PAGE, {"path": "run.py"}).context["text_version"]
    keep_files(None, project, {"run.py": "print('theirs')"})
    form = {"action": action, "former": "run.py", "path": "run.py", "text": "print('mine')"}
    answer = client.post(FILE_PAGE, form | {"text_version": opened})
    assert (answer.status_code, "Somebody has changed it since" in shown_text(answer)) == (400, True)
    assert "mine" in answer.content.decode()
    assert read_kept_files(project) == {"run.py": "print('theirs')"}
    again = form | {"text_version": answer.context["text_version"]}
    assert client.post(FILE_PAGE, again).status_code == 302
    # Loaded again after that it is kept as it was sent; what is gone can't go once more.
    assert client.post(FILE_PAGE, again).status_code == (302 if action == "keep" else 400)
    assert read_kept_files(project) == ({"run.py": "print('mine')"} if action == "keep" else {})


def test_a_manifest_that_somebody_else_changed_stays(client: Client, admin: User, project: Project) -> None:
    opened = client.get(MANIFEST_PAGE).context["text_version"]
    Project.objects.update(manifest=MANIFEST)
    mine = {"manifest": f"{MANIFEST}\n# mine", "text_version": opened}
    # Looking at its cases in between doesn't make it newer.
    shown = client.post(MANIFEST_PAGE, mine | {"action": "preview"})
    assert shown.context["text_version"] == opened
    answer = client.post(MANIFEST_PAGE, mine | {"action": "keep"})
    assert (answer.status_code, "Somebody has changed it since" in shown_text(answer)) == (400, True)
    assert "# mine" in answer.content.decode()
    project.refresh_from_db()
    assert project.manifest == MANIFEST
    again = mine | {"action": "keep", "text_version": answer.context["text_version"]}
    assert client.post(MANIFEST_PAGE, again).status_code == 302
    project.refresh_from_db()
    assert "# mine" in project.manifest


def test_a_manifest_that_was_changed_while_this_one_was_read_stays(admin: User, project: Project) -> None:
    opened = text_version(project.manifest)
    Project.objects.update(manifest=MANIFEST)
    assert keep_written(Visitor(admin), project, f"{MANIFEST}\n# mine", opened) == MANIFEST
    project.refresh_from_db()
    assert project.manifest == MANIFEST


def test_no_file_takes_the_place_of_the_checkout(client: Client, admin: User, project: Project) -> None:
    answer = client.post(FILE_PAGE, {"action": "keep", "path": ".", "text": "print(3)"})
    assert (answer.status_code, read_kept_files(project)) == (400, {})


def test_a_run_says_what_repeats_it(client: Client, admin: User, project: Project) -> None:
    commit, case = builders.create_commits(project, 1)[0], builders.create_case(project)
    project.kept_files.create(path="bench/train.py", text="print()")
    Project.objects.update(manifest=MANIFEST)
    run = builders.create_run(commit, case)
    run.case.project.refresh_from_db()
    shown = shown_text(client.get(run.get_absolute_url()))
    assert "# put here first what the site keeps, if it was kept then: paceline.toml, bench/train.py" in shown
    version = files_version({"bench/train.py": "print()"})
    for measured_with, same in ((version, "as they were then"), ("0" * 12, "which were others then")):
        command = reproduction_command(run, {"environment": {"kept_files": measured_with}})
        assert "# put here first what the site keeps, if it was kept then: paceline.toml\n" in command
        assert f"# and its files, {same}: bench/train.py\n" in command


def test_scripts_read_them_with_the_settings(client: Client, admin: User, project: Project) -> None:
    project.kept_files.create(path="train.py", text="print()")
    answer = client.get("/api/v1/projects/snake/settings").json()
    assert answer["kept_files"] == [{"path": "train.py", "text": "print()"}]
    assert len(answer["kept_files_version"]) == 12
