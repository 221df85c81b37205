from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.fernet import InvalidToken
from django.db import connection
from django.test import override_settings

from dashboard import secrets
from dashboard.models import Project
from dashboard.settings import read_or_make_secret


@pytest.mark.django_db
def test_the_column_holds_no_plain_secret() -> None:
    project = Project.objects.create(slug="snake", repository="/r", hook_secret="open sesame")
    with connection.cursor() as cursor:
        cursor.execute("select hook_secret from dashboard_project where id = %s", [project.pk])
        (stored,) = cursor.fetchone() or ("",)
    project.refresh_from_db()
    assert "sesame" not in stored
    assert project.hook_secret == "open sesame"


def test_another_key_opens_nothing() -> None:
    token = secrets.encrypt_text("open sesame")
    with override_settings(SECRET_KEY="another"), pytest.raises(InvalidToken):
        secrets.decrypt_token(token)


def test_the_sites_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "home" / "secret_key"
    assert read_or_make_secret(path) == read_or_make_secret(path)
    assert path.stat().st_mode & 0o077 == 0
    assert [file.name for file in path.parent.iterdir()] == ["secret_key"]
