from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from dashboard.models import Channel, ForgeConnection, Project, Run

pytestmark = pytest.mark.django_db
OURS = [model for model in admin.site._registry if model._meta.app_label == "dashboard"]


@pytest.fixture
def administrator(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("ada"))
    return client


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_every_table_can_be_looked_at(administrator: Client, run: Run, model: type[Model]) -> None:
    response = administrator.get(reverse(f"admin:dashboard_{model._meta.model_name}_changelist"))
    assert response.status_code == 200


def test_a_run_can_not_be_edited(administrator: Client, run: Run) -> None:
    address = reverse("admin:dashboard_run_change", args=[run.pk])
    page = administrator.get(address)
    assert page.status_code == 200
    assert str(run.lease) not in page.content.decode()
    assert administrator.post(address, {"state": "done"}).status_code == 403


def test_secrets_are_not_shown(administrator: Client, project: Project) -> None:
    channel = Channel.objects.create(
        project=project, kind="webhook", address="https://x", secret="hidden one"
    )
    forge = ForgeConnection.objects.create(
        project=project, kind="github", repository="a/b", token="hidden one", webhook_secret="hidden one"
    )
    for row in (project, channel, forge):
        address = reverse(f"admin:dashboard_{row._meta.model_name}_change", args=[row.pk])
        page = administrator.get(address)
        text = page.content.decode()
        assert page.status_code == 200
        assert "a secret" not in text
        assert "hidden one" not in text
