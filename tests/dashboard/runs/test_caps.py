"""Whoever runs the site says how much a manifest or a push may ask for."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.models import Commit, Project, Run, Trigger
from tests.dashboard.conftest import Repository
from tests.dashboard.repositories.test_odd_commits import import_history
from tests.dashboard.runs.test_resolving import resolve_new_trigger

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("cap", "most", "sentence"),
    [
        ("SECONDS", 5, "time_limit is 60 at {tip}, this site allows 5 (PACELINE_MOST_SECONDS)."),
        ("REPETITIONS", 1, "repetitions is 3 at {tip}, this site allows 1 (PACELINE_MOST_REPETITIONS)."),
        (
            "CASES",
            2,
            "Commit {tip} has 3 cases, this site measures 2 of a commit at most (PACELINE_MOST_CASES)",
        ),
        ("RUNS", 2, "3 runs are asked for, this site takes 2 at once (PACELINE_MOST_RUNS)"),
        ("WAITING", 2, "0 runs of this project wait already, with 3 more they are over the 2 that may"),
    ],
)
def test_what_is_over_a_cap_is_refused_by_its_name(
    tracked: Project, repository: Repository, settings: Any, cap: str, most: int, sentence: str
) -> None:
    setattr(settings, f"PACELINE_MOST_{cap}", most)
    trigger = resolve_new_trigger(tracked, source="web")
    assert trigger.state == Trigger.State.REFUSED
    assert sentence.format(tip=repository.git("rev-parse", "HEAD")[:10]) in trigger.detail
    assert not Run.objects.exists()


def test_of_a_push_as_many_commits_are_measured_as_fit(
    tracked: Project, repository: Repository, settings: Any
) -> None:
    before = repository.git("rev-parse", "main")
    import_history(repository, 10, odd=1)
    settings.PACELINE_MOST_RUNS = 7
    trigger = resolve_new_trigger(tracked, source="hook", revisions={"range": f"{before}..main"})
    assert (
        trigger.detail
        == "6 runs at 2 commits. The push has 10 commits: 2 of them, evenly spread, stand for all."
    )
    assert Commit.objects.filter(hash=repository.git("rev-parse", "main")).exists()
