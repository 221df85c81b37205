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
        "OPTIONS": {**environment_variables.CONNECTION_LIMITS, "sslmode": "require"},
    }


def test_a_socket_is_a_host() -> None:
    entry = environment_variables.database_settings("postgresql:///pace?host=/tmp/sockets&user=ann")
    assert (entry["HOST"], entry["USER"]) == ("/tmp/sockets", "ann")  # noqa: S108
    assert entry["OPTIONS"] == environment_variables.CONNECTION_LIMITS


def test_a_url_says_itself_how_long_to_connect() -> None:
    entry = environment_variables.database_settings("postgresql://db.example/pace?connect_timeout=3")
    assert entry["OPTIONS"] == {**environment_variables.CONNECTION_LIMITS, "connect_timeout": "3"}


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://host/pace", "must begin with postgresql://"),
        ("postgresql://host", "must name a database"),
        ("postgresql://host:abc/pace", "DATABASE_URL is no address: Port could not be cast"),
        ("postgresql://host:70000/pace", "DATABASE_URL is no address: Port out of range"),
        ("postgresql://[::1/pace", "DATABASE_URL is no address: Invalid IPv6 URL"),
    ],
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


@pytest.mark.parametrize("url", ["imap://mail.example", "smtp://mail.example:abc", "smtp://[mail"])
def test_another_address_of_mail_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^EMAIL_URL "):
        environment_variables.email_settings(url)


@pytest.mark.parametrize(
    "url", ["paceline", "ftp://host", "http://", "https://host/below", "http://host:x", "https://a:b@host"]
)
def test_the_sites_address_is_one(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("PACELINE_URL", url)
    with pytest.raises(ImproperlyConfigured, match=r"^PACELINE_URL "):
        environment_variables.read_site_url("PACELINE_URL", "http://127.0.0.1:8000")


def test_the_sites_address_has_no_slash_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_URL", "https://pace.example/")
    assert environment_variables.read_site_url("PACELINE_URL", "") == "https://pace.example"


def test_a_level_or_a_name_that_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_LEVEL", "loud")
    with pytest.raises(ImproperlyConfigured, match="LOG_LEVEL must be one of INFO, DEBUG, not 'loud'"):
        environment_variables.read_choice("LOG_LEVEL", "INFO", ("INFO", "DEBUG"))
    monkeypatch.setenv("PACELINE_POOL", "x" * 61)
    with pytest.raises(ImproperlyConfigured, match="PACELINE_POOL must be a printable name of at most 60"):
        environment_variables.read_name("PACELINE_POOL", "default", most=60)


@pytest.mark.parametrize(("raw", "value"), [("yes", True), ("0", False), ("", False)])
def test_truth(monkeypatch: pytest.MonkeyPatch, raw: str, value: bool) -> None:
    monkeypatch.setenv("FLAG", raw)
    assert environment_variables.read_boolean("FLAG") is value


@pytest.mark.parametrize("raw", ["many", "0", "1.5", "65536"])
def test_a_wrong_number_names_its_variable(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("PORT", raw)
    with pytest.raises(ImproperlyConfigured, match="PORT must be"):
        environment_variables.read_integer("PORT", 8000, least=1, most=65535)
