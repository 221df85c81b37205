"""What a push may bring: ten thousand commits, odd ones, names of any length. None costs another its runs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client

from dashboard import runs
from dashboard.models import Commit, Project, Run, Trigger
from dashboard.policy.decision import spread_evenly
from dashboard.repositories import commits_between, read_commits
from dashboard.runs import planning
from dashboard.runs.commits import shorten_branch
from tests.dashboard.conftest import MANIFEST, Repository
from tests.dashboard.repositories.odd_commits import import_history, write_commit

pytestmark = pytest.mark.django_db


def resolve_push(project: Project, revisions: str, source: str = "hook") -> Trigger:
    trigger = project.triggers.create(source=source, revisions={"range": revisions}, benchmarks=["other"])
    runs.resolve_trigger(trigger.pk)
    trigger.refresh_from_db()
    return trigger


def test_of_ten_thousand_pushed_commits_a_hundred_are_measured_and_all_can_be_rows(
    tracked: Project, repository: Repository
) -> None:
    before = repository.git("rev-parse", "main")
    import_history(repository, 10_000, odd=100)
    tip = repository.git("rev-parse", "main")
    trigger = resolve_push(tracked, f"{before}..{tip}")
    assert trigger.detail == (
        "100 runs at 100 commits. The push has 10000 commits: 100 of them, evenly spread, stand for all."
    )
    positions = Commit.objects.order_by("position").values_list("position", flat=True)
    assert list(positions) == list(range(101, 10_002, 100))
    urgent = Run.objects.order_by("-priority").values_list("commit__hash", "priority")
    assert list(urgent[:2]) == [(tip, 10), (urgent[1][0], 0)]
    hashes = commits_between(tracked.mirror, "main~10000", "main", most=10_000)
    rows = runs.get_or_create_commits(tracked, read_commits(tracked.mirror, hashes))
    assert list(rows) == hashes
    assert Commit.objects.count() == 10_000


def test_a_push_of_a_hundred_is_measured_whole(
    tracked: Project, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MOST_PUSHED", 5)
    before = repository.git("rev-parse", "main")
    import_history(repository, 5, odd=2)
    trigger = resolve_push(tracked, f"{before}..main")
    assert trigger.detail == "5 runs at 5 commits."
    assert set(Run.objects.values_list("priority", flat=True)) == {10}


def test_a_person_who_asks_for_too_many_is_told_so(tracked: Project, repository: Repository) -> None:
    before = repository.git("rev-parse", "main")
    import_history(repository, 1001, odd=100)
    trigger = resolve_push(tracked, f"{before}..main", source="web")
    assert trigger.state == Trigger.State.REFUSED
    assert trigger.detail.endswith("holds more than 1000 commits.")


@pytest.mark.parametrize(("size", "count"), [(101, 100), (250, 100), (7, 3), (4, 4)])
def test_commits_are_spread_evenly(size: int, count: int) -> None:
    numbers = [int(sha) for sha in spread_evenly([str(at) for at in range(size)], count)]
    gaps = {after - before for before, after in zip([-1, *numbers], numbers, strict=False)}
    assert len(numbers) == count
    assert numbers[-1] == size - 1
    assert max(gaps) - min(gaps) <= 1


def test_an_odd_commit_is_stored_and_shown_beside_the_others(
    tracked: Project, repository: Repository, client: Client
) -> None:
    odd = write_commit(
        repository,
        author=b"A\0\xff <a@b> 1 +0",
        committer=b"C <c@d> 99999999999999 +518:00",
        more=b"encoding UTF-7",
        message=b"+2AA- \0\n",
    )
    before = write_commit(repository, committer=b"C <c@d> -99999999999999 +051800", message=b"")
    assert resolve_push(tracked, "main~3..main").detail == "3 runs at 3 commits."
    stored = Commit.objects.get(hash=odd)
    assert (stored.author, stored.subject) == ("A\ufffd\ufffd", "\ufffd \ufffd")
    assert stored.committed_at == datetime(9999, 12, 30, tzinfo=UTC)
    assert Commit.objects.get(hash=before).committed_at == datetime(1, 1, 2, tzinfo=UTC)
    assert "9999-12-30" in client.get(f"{tracked.get_absolute_url()}commits/").content.decode()


def test_a_branch_may_have_a_very_long_name(tracked: Project, repository: Repository) -> None:
    for end in "xy":
        repository.git("checkout", "-q", "-B", f"{'a' * 200}/{'b' * 240}/{'c' * 60}/{end}", "main")
        repository.commit(f"On {end}", train_py=end)
    tip = f"{'a' * 200}/{'b' * 240}/{'c' * 60}/y"
    trigger = tracked.triggers.create(source="web", revisions={"commit": tip}, benchmarks=["other"])
    runs.resolve_trigger(trigger.pk)
    first = Commit.objects.get().branch
    resolve_push(tracked, f"main..{tip[:-1]}x", source="web")
    names = set(Commit.objects.values_list("branch", flat=True))
    assert len(names) == 2
    assert first == shorten_branch(tip)
    assert {len(name) for name in names} == {500}


def test_a_manifest_may_hold_anything(tracked: Project, repository: Repository) -> None:
    for key in ('"a\\u0000b"', '"\\u2028"', '"\\uFFFF"'):
        repository.commit("Odd", paceline_toml=f"{key} = 1\n{MANIFEST}")
    repository.commit("Sound", paceline_toml=MANIFEST)
    detail = resolve_push(tracked, "main~4..main").detail
    assert detail.startswith("1 run at 1 commit. Left out: ")
    assert detail.count("Left out") == 3
