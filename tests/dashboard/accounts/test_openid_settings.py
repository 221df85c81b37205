"""The provider, as the environment names it."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from dashboard.accounts.openid_settings import read_openid_settings

GIVEN = {"ISSUER": "https://id.example.org/realms/x/", "CLIENT_ID": "paceline", "CLIENT_SECRET": "a secret"}


@pytest.fixture(autouse=True)
def _given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GIVEN.items():
        monkeypatch.setenv(f"PACELINE_OIDC_{name}", value)


def test_all_that_may_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_OIDC_ALLOWED_DOMAINS", "@Example.org, x.org")
    monkeypatch.setenv("PACELINE_OIDC_ALLOWED_GROUPS", "training")
    monkeypatch.setenv("PACELINE_OIDC_SCOPES", "openid email groups")
    read = read_openid_settings()
    assert read is not None
    assert (read.issuer, read.name) == (GIVEN["ISSUER"], "single sign-on")
    assert (read.allowed_domains, read.allowed_groups) == ({"example.org", "x.org"}, {"training"})
    assert read.scopes == ("openid", "email", "groups")


def test_the_secret_may_be_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv("PACELINE_OIDC_CLIENT_SECRET_FILE", str(tmp_path / "secret"))
    read = read_openid_settings()
    assert read is not None
    assert read.client_secret == "from a file"


def test_without_an_issuer_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PACELINE_OIDC_ISSUER")
    assert read_openid_settings() is None


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("ISSUER", "id.example.org", "PACELINE_OIDC_ISSUER must begin with http"),
        ("ISSUER", "http://id.example.org", "PACELINE_OIDC_ISSUER must begin with https://"),
        ("CLIENT_ID", "", "PACELINE_OIDC_ISSUER needs PACELINE_OIDC_CLIENT_ID"),
        ("CLIENT_SECRET", "", "PACELINE_OIDC_ISSUER needs PACELINE_OIDC_CLIENT_ID"),
        ("CLIENT_SECRET_FILE", "/nowhere/at/all", "PACELINE_OIDC_CLIENT_SECRET_FILE can't be read"),
        ("SCOPES", "email", "PACELINE_OIDC_SCOPES must have openid"),
        ("HAS_SECOND_FACTOR", "maybe", "PACELINE_OIDC_HAS_SECOND_FACTOR must be true or false"),
    ],
)
def test_a_wrong_value_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(f"PACELINE_OIDC_{name}", value)
    with pytest.raises(ImproperlyConfigured, match=sentence):
        read_openid_settings()
