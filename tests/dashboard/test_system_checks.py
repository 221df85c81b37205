from __future__ import annotations

import pytest
from django.test import override_settings

from dashboard import system_checks
from dashboard.accounts.openid_settings import OpenIDSettings


def test_a_missing_git_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert system_checks.check_git() == []
    monkeypatch.setenv("PATH", "")
    assert [message.id for message in system_checks.check_git()] == ["paceline.E001"]


@override_settings(EMAIL_BACKEND="django.core.mail.backends.console.EmailBackend")
def test_printed_mail_is_told() -> None:
    assert [message.id for message in system_checks.check_email()] == ["paceline.W001"]


@pytest.mark.parametrize(("domains", "told"), [(frozenset(), 1), (frozenset({"example.org"}), 0)])
def test_a_provider_that_lets_everybody_in_is_told(domains: frozenset[str], told: int) -> None:
    chosen = OpenIDSettings("https://id.example.org", "paceline", "secret", allowed_domains=domains)
    with override_settings(PACELINE_OIDC=chosen):
        assert len(system_checks.check_openid_people()) == told


@pytest.mark.parametrize(("url", "told"), [("http://127.0.0.1:8000", 1), ("https://pace.example.org", 0)])
def test_an_address_of_this_machine_is_told(url: str, told: int) -> None:
    with override_settings(PACELINE_URL=url):
        assert len(system_checks.check_public_address()) == told
