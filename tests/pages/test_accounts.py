"""Signing in and out."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

pytestmark = pytest.mark.django_db


def test_signing_in_leads_back_to_where_one_was(client: Client, operator: User) -> None:
    asked = {"login": "ada", "password": "a long secret", "next": "/regressions/"}
    assert client.post("/sign-in/", asked)["Location"] == "/regressions/"


def test_a_wrong_password_gets_one_sentence(client: Client, operator: User) -> None:
    answer = client.post("/sign-in/", {"login": "ada", "password": "guess"})
    assert 'role="alert"' in answer.content.decode()


def test_signing_in_never_leads_to_another_site(client: Client, operator: User) -> None:
    asked = {"login": "ada", "password": "a long secret", "next": "https://evil.example/"}
    assert client.post("/sign-in/", asked)["Location"] == "/"


def test_signing_out_needs_a_post(signed_in: Client) -> None:
    assert signed_in.get("/sign-out/").status_code == 405
    signed_in.post("/sign-out/")
    assert "Sign in" in signed_in.get("/").content.decode()
