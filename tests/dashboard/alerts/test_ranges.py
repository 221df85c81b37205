"""A message names the commit once it is known: until then the range, and how many commits it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dashboard.alerts.kinds.email import compose_email
from dashboard.alerts.kinds.payload import alert_payload
from dashboard.models import Commit, Delivery
from dashboard.sentences.regressions import regressions as sentences

Make = Callable[..., Delivery]


@pytest.fixture
def delivery(make_delivery: Make) -> Delivery:
    """Of a regression with one commit left."""
    return make_delivery("email", "training@example.org")


def widen_range(delivery: Delivery, commits: int = 5) -> str:
    """Let so many commits be left; returns their range."""
    regression = delivery.regression
    regression.first_bad.position = regression.last_good.position + commits
    return f"{regression.last_good.short}..{regression.first_bad.short}"


def message_texts(delivery: Delivery) -> dict[str, str]:
    """All that is told of it: the subject, both bodies and the webhook's title."""
    mail = compose_email(delivery)
    (html, _) = mail.alternatives[0]
    return {
        "subject": mail.subject,
        "plain": str(mail.body),
        "html": str(html),
        "title": alert_payload(delivery)["title"],
    }


@pytest.mark.parametrize("part", ["subject", "plain", "html", "title"])
@pytest.mark.parametrize("state", ["suspected", "confirmed"])
def test_a_range_of_several_commits_names_none_of_them(delivery: Delivery, part: str, state: str) -> None:
    left = widen_range(delivery)
    delivery.regression.state = state
    text = message_texts(delivery)[part]
    assert f"in one of 5 commits, {left}" in text
    assert "since" not in text
    assert delivery.regression.first_bad.subject not in text
    assert "in that commit" not in text


@pytest.mark.parametrize("part", ["subject", "plain", "html", "title"])
def test_what_came_gradually_is_told_as_on_its_page(delivery: Delivery, part: str) -> None:
    left = widen_range(delivery)
    delivery.regression.bisection = {"code": "gradual", "commits": 5}
    text = message_texts(delivery)[part]
    assert f"over 5 commits, {left}" in text
    assert (f"over 5 commits, {left}, little by little or in parts" in text) == (part != "subject")
    assert "one of" not in text


def test_what_several_commits_changed_is_told_of_all_of_them(delivery: Delivery) -> None:
    widen_range(delivery)
    texts = message_texts(delivery)
    assert "and was changed by these commits" in texts["title"]
    edited = "instead of 1.20 ms and was changed by these commits)"
    assert "replay.py:41 ReplayBuffer.sample (takes" in texts["plain"]
    assert edited in texts["plain"]
    assert f"{edited}</li>" in texts["html"]
    delivery.regression.only_changed_by = delivery.regression.last_good.hash
    expected = f"and was changed by one of these commits, {delivery.regression.last_good.short}"
    assert expected in message_texts(delivery)["title"]


@pytest.mark.parametrize("part", ["subject", "plain", "html", "title"])
def test_once_one_commit_is_left_it_is_named(delivery: Delivery, part: str) -> None:
    text = message_texts(delivery)[part]
    assert f"since {delivery.regression.first_bad.short}" in text
    assert "one of" not in text.partition("Suspects")[0]


def test_the_body_says_who_wrote_the_one_commit_that_is_left(delivery: Delivery) -> None:
    short, texts = delivery.regression.first_bad.short, message_texts(delivery)
    assert f"commit      {short} Change number 1 (Ada)\n" in texts["plain"]
    assert f"<td>{short} Change number 1 (Ada)</td>" in texts["html"]
    assert "was changed in that commit" in texts["title"]


@pytest.mark.parametrize("part", ["subject", "plain", "html", "title"])
def test_all_parts_name_the_same_commit_first_and_its_merge_beside_it(delivery: Delivery, part: str) -> None:
    regression = delivery.regression
    regression.culprit = Commit(hash="c0ffee" * 6, subject="Ignore caches", author="Grace")
    text = message_texts(delivery)[part]
    assert text.index("c0ffeec0ff") < text.index(f", merged by {regression.first_bad.short}")
    assert regression.first_bad.subject not in text


def test_what_a_merge_as_a_whole_changed_is_told_of_the_merge(delivery: Delivery) -> None:
    delivery.regression.first_bad.parents = ["a" * 40, "b" * 40]
    assert "was changed in that merge" in message_texts(delivery)["title"]


@pytest.mark.parametrize("part", ["subject", "plain", "html", "title"])
def test_where_no_commit_is_to_blame_none_is_named(delivery: Delivery, part: str) -> None:
    delivery.regression.cause = "machine"
    text = message_texts(delivery)[part]
    assert "machine" in text
    assert "since" not in text
    assert "Change number 1" not in text


def test_while_a_range_is_narrowed_nobody_says_which_commits_changed_it(delivery: Delivery) -> None:
    """What explains it is still the wider range, of which other commits may have changed the function."""
    regression: Any = delivery.regression
    hashes = regression.last_good.hash, regression.first_bad.hash
    regression.explained_for = f"{regression.difference_key('a' * 40, hashes[1])} 7 3 0"
    assert "was changed" not in message_texts(delivery)["title"]
    regression.explained_for = f"{regression.difference_key(*hashes)} 7 3 0"
    assert "was changed in that commit" in message_texts(delivery)["title"]


def test_a_branch_of_its_own_is_named_beside_the_commit(delivery: Delivery) -> None:
    delivery.regression.first_bad.branch = "faster"
    place = sentences.describe_place(delivery.regression, brief=True)
    assert place == f"since {delivery.regression.first_bad.short} on branch faster"
