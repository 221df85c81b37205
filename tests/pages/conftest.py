"""What the tests of pages share: a signed-in client, and templates that name nothing that isn't there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template import Context, Variable, VariableDoesNotExist
from django.template.context import BaseContext
from django.test import Client

from dashboard.models import Commit
from tests import guards
from tests.pages import builders


@pytest.fixture
def operator(db: None) -> User:
    return User.objects.create_superuser("ada", "ada@example.org", "a long secret")


@pytest.fixture
def signed_in(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client


@pytest.fixture(autouse=True)
def git_in_views(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What git was started for while a page was looked at: nothing."""
    with guards.watched_views(monkeypatch) as started:
        yield started
    assert started == []


@pytest.fixture(autouse=True)
def _missing_members_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a template names a member that an object doesn't have, Django shows nothing; here it fails."""
    resolve = Variable._resolve_lookup

    def resolve_strictly(variable: Variable, context: Context) -> object:
        try:
            return resolve(variable, context)
        except VariableDoesNotExist as error:
            name, holder = error.params
            # A document's optional members, and what only some pages have in their context.
            if holder is None or isinstance(holder, Mapping | BaseContext | str):
                raise
            raise AttributeError(f"{{{{ {variable.var} }}}}: {holder!r} has no {name}") from error

    monkeypatch.setattr(Variable, "_resolve_lookup", resolve_strictly)


@pytest.fixture
def line(db: None) -> list[Commit]:
    """Four commits of a project, oldest first."""
    return builders.create_commits(builders.create_project(), 4)


def get_page(client: Client, where: str = "/") -> str:
    return client.get(where).content.decode()


def shown_text(response: Any) -> str:
    """What a reader sees, white space folded."""
    text = re.sub(r"<(script|style).*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text.replace("<wbr>", ""))).split())
