from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from dashboard import secrets
from dashboard.models import Project


def stored_token(project: Project) -> str:
    with connection.cursor() as cursor:
        cursor.execute("select hook_secret from dashboard_project where id = %s", [project.pk])
        (stored,) = cursor.fetchone() or ("",)
    return str(stored)


@pytest.mark.django_db
def test_the_column_holds_no_plain_secret() -> None:
    project = Project.objects.create(slug="snake", repository="/r", hook_secret="open sesame")
    project.refresh_from_db()
    assert "sesame" not in stored_token(project)
    assert project.hook_secret == "open sesame"


def test_another_key_opens_nothing() -> None:
    token = secrets.encrypt_text("open sesame")
    with override_settings(SECRET_KEY="another"):
        lost = secrets.decrypt_token(token)
    assert secrets.is_lost(lost)
    assert not lost
    assert not secrets.is_lost("")


def test_an_earlier_key_still_opens(settings: Any) -> None:
    token = secrets.encrypt_text("open sesame")
    settings.SECRET_KEY_FALLBACKS = ["older", settings.SECRET_KEY]
    settings.SECRET_KEY = "new"
    assert secrets.decrypt_token(token) == "open sesame"


@pytest.mark.django_db
def test_a_lost_secret_is_written_back_as_it_was() -> None:
    project = Project.objects.create(slug="snake", repository="/r", hook_secret="open sesame")
    token = stored_token(project)
    with override_settings(SECRET_KEY="another"):
        Project.objects.get().save()
    assert stored_token(project) == token
    assert Project.objects.get().hook_secret == "open sesame"
