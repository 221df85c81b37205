from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from pytest_django import Settings

from dashboard.forges.forge import forge_of
from dashboard.forges.forge_api import Forge
from dashboard.models import ForgeConnection, Project
from tests.dashboard.forges.payloads import SECRET
from tests.dashboard.forges.stand_ins import TOKEN, StandIn

REPOSITORY = "Codertocat/Hello-World"
OpenStandIn = Callable[[str], StandIn]


@pytest.fixture
def open_stand_in(settings: Settings) -> Iterator[OpenStandIn]:
    """Starts a stand-in of a kind. What it is sent must all be right."""
    settings.PACELINE_ALLOW_INTERNAL_FORGES = True
    with ExitStack() as stack:
        made: list[StandIn] = []

        def open_one(kind: str) -> StandIn:
            made.append(stack.enter_context(StandIn(kind).open()))
            return made[-1]

        yield open_one
        assert [problem for stand_in in made for problem in stand_in.problems] == []


def connection_to(stand_in: StandIn, project: Project, **fields: str) -> ForgeConnection:
    """Not stored: whoever needs its row saves it."""
    values = {
        "kind": stand_in.kind,
        "api_address": stand_in.api_address,
        "repository": REPOSITORY,
        "token": TOKEN,
        "webhook_secret": SECRET,
    }
    return ForgeConnection(project=project, **(values | fields))


@pytest.fixture
def stand_in(kind: str, open_stand_in: OpenStandIn) -> StandIn:
    """Of the `kind` that the test is parametrized by."""
    return open_stand_in(kind)


@pytest.fixture
def forge(stand_in: StandIn) -> Forge:
    return forge_of(connection_to(stand_in, Project(slug="snakes")))
