"""Who was told, or why nobody was so far."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.models import Channel, Commit, Metric, Regression, Run
from tests.pages import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def regression(confirmed: Regression) -> Regression:
    """Of +38 %, between two neighbouring commits."""
    return confirmed


@pytest.fixture
def channel(regression: Regression) -> Channel:
    return Channel.objects.create(project=regression.project, kind="email", address="team@example.org")


def why_nobody(client: Client, regression: Regression, **fields: Any) -> str:
    """What the section says of the regression with these fields."""
    Regression.objects.filter(pk=regression.pk).update(**fields)
    shown = client.get(regression.get_absolute_url()).content.decode()
    section = shown.partition('id="notified"')[2].partition("</section>")[0]
    return section.partition('<p class="note">')[2].replace("&#x27;", "'")


def test_without_a_channel_it_says_how_to_add_one(client: Client, regression: Regression) -> None:
    text = why_nobody(client, regression)
    assert text.startswith("Nobody: the project has no channel. An admin of the project can add one.")
    client.force_login(User.objects.create_superuser("ada"))
    address = f'<a href="/projects/{regression.project.slug}/settings/channels/">Add a channel</a>'
    assert address in why_nobody(client, regression)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"state": "suspected", "proving": True},
            "Nobody yet: it is being proved. Its channels are notified once it is confirmed.",
        ),
        (
            {"proving": True},
            "Nobody yet: it is confirmed, and its last measurements are under way. Channels are notified",
        ),
        ({"triaged": "won't fix"}, "Nobody: it was triaged as won't fix, and what is triaged away"),
        ({"state": "refuted"}, "Nobody: it was refuted."),
        ({"state": "undecided"}, "Nobody: it stayed undecided, and only confirmed regressions"),
        ({"state": "suspected", "cause": "machine"}, "Nobody: no commit is to blame, so that nothing was"),
        ({"state": "suspected"}, "Nobody: it was found in old history, which is no news."),
        ({"withdrawn_at": timezone.now()}, "Nobody: it was withdrawn before anyone was notified."),
    ],
)
def test_it_says_what_keeps_a_channel_from_being_told(
    client: Client, regression: Regression, channel: Channel, fields: dict[str, Any], sentence: str
) -> None:
    text = why_nobody(client, regression, **fields)
    assert text.startswith(sentence)
    assert "can add one" not in text


def test_while_it_is_bisected_it_says_that_the_channels_are_told_then(
    client: Client, regression: Regression, channel: Channel
) -> None:
    far = Commit.objects.get(position=3)
    text = why_nobody(client, regression, proving=True, first_bad=far)
    assert text.startswith("Nobody yet: it is confirmed, and 2 commits are left to bisect. Channels are")


def test_a_suspicion_that_may_be_told_waits_for_the_budget(
    client: Client, regression: Regression, channel: Channel
) -> None:
    Channel.objects.update(suspicions=True)
    text = why_nobody(client, regression, state="suspected", proving=True)
    assert "those that ask for suspicions as soon as the budget of false alerts allows." in text


def test_no_channel_is_told_early_that_less_is_learned(
    client: Client, regression: Regression, channel: Channel
) -> None:
    Channel.objects.update(suspicions=True)
    Metric.objects.filter(pk=regression.series.metric_id).update(kind="quality")
    text = why_nobody(client, regression, state="suspected", proving=True)
    assert text.startswith("Nobody yet: it is being proved. Its channels are notified once it is confirmed.")


@pytest.mark.parametrize("proving", [True, False])
def test_a_channel_that_asks_for_larger_changes_is_named_as_the_reason(
    client: Client, regression: Regression, channel: Channel, proving: bool
) -> None:
    Channel.objects.update(minimum_percent=50.5)
    expected = "Nobody: the project's channels ask for 50.5 % or more, and this is +38 %."
    assert why_nobody(client, regression, proving=proving).startswith(expected)


def test_channels_that_are_turned_off_are_named_as_the_reason(
    client: Client, regression: Regression, channel: Channel
) -> None:
    Channel.objects.update(enabled=False)
    assert why_nobody(client, regression).startswith("Nobody: all channels of the project are turned off.")


def test_what_no_channel_asked_for_when_it_was_confirmed_says_so(
    client: Client, regression: Regression, channel: Channel
) -> None:
    assert why_nobody(client, regression).startswith("Nobody: no channel matched when it was confirmed")


def test_an_imported_history_is_never_told(client: Client, regression: Regression, channel: Channel) -> None:
    Run.objects.update(origin="imported")
    text = why_nobody(client, regression, state="suspected")
    assert text.startswith("Nobody, and nobody will be: it was found in imported results")


def test_whom_it_was_told_to_stands_in_the_place_of_reasons(client: Client, regression: Regression) -> None:
    builders.create_delivery(regression)
    shown = client.get(regression.get_absolute_url()).content.decode()
    assert "t…@example.org" in shown
    assert "Nobody" not in shown
