"""The page of a project's channels, its forms, and the feed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from pytest_django.plugin import DjangoDbBlocker

from dashboard import alerts
from dashboard.mail_server import PRINTED
from dashboard.models import AlertRule, AuditEntry, Channel, Commit, Delivery, Project, Regression
from tests.dashboard.shared_rows import share_rows
from tests.pages import builders

pytestmark = pytest.mark.django_db
PAGE = "/projects/snake/settings/channels/"
HOOK = "https://93.184.216.34/services/T0/B0/a-secret-key"
FIELDS = {"minimum_percent": "5", "remind_days": "7", "digest": "", "digest_at": "09:00", "time_zone": "UTC"}


@pytest.fixture(scope="module")
def confirmed_regression(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    """The key of what each test's `regression` is read from."""
    with share_rows(
        django_db_blocker, lambda: builders.create_stepped_regression(state="confirmed").pk
    ) as made:
        yield made


@pytest.fixture
def regression(confirmed_regression: int, db: None) -> Regression:
    return Regression.objects.get(pk=confirmed_regression)


@pytest.fixture
def keeper(client: Client, regression: Regression) -> Client:
    """Signed in as somebody who may change channels."""
    user = User.objects.create_user("ada")
    user.user_permissions.add(Permission.objects.get(codename="change_channel"))
    client.force_login(user)
    return client


@pytest.fixture
def channel(regression: Regression) -> Channel:
    return Channel.objects.create(project=regression.project, kind="email", address="team@example.org")


def page_text(response: Any) -> str:
    return str(response.content.decode()).replace("&#x27;", "'")


def test_only_who_may_change_channels_sees_them(client: Client, regression: Regression) -> None:
    assert client.get(PAGE)["Location"].startswith("/sign-in/")
    client.force_login(User.objects.create_user("eve"))
    assert client.get(PAGE).status_code == 403
    assert client.post(f"{PAGE}new/email/", {**FIELDS, "address": "eve@example.org"}).status_code == 403
    assert not Channel.objects.exists()


def test_mail_that_nobody_gets_is_told_as_such(keeper: Client, channel: Channel, settings: Settings) -> None:
    assert PRINTED not in page_text(keeper.get(PAGE))
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert PRINTED in page_text(keeper.get(PAGE))


def test_a_chat_is_added_and_its_url_never_shown(keeper: Client) -> None:
    response = keeper.post(f"{PAGE}new/slack/", {**FIELDS, "url": HOOK, "name": "#training"}, follow=True)
    channel = Channel.objects.get()
    assert (channel.kind, channel.secret, channel.minimum_percent) == ("slack", HOOK, 5)
    pages = [page_text(response), *(page_text(keeper.get(page)) for page in (PAGE, f"{PAGE}{channel.pk}/"))]
    assert all("#training" in page for page in pages)
    assert not any("a-secret-key" in page for page in pages)
    assert "a-secret-key" not in page_text(keeper.get("/deliveries/"))


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        ("slack", {"url": ""}, "Webhook URL is missing."),
        ("slack", {"url": "https://93.184.216.34/hook/a-secret-key"}, "isn't one of Slack's"),
        ("slack", {"url": "http://93.184.216.34/services/a-secret-key"}, "must begin with https://"),
        ("discord", {"url": HOOK}, "isn't one of Discord's"),
        ("mattermost", {"url": HOOK}, "isn't one of Mattermost's"),
        ("teams", {"url": "https://x.webhook.office.com/a-secret-key"}, "Microsoft has retired those"),
        (
            "matrix",
            {"server": "https://93.184.216.34", "room": "#room:x", "token": "a"},
            "Room id begins with !",
        ),
        ("pagerduty", {"key": "a-secret-key"}, "Integration key has 32 letters and digits."),
        ("webhook", {"address": "http://127.0.0.1/hook"}, "127.0.0.1 is an internal address"),
        ("email", {"address": "team@example.org", "minimum_percent": "few"}, "Least change is a number"),
        (
            "email",
            {"address": "team@example.org", "quiet_from": "22:00"},
            "Quiet hours have a beginning",
        ),
        ("email", {"address": "team@example.org", "time_zone": "Mars/Base"}, "Time zone is a name like"),
        ("email", {"address": "team@example.org", "digest": "hourly"}, "Messages come at once"),
    ],
)
def test_a_wrong_field_gets_its_sentence(
    keeper: Client, kind: str, fields: dict[str, str], sentence: str
) -> None:
    response = keeper.post(f"{PAGE}new/{kind}/", FIELDS | fields)
    assert response.status_code == 400
    assert sentence in page_text(response)
    assert "a-secret-key" not in page_text(response)
    assert not Channel.objects.exists()


def test_editing_keeps_the_secret_unless_a_new_one_is_typed(keeper: Client) -> None:
    keeper.post(f"{PAGE}new/slack/", {**FIELDS, "url": HOOK})
    page = f"{PAGE}{Channel.objects.get().pk}/"
    keeper.post(page, {**FIELDS, "url": "", "name": "#speed", "quiet_from": "22:00", "quiet_until": "07:00"})
    channel = Channel.objects.get()
    assert (channel.secret, channel.name, f"{channel.quiet_until:%H}") == (HOOK, "#speed", "07")
    keeper.post(page, {**FIELDS, "url": f"{HOOK}-2"})
    assert Channel.objects.get().secret == f"{HOOK}-2"


def test_the_region_of_an_incident_service_is_kept_and_changed(keeper: Client) -> None:
    key = "a" * 32
    keeper.post(f"{PAGE}new/pagerduty/", {**FIELDS, "key": key, "region": "eu"})
    page = f"{PAGE}{Channel.objects.get().pk}/"
    assert '<option value="eu" selected>' in page_text(keeper.get(page))
    keeper.post(page, {**FIELDS, "key": "b" * 32})
    assert Channel.objects.get().address.startswith("https://events.eu.pagerduty.com/")
    keeper.post(page, {**FIELDS, "key": "", "region": "us"})
    channel = Channel.objects.get()
    assert (channel.secret, channel.address.partition("#")[0]) == (
        "b" * 32,
        "https://events.pagerduty.com/v2/enqueue",
    )
    refused = keeper.post(page, {**FIELDS, "region": "mars"})
    assert (refused.status_code, "Service region is us or eu." in page_text(refused)) == (400, True)


def test_the_same_channel_is_not_added_twice(keeper: Client, channel: Channel) -> None:
    response = keeper.post(f"{PAGE}new/email/", {**FIELDS, "address": "team@example.org"})
    assert "snake has this channel already." in page_text(response)


def test_the_secret_of_a_webhook_is_shown_once(keeper: Client) -> None:
    response = keeper.post(f"{PAGE}new/webhook/", {**FIELDS, "address": "https://93.184.216.34/hook"})
    secret = Channel.objects.get().secret
    assert secret in page_text(response)
    assert secret not in page_text(keeper.get(PAGE))


def test_a_test_shows_how_it_went(keeper: Client, channel: Channel, settings: Settings) -> None:
    response = keeper.post(f"{PAGE}{channel.pk}/change/", {"action": "test"})
    assert (response.status_code, response["Location"]) == (302, f"{PAGE}#test")
    delivery = Delivery.objects.get()
    assert "is under way" in page_text(keeper.get(PAGE))
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    alerts.attempt_delivery(delivery.pk)
    known = page_text(keeper.get(f"{PAGE}tests/{delivery.pk}/"))
    assert "Delivered in " in known
    assert "1 delivered" in known, "the channel's card on the same page must not lag behind"
    Delivery.objects.update(state="failed", errors=["hooks.slack.com answered 404 Not Found: no_service."])
    assert "404 Not Found: no_service." in page_text(keeper.get(f"{PAGE}tests/{delivery.pk}/"))


def test_a_page_that_is_loaded_again_sends_no_second_test(keeper: Client, channel: Channel) -> None:
    shown = keeper.post(f"{PAGE}{channel.pk}/change/", {"action": "test"}, follow=True)
    assert "is under way" in page_text(shown)
    assert "is under way" not in page_text(keeper.get(PAGE))
    assert Delivery.objects.count() == 1


def test_it_is_muted_turned_off_and_removed(keeper: Client, channel: Channel) -> None:
    change = f"{PAGE}{channel.pk}/change/"
    day = (timezone.now() + timedelta(days=9)).date().isoformat()
    assert f"is muted until {day}" in page_text(
        keeper.post(change, {"action": "mute", "until": day}, follow=True)
    )
    keeper.post(change, {"action": "unmute"})
    keeper.post(change, {"action": "turn-off"})
    channel.refresh_from_db()
    assert (channel.muted_until, channel.enabled) == (None, False)
    assert "lies behind us" in page_text(
        keeper.post(change, {"action": "mute", "until": "2020-01-01"}, follow=True)
    )
    keeper.post(change, {"action": "remove"})
    assert not Channel.objects.exists()


@pytest.mark.parametrize(
    ("page", "form"),
    [
        ("change", {"action": "mute", "until": "2020-01-01"}),
        ("change", {"action": "renew-secret"}),
        ("rules", {"action": "remove", "rule": "7"}),
        ("rules", {"action": "add"}),
    ],
)
def test_what_was_refused_is_not_recorded(
    keeper: Client, channel: Channel, page: str, form: dict[str, str]
) -> None:
    keeper.post(f"{PAGE}{channel.pk}/{page}/", form)
    assert not AuditEntry.objects.filter(action="channel changed").exists()


def test_what_was_done_is_recorded(keeper: Client, channel: Channel) -> None:
    day = (timezone.now() + timedelta(days=9)).date().isoformat()
    for action in ("mute", "unmute", "turn-off", "turn-on", "test"):
        keeper.post(f"{PAGE}{channel.pk}/change/", {"action": action, "until": day})
    keeper.post(f"{PAGE}{channel.pk}/rules/", {"action": "add", "states": ["confirmed"]})
    rule = AlertRule.objects.get().pk
    for action in ("down", "remove"):
        keeper.post(f"{PAGE}{channel.pk}/rules/", {"action": action, "rule": rule})
    keeper.post(f"{PAGE}{channel.pk}/change/", {"action": "remove"})
    recorded = AuditEntry.objects.filter(action="channel changed")
    changes = [entry.details["change"] for entry in recorded.order_by("pk")]
    done = ["mute", "unmute", "turn-off", "turn-on", "test", "rules", "rules", "rules", "remove"]
    assert changes == done


def test_rules_are_added_moved_and_removed(keeper: Client, channel: Channel) -> None:
    rules = f"{PAGE}{channel.pk}/rules/"
    for case in ("snake_*", "zelda_*"):
        keeper.post(rules, {"action": "add", "case": case, "states": ["confirmed"], "notifies": "no"})
    last = AlertRule.objects.latest("position")
    keeper.post(rules, {"action": "up", "rule": last.pk})
    assert [rule.case for rule in AlertRule.objects.all()] == ["zelda_*", "snake_*"]
    assert "leave out confirmed, of zelda_*" in page_text(keeper.get(f"{PAGE}{channel.pk}/"))
    keeper.post(rules, {"action": "remove", "rule": last.pk})
    assert AlertRule.objects.get().case == "snake_*"
    refused = keeper.post(rules, {"action": "add", "case": "x"})
    assert (refused.status_code, AlertRule.objects.count()) == (400, 1)
    assert "Choose in which states" in page_text(refused)


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({}, "action: must be one of add, up, down, remove."),
        ({"action": "swap", "rule": "1"}, "action: must be one of add, up, down, remove."),
        # Removed in another window.
        ({"action": "remove", "rule": "999999"}, "rule: the channel has it no more, or never had it."),
        ({"action": "up", "rule": "first"}, "rule: the channel has it no more, or never had it."),
    ],
)
def test_a_rule_that_is_not_there_is_told(
    keeper: Client, channel: Channel, form: dict[str, str], sentence: str
) -> None:
    answer = keeper.post(f"{PAGE}{channel.pk}/rules/", form, follow=True)
    assert sentence in page_text(answer)
    assert not AuditEntry.objects.filter(action="channel changed").exists()


def test_what_a_form_has_no_field_for_stays(keeper: Client, channel: Channel) -> None:
    quiet = {"quiet_from": "22:00", "quiet_until": "07:00", "time_zone": "Europe/Berlin"}
    about = {"name": "#training", "remind_days": 3, "minimum_percent": 7, "suspicions": True}
    Channel.objects.filter(pk=channel.pk).update(**quiet, **about)
    before = Channel.objects.filter(pk=channel.pk).values(*quiet, *about, "pictures").get()
    keeper.post(f"{PAGE}{channel.pk}/", {})
    assert Channel.objects.filter(pk=channel.pk).values(*before).get() == before
    keeper.post(f"{PAGE}{channel.pk}/", {"name": "#speed", "minimum_percent": "2"})
    channel.refresh_from_db()
    assert (channel.name, channel.minimum_percent, channel.suspicions) == ("#speed", 2, False)
    assert f"{channel.quiet_from:%H:%M} {channel.quiet_until:%H:%M}" == "22:00 07:00"


def test_a_channel_with_rules_keeps_what_holds_without_them(keeper: Client, channel: Channel) -> None:
    Channel.objects.filter(pk=channel.pk).update(minimum_percent=7, suspicions=True)
    keeper.post(f"{PAGE}{channel.pk}/rules/", {"action": "add", "states": ["confirmed"]})
    shown = keeper.get(f"{PAGE}{channel.pk}/")
    # Its rules decide: the form has no such field.
    values = {name: shown.context["values"][name] for name in ("name", "remind_days", "digest", "digest_at")}
    keeper.post(f"{PAGE}{channel.pk}/", values | {"time_zone": "UTC"})
    channel.refresh_from_db()
    assert (channel.minimum_percent, channel.suspicions) == (7, True)


def test_no_channel_of_another_project_is_reached(keeper: Client) -> None:
    other = builders.create_project("other")
    channel = Channel.objects.create(project=other, kind="email", address="team@example.org")
    for address in (f"{PAGE}{channel.pk}/change/", f"{PAGE}{channel.pk}/rules/"):
        assert keeper.post(address, {"action": "remove"}).status_code == 404
    assert keeper.get(f"{PAGE}{channel.pk}/").status_code == 404


@pytest.mark.parametrize("count", [3, 30])
def test_the_page_asks_the_same_number_of_questions(
    keeper: Client, regression: Regression, django_assert_num_queries: Any, count: int
) -> None:
    for number in range(count):
        delivery = builders.create_delivery(regression, address=f"{number}@example.org")
        AlertRule.objects.create(channel=delivery.channel, position=0, states=["confirmed"])
    with django_assert_num_queries(10):
        assert keeper.get(PAGE).status_code == 200


def test_deliveries_of_one_channel_are_listed(client: Client, regression: Regression) -> None:
    for address in ("one@example.org", "two@example.org"):
        delivery = builders.create_delivery(regression, address=address)
    page = page_text(client.get(f"/deliveries/?channel={delivery.channel_id}"))
    assert page.count("…@example.org") == 1


def test_a_regression_is_snoozed_and_woken(client: Client, regression: Regression) -> None:
    client.force_login(User.objects.create_superuser("root"))
    address = f"{regression.get_absolute_url()}snooze/"
    client.post(address, {"action": "snooze", "growth": "10"})
    assert "until it is 10 % worse than it was then, by root" in page_text(
        client.get(regression.get_absolute_url())
    )
    client.post(address, {"action": "end"})
    assert "Nobody is notified of it until" not in page_text(client.get(regression.get_absolute_url()))
    assert "Name a day" in page_text(client.post(address, {"action": "snooze"}, follow=True))


def test_the_feed_keeps_an_entry_whose_state_changes(client: Client, regression: Regression) -> None:
    first = client.get("/projects/snake/regressions.atom")
    assert first["Content-Type"].startswith("application/atom+xml")
    Regression.objects.filter(pk=regression.pk).update(
        recovered_by=regression.first_bad, updated_at=timezone.now()
    )
    second = page_text(client.get("/projects/snake/regressions.atom"))
    ids = [
        text.partition("<entry>")[2].split("<id>")[1].split("</id>")[0] for text in (page_text(first), second)
    ]
    assert ids[0] == ids[1]
    assert "Regression in snake: step time" in page_text(first)
    assert "Recovered in snake: step time" in second


def test_a_feed_can_be_read_whatever_its_commits_say(client: Client, regression: Regression) -> None:
    """XML holds no control characters, and git refuses none of these."""
    Commit.objects.update(subject="fast\x08er \x1b[31m", author="Ada\x07")
    feed = ElementTree.fromstring(client.get("/projects/snake/regressions.atom").content)  # noqa: S314
    assert "Ada\N{REPLACEMENT CHARACTER}" in list(feed.itertext())


def test_a_feed_is_not_sent_again_unchanged(client: Client, regression: Regression) -> None:
    modified = client.get("/projects/snake/regressions.atom")["Last-Modified"]
    again = client.get("/projects/snake/regressions.atom", headers={"If-Modified-Since": modified})
    assert again.status_code == 304
    assert client.get("/projects/nothing/regressions.atom").status_code == 404


def test_a_feed_is_sent_again_once_a_suspicion_is_told(client: Client, regression: Regression) -> None:
    before = timezone.now() - timedelta(hours=1)
    Regression.objects.update(state="suspected", updated_at=before)
    feed = client.get("/projects/snake/regressions.atom")
    builders.create_delivery(regression)
    Delivery.objects.update(state="delivered", delivered_at=timezone.now())
    again = client.get(
        "/projects/snake/regressions.atom", headers={"If-Modified-Since": feed["Last-Modified"]}
    )
    assert ("<entry>" in page_text(feed), again.status_code) == (False, 200)
    assert "<entry>" in page_text(again)


@pytest.mark.parametrize("count", [3, 30])
def test_a_feed_asks_the_same_number_of_questions(
    client: Client, django_assert_num_queries: Any, count: int
) -> None:
    project = builders.create_history("fed", count + 1)
    series = builders.headline_series(project.cases.get())
    for good, bad in pairwise(project.commits.order_by("position")):
        builders.create_regression(series, good, bad, state="confirmed")
    with django_assert_num_queries(5):
        page = client.get("/projects/fed/regressions.atom")
    assert page_text(page).count("<entry>") == count


def test_a_channel_that_waits_for_its_digest_says_so(client: Client, regression: Regression) -> None:
    builders.create_delivery(regression)
    Delivery.objects.update(state="collected", delivered_at=None)
    assert "with the next digest" in page_text(client.get("/deliveries/"))
    assert Project.objects.count() == 1


def visit_channel_pages(client: Client, slug: str) -> None:
    """The page and the forms with all that they may show; `client` may change channels."""
    page, project = f"/projects/{slug}/settings/channels/", Project.objects.get(slug=slug)
    client.get(page)
    wrong = dict.fromkeys((*FIELDS, "name", "quiet_from", "quiet_until"), "\t")
    for kind in ("pagerduty", "slack", "webhook"):
        client.get(f"{page}new/{kind}/")
        assert client.post(f"{page}new/{kind}/", wrong).status_code == 400
    client.post(f"{page}new/webhook/", {**FIELDS, "address": "https://93.184.216.34/hook", "name": "hook"})
    channel = Channel.objects.get(project=project, kind="webhook")
    regression = Regression.objects.filter(project=project).earliest("pk")
    delivered = builders.create_delivery(regression, kind="webhook", address=channel.address)
    for event, state in (("confirmed", "pending"), ("recovered", "collected"), ("reopened", "failed")):
        Delivery.objects.create(
            channel=channel, regression=regression, event=event, state=state, next_attempt_at=timezone.now()
        )
    for case in ("snake_*", "zelda_*"):
        client.post(f"{page}{channel.pk}/rules/", {"action": "add", "case": case, "states": ["confirmed"]})
    client.post(f"{page}{channel.pk}/rules/", {"action": "add", "minimum_percent": "x", "notifies": "no"})
    for name in ("case", "metric", "branch", "minimum_percent", "states"):
        wrong_rule = {"action": "add", "states": ["confirmed"], name: "\n x"}
        client.post(f"{page}{channel.pk}/rules/", wrong_rule if name != "states" else {"action": "add"})
    client.get(f"{page}{channel.pk}/")
    client.post(f"{page}{channel.pk}/change/", {"action": "test"}, follow=True)
    Channel.objects.filter(pk=channel.pk).update(muted_until=timezone.now() + timedelta(days=1))
    client.get(page)
    tested = Delivery.objects.filter(event="test").latest("pk")
    for state in ("failed", "delivered"):
        Delivery.objects.filter(pk=tested.pk).update(state=state)
        client.get(f"{page}tests/{tested.pk}/")
    client.get(f"/deliveries/?channel={delivered.channel_id}")
    alerts.snooze_regression(regression, None, growth="10")
    client.get(regression.get_absolute_url())
