from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from dashboard import pull_requests
from dashboard.models import Check, Project, PullRequest
from dashboard.pull_requests import CheckError
from dashboard.pull_requests.requests import newest_check
from dashboard.pull_requests.sentences import next_step, reason_sentence
from tests.dashboard.conftest import Repository
from tests.dashboard.pull_requests.conftest import CLOSED, Propose, prepare_check

pytestmark = pytest.mark.django_db


def check_states() -> list[tuple[str, str]]:
    return list(Check.objects.order_by("pk").values_list("state", "reason__code"))


def test_a_pull_request_is_checked_once_however_often_it_is_told(check: Check, propose: Propose) -> None:
    assert (check.state, check.minutes, check.floor) == ("requested", 20, 0.03)
    assert propose() is None
    assert Check.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_many_deliveries_at_once_are_one_check(propose: Propose) -> None:
    def tell_once(_: int) -> None:
        propose()
        connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(tell_once, range(24)))
    assert (PullRequest.objects.count(), Check.objects.count()) == (1, 1)


def test_a_newer_head_ends_the_check_of_the_older_one(
    check: Check, propose: Propose, proposed: Repository
) -> None:
    prepare_check(check)
    proposed.commit("Learn even more", train_py="pass")
    newer = propose()
    assert newer
    assert check_states() == [("cancelled", "newer head"), ("requested", None)]
    assert {row.experiment.state for row in check.cases.select_related("experiment")} == {"cancelled"}
    assert prepare_check(check).state == "cancelled"


def test_a_closed_pull_request_ends_its_check(check: Check, propose: Propose) -> None:
    propose(state=CLOSED)
    assert check_states() == [("cancelled", "pull request closed")]
    assert propose()
    assert check_states() == [("cancelled", "pull request closed"), ("requested", None)]


def test_a_head_that_is_back_is_checked_anew(check: Check, propose: Propose) -> None:
    propose(head_hash="b" * 40)
    again = propose()
    assert again
    assert (again.head_hash, again.state) == (check.head_hash, "requested")
    propose(onto="other")
    assert propose()
    assert check_states() == [("cancelled", "newer head")] * 4 + [("requested", None)]


def test_an_older_delivery_that_comes_late_is_left(propose: Propose) -> None:
    now = timezone.now()
    newer = propose(updated_at=now)
    assert newer
    assert propose(head_hash="b" * 40, updated_at=now - timedelta(seconds=1)) is None
    assert PullRequest.objects.get().head_hash == newer.head_hash
    assert check_states() == [("requested", None)]
    # A forge that doesn't say when is taken at its word.
    assert propose(head_hash="b" * 40)


def test_a_head_that_is_back_keeps_its_answer(check: Check, propose: Propose) -> None:
    Check.objects.update(state="done", answer="not worse")
    propose(head_hash="b" * 40)
    assert propose() is None
    assert check_states() == [("done", None), ("cancelled", "newer head")]
    assert newest_check(PullRequest.objects.get()) == check


def test_what_a_person_has_cancelled_is_not_asked_anew(check: Check, propose: Propose) -> None:
    pull_requests.cancel_check(check, "ada")
    assert propose() is None


def test_the_code_of_a_fork_waits_for_an_approval_of_that_very_head(propose: Propose) -> None:
    check = propose(is_fork=True)
    assert check
    assert prepare_check(check).state == "waiting"
    with pytest.raises(CheckError, match=f"this check is of {check.head_hash[:10]}, not of 0000000000"):
        pull_requests.approve_check(check, "0" * 40, "ada")
    pull_requests.approve_check(check, check.head_hash, "ada")
    assert prepare_check(check).state == "measuring"
    assert check.approved_by == "ada"
    with pytest.raises(CheckError, match="it waits for no approval"):
        pull_requests.approve_check(check, check.head_hash, "ada")


def test_a_newer_head_of_a_fork_waits_anew(propose: Propose, proposed: Repository) -> None:
    check = propose(is_fork=True)
    assert check
    pull_requests.approve_check(check, check.head_hash, "ada")
    proposed.commit("Do harm", train_py="raise SystemExit")
    newer = propose(is_fork=True)
    assert newer
    assert (newer.state, newer.approved_by) == ("waiting", "")


def test_it_is_repeated_once_it_has_ended(check: Check) -> None:
    with pytest.raises(CheckError, match="one of #7 is under way already"):
        pull_requests.repeat_check(check)
    assert pull_requests.cancel_check(check, "ada")
    assert not pull_requests.cancel_check(check, "ada")
    again = pull_requests.repeat_check(check)
    assert (again.head_hash, again.onto_hash, again.state) == (check.head_hash, check.onto_hash, "requested")


def test_a_base_that_is_gone_is_another_one_next_time(propose: Propose) -> None:
    check = propose(onto_hash="0" * 40)
    assert check
    gone = prepare_check(check)
    assert (gone.answer, gone.reason["code"]) == ("not known", "base is gone")
    assert reason_sentence(gone.reason) == "0000000000, which was the tip of main, isn't in the repository."
    assert next_step(gone) == "Run it again: it is compared with main as it is then."
    assert prepare_check(pull_requests.repeat_check(gone)).state == "measuring"


def test_an_older_head_is_not_repeated(check: Check, propose: Propose, proposed: Repository) -> None:
    newer = propose(head_hash=proposed.commit("Go on", train_py="pass"))
    assert newer
    pull_requests.cancel_check(newer, "ada")
    with pytest.raises(CheckError, match="#7 has a newer head"):
        pull_requests.repeat_check(check)


def test_a_branch_is_checked_by_hand(tracked: Project, proposed: Repository) -> None:
    check = pull_requests.request_check(
        tracked, pull_requests.CheckRequest("feature", minutes=5, benchmarks=["loop"])
    )
    assert check.head_hash == proposed.git("rev-parse", "feature")
    assert (check.onto, check.onto_hash) == ("main", proposed.git("rev-parse", "main"))
    assert (check.pull_request, check.minutes, check.benchmarks) == (None, 5, ["loop"])


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda project: pull_requests.request_check(project, pull_requests.CheckRequest("nothing")),
            "head: .* has no commit 'nothing'",
        ),
        (
            lambda project: pull_requests.request_check(project, pull_requests.CheckRequest("feature", "no")),
            "onto: .* no commit 'no'",
        ),
        (
            lambda project: pull_requests.request_check(
                project, pull_requests.CheckRequest("feature", minutes=0)
            ),
            "minutes: 0 isn't above",
        ),
    ],
)
def test_what_cannot_be_checked_is_refused(
    tracked: Project, proposed: Repository, ask: Callable[[Project], Check], sentence: str
) -> None:
    with pytest.raises(CheckError, match=sentence):
        ask(tracked)
    assert Check.objects.count() == 0


def test_only_what_is_worse_can_be_intended(check: Check) -> None:
    with pytest.raises(CheckError, match="only what is proved to be worse"):
        pull_requests.mark_intended(check, "ada")
    Check.objects.update(state="done", answer="worse")
    pull_requests.mark_intended(check, "ada")
    check.refresh_from_db()
    assert check.intended_by == "ada"
