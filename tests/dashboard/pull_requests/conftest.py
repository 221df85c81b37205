"""A project whose benchmark is a loop, and branches that change it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from dashboard import pull_requests
from dashboard.models import Check, Project, PullRequest
from dashboard.pull_requests.requests import ProposedHead
from tests.dashboard.conftest import Repository, copy_repository

MANIFEST = """
[benchmarks.loop]
version = 1
script = "train.py"
warmup_steps = 2
steps = 10
counting_steps = 5
repetitions = 1
time_limit = 60
"""
TRAIN = """
import paceline

for _ in paceline.steps(range(10**9)):
    with paceline.phase("act"):
        sum(range(3_000))
    with paceline.phase("learn"):
        sum(range(8_000))
paceline.quality("return", 9.5)
"""

Propose = Callable[..., Check | None]


@pytest.fixture(scope="session")
def five_commits(tmp_path_factory: pytest.TempPathFactory, two_commits: Repository) -> Repository:
    """What each test's `proposed` begins as."""
    made = copy_repository(two_commits, tmp_path_factory.mktemp("proposed") / "repository")
    made.commit("Describe a loop", paceline_toml=MANIFEST, train_py=TRAIN)
    made.git("branch", "feature")
    made.commit("Go on", notes_txt="later")
    made.git("checkout", "--quiet", "feature")
    made.commit("Learn more", train_py=TRAIN.replace("8_000", "16_000"))
    return made


@pytest.fixture
def proposed(tracked: Project, repository: Repository, five_commits: Repository) -> Repository:
    """Its branch `main` has the loop; `feature` is one commit ahead, and main has gone on since."""
    shutil.rmtree(repository.folder)
    return copy_repository(five_commits, repository.folder)


@pytest.fixture
def propose(tracked: Project, proposed: Repository) -> Propose:
    """Tell the site of the pull request as it is now."""

    def tell(**values: Any) -> Check | None:
        head = {"head_hash": proposed.git("rev-parse", "feature"), "head_ref": "feature", "onto": "main"}
        about = {"number": 7, "title": "Learn more", "author": "ada", "url": "https://forge.example/7"}
        return pull_requests.follow_pull_request(tracked, ProposedHead(**{**about, **head, **values}))

    return tell


@pytest.fixture
def check(propose: Propose) -> Check:
    asked = propose()
    assert asked
    return asked


def prepare_check(check: Check) -> Check:
    pull_requests.prepare_check(check.pk)
    check.refresh_from_db()
    return check


CLOSED = PullRequest.State.CLOSED
