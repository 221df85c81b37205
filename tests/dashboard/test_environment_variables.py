from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from dashboard import environment_variables


def test_a_database_url_becomes_djangos_entry() -> None:
    entry = environment_variables.database_settings(
        "postgresql://ann:s%40me@db.example:5433/pace?sslmode=require"
    )
    picked = {key: entry[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")}
    assert picked == {
        "NAME": "pace",
        "USER": "ann",
        "PASSWORD": "s@me",
        "HOST": "db.example",
        "PORT": "5433",
        "OPTIONS": {"sslmode": "require"},
    }


def test_a_socket_is_a_host() -> None:
    entry = environment_variables.database_settings("postgresql:///pace?host=/tmp/sockets&user=ann")
    assert (entry["HOST"], entry["USER"], entry["OPTIONS"]) == ("/tmp/sockets", "ann", {})  # noqa: S108


@pytest.mark.parametrize(
    ("url", "sentence"),
    [("mysql://host/pace", "must begin with postgresql://"), ("postgresql://host", "must name a database")],
)
def test_a_wrong_database_url_is_one_sentence(url: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=sentence):
        environment_variables.database_settings(url)


def test_mail_by_smtp() -> None:
    entries = environment_variables.email_settings("smtp+tls://ann:secret@mail.example:587")
    assert (entries["EMAIL_HOST"], entries["EMAIL_PORT"], entries["EMAIL_USE_TLS"]) == (
        "mail.example",
        587,
        True,
    )


def test_another_scheme_of_mail_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="EMAIL_URL"):
        environment_variables.email_settings("imap://mail.example")


@pytest.mark.parametrize(("raw", "value"), [("yes", True), ("0", False), ("", False)])
def test_truth(monkeypatch: pytest.MonkeyPatch, raw: str, value: bool) -> None:
    monkeypatch.setenv("FLAG", raw)
    assert environment_variables.read_boolean("FLAG") is value


@pytest.mark.parametrize("raw", ["many", "0", "1.5"])
def test_a_wrong_number_names_its_variable(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("PORT", raw)
    with pytest.raises(ImproperlyConfigured, match="PORT must be"):
        environment_variables.read_integer("PORT", 8000, least=1)
