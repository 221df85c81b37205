"""Requests that no view could read get one sentence, not a failure of the site."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import Channel, RepositoryTest
from tests.pages import builders

FORM = "application/x-www-form-urlencoded"
FILES = "multipart/form-data; boundary=x"
TOO_LARGE = "What was sent is larger than the 2 MiB that the site reads."


def uploaded_file(content: bytes) -> bytes:
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.py"\r\n\r\n'
    return head + content + b"\r\n--x--\r\n"


@pytest.mark.parametrize(
    "address",
    [
        "/admin/dashboard/run/?state__exact=%00",
        "/admin/dashboard/commit/?branch=a%00b",
        "/admin/autocomplete/?app_label=dashboard&model_name=run&field_name=commit&term=%00",
        "/projects/%00/",
    ],
)
def test_a_nul_in_an_address_is_refused(signed_in: Client, address: str) -> None:
    answer = signed_in.get(address)
    assert answer.status_code == 400
    assert "a NUL" in answer.text


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "form"),
    [
        ("/projects/snake/settings/manifest/file/", {"action": "keep", "former": "a\0b", "path": "a.py"}),
        ("/projects/new/", {"repository": "https://git.example.org/code.git", "branch": "a\0b"}),
        ("/projects/new/", {"again": "{test}", "branch": "a\0b"}),
        ("/projects/new/", {"again": "9" * 5000}),
        ("/projects/snake/settings/channels/{channel}/rules/", {"action": "up", "rule": "9" * 5000}),
        ("/site/jobs/", {"action": "drop", "job": "9" * 5000}),
    ],
)
def test_a_form_with_what_no_row_can_have_is_answered(
    signed_in: Client, address: str, form: dict[str, str]
) -> None:
    project = builders.create_project("snake")
    channel = Channel.objects.create(project=project, kind="email", address="team@example.org")
    asked_by = User.objects.get()
    tested = RepositoryTest.objects.create(repository="https://git.example.org/code", requested_by=asked_by)
    typed = {name: text.replace("{test}", str(tested.pk)) for name, text in form.items()}
    answer = signed_in.post(address.format(channel=channel.pk), typed)
    assert answer.status_code in (200, 302, 400)


@pytest.mark.parametrize("charset", ["base64", "bogus", "utf-16", "x" * 5000])
@pytest.mark.parametrize("kind", [FORM, "multipart/form-data; boundary=x"])
def test_a_form_in_another_charset_is_refused(client: Client, kind: str, charset: str) -> None:
    answer = client.generic("POST", "/sign-in/", b"a=b", content_type=f"{kind}; charset={charset}")
    assert answer.status_code == 400
    assert answer.text.startswith("The request's charset is ")
    assert len(answer.text) < 120


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "body", "status", "sentence"),
    [
        (FORM, b"name=" + b"x" * (3 * 2**20), 413, TOO_LARGE),
        (FILES, uploaded_file(b"x" * (3 * 2**20)), 413, TOO_LARGE),
        (FORM, b"&".join(b"f%d=1" % number for number in range(2000)), 400, "What was sent has more fields"),
    ],
    ids=["field", "file", "fields"],
)
def test_a_form_that_is_too_large_is_told(
    client: Client, kind: str, body: bytes, status: int, sentence: str
) -> None:
    """Whoever sends it: no file of a visitor comes to the disk."""
    answer = client.generic("POST", "/sign-in/", body, content_type=kind)
    assert (answer.status_code, sentence in answer.text) == (status, True)
    assert not answer.wsgi_request.__dict__.get("_files")
    assert "Nothing was changed" in answer.text


@pytest.mark.django_db
@pytest.mark.parametrize("charset", ["utf-8", "UTF-8"])
def test_a_form_in_utf8_is_read(client: Client, charset: str) -> None:
    answer = client.generic("POST", "/sign-in/", b"login=%C3%A4da", content_type=f"{FORM}; charset={charset}")
    assert answer.status_code == 200
    assert 'value="äda"' in answer.text


@pytest.mark.django_db
def test_a_hook_may_spell_utf8_as_it_likes(client: Client) -> None:
    answer = client.generic("POST", "/hooks/none/", b"{}", content_type="application/json; charset=utf8")
    assert answer.status_code != 400


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/machines/99/", "/claims/99/", "/projects/snake/triggers/99/"])
def test_what_is_not_there_names_no_class_of_the_code(signed_in: Client, address: str) -> None:
    builders.create_project()
    answer = signed_in.get(address)
    assert answer.status_code == 404
    assert "There is nothing at this address." in answer.text
    assert "matches the given query" not in answer.text
