"""The audit log: every act leaves an entry, in the transaction of the act."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import transaction
from django.test import Client

from dashboard.access import (
    AuditAction,
    CommandAccount,
    Visitor,
    command_account,
    make_token,
    record_action,
    revoke_token,
)
from dashboard.models import ApiToken, AuditEntry, Machine, Project, Run
from dashboard.sentences.administration.audit import SENTENCES, describe_actor, describe_entry
from tests.dashboard.access.conftest import PASSWORD, create_member
from tests.pages import builders
from tests.pages.experiment_builders import create_experiment

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(client: Client) -> User:
    """A superuser who is signed in."""
    user = User.objects.create_superuser("root", password=PASSWORD)
    client.force_login(user)
    AuditEntry.objects.all().delete()
    return user


def last_entry() -> AuditEntry:
    return AuditEntry.objects.latest("pk")


def told_last() -> tuple[str, str]:
    entry = last_entry()
    return describe_actor(entry), describe_entry(entry)


def test_every_action_has_a_sentence() -> None:
    assert set(SENTENCES) == set(AuditAction)


@pytest.mark.parametrize("action", list(AuditAction))
def test_a_sentence_needs_no_detail(action: AuditAction) -> None:
    entry = record_action(Visitor(), action)
    assert describe_entry(entry)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("added", "added the channel webhook ci.example.org"),
        ("remove", "removed the channel webhook ci.example.org"),
        ("test", "sent a test to the channel webhook ci.example.org"),
        (None, "changed the channel webhook ci.example.org"),
    ],
)
def test_what_was_done_to_a_channel_is_told(change: str | None, sentence: str) -> None:
    about = {"kind": "webhook", "address": "ci.example.org", "change": change}
    assert describe_entry(record_action(Visitor(), AuditAction.CHANNEL_CHANGED, **about)) == sentence


def test_one_claim_is_told_in_the_singular() -> None:
    assert (
        describe_entry(record_action(Visitor(), AuditAction.CLAIMS_MEASURED, claims=1)) == "asked for 1 claim"
    )


def test_an_unknown_action_is_refused() -> None:
    with pytest.raises(ValueError, match="made coffee"):
        record_action(Visitor(), "made coffee")


def test_it_is_undone_with_the_act(public: Project) -> None:
    with transaction.atomic():
        record_action(Visitor(), AuditAction.PROJECT_ADDED, public)
        transaction.set_rollback(True)
    assert not AuditEntry.objects.exists()


def test_who_requests_runs_is_recorded(client: Client, root: User, public: Project) -> None:
    client.post("/projects/snake/trigger/", {"which": "last", "last": "5"}, REMOTE_ADDR="192.0.2.7")
    assert told_last() == ("root", "requested runs: last 5 commits")
    entry = last_entry()
    assert (entry.project, entry.subject_kind, entry.address) == (public, "trigger", "192.0.2.7")


def test_who_cancels_is_recorded_once(client: Client, root: User) -> None:
    run = builders.create_only_run(Run.State.REQUESTED)
    for _ in range(2):
        client.post(f"/runs/{run.pk}/cancel/")
    assert told_last() == ("root", f"cancelled run {run.pk}")
    assert AuditEntry.objects.count() == 1


def test_who_cancels_an_experiment_is_recorded(client: Client, root: User, public: Project) -> None:
    experiment = create_experiment(builders.create_commits(public, 2))
    client.post(f"/experiments/{experiment.pk}/cancel/")
    assert told_last() == ("root", f"cancelled experiment {experiment.pk}")


def test_who_triages_is_recorded(client: Client, root: User) -> None:
    regression = builders.create_stepped_regression(state="confirmed")
    client.post(f"/regressions/{regression.pk}/triage/", {"action": "frobnicate"})
    assert not AuditEntry.objects.exists()
    client.post(f"/regressions/{regression.pk}/triage/", {"action": "intended"})
    assert told_last() == ("root", f"triaged regression {regression.pk}: intended")


def test_what_is_done_to_machines_is_recorded(client: Client, root: User) -> None:
    machine = builders.create_machine("gpu-1")
    client.post(f"/machines/{machine.pk}/state/", {"action": "pause"})
    assert told_last() == ("root", "asked machine gpu-1 to pause")
    assert Machine.objects.get().state == "paused"
    client.post("/machines/codes/", {"pool": "h100"})
    assert told_last() == ("root", "made a code by which a host joins pool h100")


def test_tokens_are_recorded_without_the_token(private: Project) -> None:
    maker = Visitor(create_member("ada", "admin", private))
    row, token = make_token(maker, private, "nightly", ["operate"], 7)
    assert told_last()[1] == f"made the token nightly ({row.prefix}…) to view, operate, for 7 days"
    revoke_token(maker, row)
    assert told_last()[1] == f"revoked the token nightly ({row.prefix}…)"
    assert token not in str(AuditEntry.objects.values())


def test_an_act_by_a_token_names_token_and_maker(private: Project) -> None:
    maker = create_member("ada", "admin", private)
    row, _ = make_token(Visitor(maker), private, "nightly", ["operate"])
    record_action(Visitor(maker, row), AuditAction.HISTORY_JUDGED, private)
    assert told_last() == ("ada, by the token nightly", "had the whole history judged again")
    ApiToken.objects.all().delete()
    assert told_last()[0] == "ada, by the token of then"


def test_an_entry_outlives_account_and_project(public: Project) -> None:
    user = User.objects.create_user("ada")
    record_action(Visitor(user), AuditAction.HISTORY_JUDGED, public)
    user.delete()
    public.delete()
    entry = last_entry()
    assert (entry.account, entry.project_slug, entry.project) == ("ada", "snake", None)


def test_a_command_is_recorded_with_the_account_of_the_system(public: Project) -> None:
    call_command("sentinel", "snake", "--off")
    assert told_last() == (f"{command_account().name}, by a command", "changed the sentinels: off")
    assert last_entry().project == public
    call_command("join_code", "--pool", "h100", "--machine", "gpu-1")
    assert told_last()[1] == "made a code by which a host joins pool h100, as gpu-1"


def test_a_number_without_a_name_is_an_account_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_to_find() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("getpass.getuser", fail_to_find)
    monkeypatch.setattr("os.getuid", lambda: 4711)
    assert command_account() == CommandAccount("uid 4711")


def test_signing_in_and_out_is_recorded(client: Client) -> None:
    User.objects.create_user("ada", password=PASSWORD)
    client.post("/sign-in/", {"login": "ada", "password": "guess"})
    client.post("/sign-in/", {"login": "ada", "password": PASSWORD})
    client.post("/sign-out/")
    told = [(describe_actor(entry), describe_entry(entry)) for entry in AuditEntry.objects.order_by("pk")]
    assert told == [
        ("somebody", "failed to sign in as ada"),
        ("ada", "signed in"),
        ("ada", "signed out"),
    ]


def test_what_is_typed_for_a_name_is_not_kept(client: Client) -> None:
    client.post("/sign-in/", {"login": PASSWORD, "password": "ada"})
    assert told_last() == ("somebody", "failed to sign in")
    assert PASSWORD not in str(AuditEntry.objects.values())


def test_the_administration_is_recorded(client: Client, root: User) -> None:
    client.post("/admin/auth/group/add/", {"name": "friends"})
    assert told_last() == ("root", "added group friends in the administration")
    eve = User.objects.create_user("eve")
    form = {"username": "eve", "is_active": "on", "is_superuser": "on"}
    form |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    client.post(f"/admin/auth/user/{eve.pk}/change/", form)
    assert told_last() == ("root", "changed user eve in the administration")
    assert "Superuser status" in last_entry().details["fields"]


def test_a_project_deleted_in_the_administration_stays_in_the_log(
    client: Client, root: User, public: Project
) -> None:
    client.post(f"/admin/dashboard/project/{public.pk}/delete/", {"post": "yes"})
    assert not Project.objects.exists()
    assert told_last() == ("root", "deleted project snake in the administration")


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("192.0.2.7", "198.51.100.1", "192.0.2.7"),
        ("127.0.0.1", "203.0.113.9, 198.51.100.1", "198.51.100.1"),
        ("", "", None),
    ],
)
def test_only_a_proxy_that_is_believed_says_who_asks(peer: str, forwarded: str, address: Any) -> None:
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    client = Client(REMOTE_ADDR=peer, headers=headers)
    client.post("/sign-in/", {"login": "nobody", "password": "guess"})
    assert last_entry().address == address
