"""A push of which a hook tells in the moment in which the site looks for itself: each run is made once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from dashboard import runs, triggers
from dashboard.models import Backlog, Project, Run, Trigger
from dashboard.triggers import polling
from dashboard.triggers.hook import HookPush, from_hook
from tests.dashboard.conftest import Repository
from tests.dashboard.triggers.test_policy import set_policy

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 30


def look_for_pushes(project: Project) -> None:
    polling.claim_poll(project)
    triggers.poll_project(project.pk)


def tell_while_it_looks(project: Project, push: HookPush) -> None:
    """The hook's request is stored, and can't be seen yet, while the repository is asked."""
    stored, looked = threading.Event(), threading.Event()

    def tell() -> None:
        try:
            with transaction.atomic():
                from_hook(project, push)
                stored.set()
                assert looked.wait(PATIENCE)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        telling = thread.submit(tell)
        assert stored.wait(PATIENCE)
        look_for_pushes(project)
        looked.set()
        telling.result()


def resolve_at_once(keys: list[int]) -> None:
    together = threading.Barrier(len(keys))

    def resolve(key: int) -> None:
        try:
            together.wait(PATIENCE)
            runs.resolve_trigger(key)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(keys)) as threads:
        list(threads.map(resolve, keys))


@pytest.mark.parametrize("policy", ["", "coalesce = true", "coalesce = true\nmost_queued = 3"])
def test_each_commit_of_it_is_measured_once(polled: Project, repository: Repository, policy: str) -> None:
    before = set_policy(repository, policy)
    look_for_pushes(polled)
    runs.resolve_trigger(Trigger.objects.get().pk)
    pushed = [repository.commit("Change", train_py=str(number)) for number in range(6)]
    tell_while_it_looks(polled, HookPush("a" * 32, 0, "refs/heads/main", pushed[-1], before))
    both = Trigger.objects.filter(state="received").order_by("source")
    assert [trigger.source for trigger in both] == ["hook", "poll"]
    resolve_at_once([trigger.pk for trigger in both])
    said = (
        Trigger.objects.filter(source__in=("hook", "poll")).order_by("-pk").values_list("detail", flat=True)
    )
    assert sum("asked for before" in sentence for sentence in said) == 1
    while Run.objects.filter(state="requested").update(state="done") or Backlog.objects.exists():
        runs.fill_backlog(polled.pk)
    measured = Run.objects.order_by("commit__position").values_list("commit__hash", flat=True)
    assert list(measured) == [before, *pushed]
