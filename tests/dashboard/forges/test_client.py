"""How a forge says no, and what becomes of it."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pytest_django import Settings

from dashboard.forges.client import LONGEST_PAUSE
from dashboard.forges.errors import ForgeAnswerError, ForgeAway, ForgeBusy, ForgeRefused
from dashboard.forges.forge import forge_of
from dashboard.forges.forge_api import Forge
from dashboard.models import Project
from dashboard.outgoing_http import sending
from dashboard.secrets import LostSecret
from tests.dashboard.forges.conftest import connection_to
from tests.dashboard.forges.stand_ins import TOKEN, Forced, StandIn

pytestmark = pytest.mark.parametrize("kind", ["github"])

LIMIT = b'{"message": "You have exceeded a secondary rate limit."}'


def expect_refusal(forge: Forge, stand_in: StandIn, *answers: Forced) -> ForgeAnswerError:
    stand_in.forced = list(answers)
    with pytest.raises(ForgeAnswerError) as caught:
        forge.check_access()
    return caught.value


@pytest.mark.parametrize(
    ("status", "headers", "body", "seconds"),
    [
        (429, {"Retry-After": "120"}, b"{}", 120),
        (403, {"Retry-After": "30"}, LIMIT, 30),
        (403, {}, LIMIT, 60),
        (429, {}, b"", 60),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "in 900"}, b"{}", 900),
        (429, {"RateLimit-Reset": "in 40"}, b"Retry later", 40),
        (503, {"Retry-After": "77"}, b"", 77),
        (429, {"Retry-After": "99999999"}, b"", LONGEST_PAUSE.total_seconds()),
        (429, {"Retry-After": "0"}, b"", 1),
        (429, {"Retry-After": "soon"}, b"", 60),
    ],
)
def test_a_limit_says_until_when(
    forge: Forge, stand_in: StandIn, status: int, headers: dict[str, str], body: bytes, seconds: float
) -> None:
    now = time.time()
    sent = {
        name: str(int(now) + int(value[3:])) if value.startswith("in ") else value
        for name, value in headers.items()
    }
    error = expect_refusal(forge, stand_in, Forced(status, sent, body))
    assert isinstance(error, ForgeBusy)
    assert abs(error.until.timestamp() - now - seconds) < 20


def test_a_limit_may_name_a_date(forge: Forge, stand_in: StandIn) -> None:
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=7)
    error = expect_refusal(forge, stand_in, Forced(429, {"Retry-After": format_datetime(until, usegmt=True)}))
    assert isinstance(error, ForgeBusy)
    assert error.until == until
    assert str(error) == f"GitHub limits requests until {until:%Y-%m-%d %H:%M:%S} UTC."


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_forge_in_trouble_is_away(forge: Forge, stand_in: StandIn, status: int) -> None:
    error = expect_refusal(forge, stand_in, Forced(status, {}, b"<html>"))
    assert isinstance(error, ForgeAway)
    assert str(error) == f"GitHub answered {status}."


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_a_no_is_a_no(forge: Forge, stand_in: StandIn, status: int) -> None:
    error = expect_refusal(forge, stand_in, Forced(status, {}, b'{"message": "Must have\\nadmin rights."}'))
    assert isinstance(error, ForgeRefused)
    assert error.status == status
    assert str(error).startswith(f"GitHub answered {status}: Must have admin rights.")


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b"[]", b"7"])
def test_what_is_no_json_object_is_no_answer(forge: Forge, stand_in: StandIn, body: bytes) -> None:
    assert isinstance(expect_refusal(forge, stand_in, Forced(200, {}, body)), ForgeAway)


def test_an_endless_answer_is_cut_off(
    forge: Forge, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.forges.client.MOST_ANSWER_BYTES", 1000)
    error = expect_refusal(forge, stand_in, Forced(200, {}, b" " * 1001))
    assert (type(error), str(error)) == (ForgeAway, "127.0.0.1 answered more than 1000 bytes.")


def test_a_redirect_is_followed(forge: Forge, stand_in: StandIn) -> None:
    stand_in.forced = [Forced(301, {"Location": f"{stand_in.api_address}/repos/renamed/repository"})]
    stand_in.responses["GET /repos/{owner}/{repo}"] = {"id": 1}
    forge.check_access()
    assert stand_in.last.places == {"owner": "renamed", "repo": "repository"}


def test_a_redirect_leads_nowhere_else(forge: Forge, stand_in: StandIn) -> None:
    error = expect_refusal(forge, stand_in, Forced(302, {"Location": "http://127.0.0.1:9/repos"}))
    assert (type(error), str(error)) == (ForgeRefused, "GitHub answered with the address of another place.")


def test_redirects_end(forge: Forge, stand_in: StandIn) -> None:
    error = expect_refusal(forge, stand_in, *[Forced(302, {"Location": "/repos/a/b"})] * 9)
    assert str(error) == "GitHub redirects without end."
    assert len(stand_in.forced) == 6


def test_no_sentence_has_the_token(forge: Forge, stand_in: StandIn) -> None:
    said = json.dumps({"message": f"Bad token {TOKEN}, Bearer {TOKEN}"}).encode()
    error = expect_refusal(forge, stand_in, Forced(401, {}, said))
    assert TOKEN not in str(error) + repr(error) + repr(vars(forge))
    assert "Bad token …" in str(error)


def test_a_forge_that_cannot_be_reached_is_away(
    stand_in: StandIn, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "open_connection", raise_refused)
    with pytest.raises(ForgeAway, match="could not be reached: Connection refused"):
        forge.check_access()


def raise_refused(*_: object) -> None:
    raise ConnectionRefusedError(111, "Connection refused")


def test_an_internal_address_needs_an_administrator(
    stand_in: StandIn, forge: Forge, settings: Settings
) -> None:
    settings.PACELINE_ALLOW_INTERNAL_FORGES = False
    with pytest.raises(ForgeRefused, match="allow those with PACELINE_ALLOW_INTERNAL_FORGES"):
        forge.check_access()
    assert stand_in.requests == []


def test_a_lost_token_is_said_to_be_lost(stand_in: StandIn) -> None:
    connection = connection_to(stand_in, Project(slug="snakes"))
    connection.token = LostSecret("gAAAA")
    with pytest.raises(ForgeRefused, match="run connect_forge again"):
        forge_of(connection)


def test_requests_name_their_version(forge: Forge, stand_in: StandIn) -> None:
    stand_in.responses["GET /repos/{owner}/{repo}"] = {"id": 1}
    forge.check_access()
    headers = stand_in.last.headers
    assert (headers["X-GitHub-Api-Version"], headers["User-Agent"]) == ("2022-11-28", "Paceline")
    assert headers["Accept"] == "application/vnd.github+json"
