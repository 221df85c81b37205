"""Asking for a comparison with a baseline: rolling, merge base, or what the policy pins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboard import experiments
from dashboard.access import command_account
from dashboard.experiments import EstimateRequest, ExperimentError
from dashboard.models import Commit, Project
from tests.dashboard import factories
from tests.dashboard.conftest import Repository

ONE_CASE = '[benchmarks.walker]\nversion = 1\nscript = "walker.py"\nsteps = 10\n'


@pytest.fixture
def repository(tmp_path: Path, project: Project) -> Repository:
    """Two commits on main, tagged v1 at the first, and a third on a topic branch of the second."""
    made = Repository(tmp_path / "own")
    made.commit("Begin", paceline_toml=ONE_CASE, walker_py="1")
    made.git("tag", "v1")
    made.commit("Go on", walker_py="2")
    made.git("checkout", "-q", "-b", "topic")
    made.commit("Try it", walker_py="3")
    made.git("checkout", "-q", "main")
    Project.objects.filter(pk=project.pk).update(repository=made.folder)
    project.refresh_from_db()
    return made


def asked_base(project: Project, base: str, head: str) -> str:
    request = EstimateRequest(base=base, head=head)
    experiment, _ = experiments.submit_estimate(project, request, "script", command_account())
    return experiment.base_commit.hash


def refused_request(project: Project, base: str, head: str) -> tuple[str, str]:
    with pytest.raises(ExperimentError) as caught:
        asked_base(project, base, head)
    return caught.value.field, caught.value.sentence


def store_commit(repository: Repository, project: Project, revision: str, **fields: Any) -> Commit:
    sha = repository.git("rev-parse", revision)
    return factories.create_commit(project, name=sha, **fields)


def test_the_merge_base_of_a_branch(project: Project, repository: Repository) -> None:
    assert asked_base(project, "merge-base", "topic") == repository.git("rev-parse", "main")


def test_the_projects_own_branch_has_none(project: Project, repository: Repository) -> None:
    field, sentence = refused_request(project, "merge-base", "main")
    assert field == "base"
    assert sentence.endswith("lies on main: only commits of another branch have a merge base.")


def test_the_tag_that_the_policy_pins(project: Project, repository: Repository) -> None:
    Project.objects.update(policy='[policy.baseline]\npinned = "v1"')
    project.refresh_from_db()
    assert asked_base(project, "pinned", "topic") == repository.git("rev-parse", "v1")


@pytest.mark.parametrize(
    ("pinned", "sentence"),
    [
        ("", "the policy pins no tag or commit (baseline.pinned)."),
        (
            "v9",
            "the policy pins v9: The repository of snakes has no commit 'v9'; its branches are: main, topic.",
        ),
    ],
)
def test_a_policy_that_pins_nothing_there_is(
    project: Project, repository: Repository, pinned: str, sentence: str
) -> None:
    Project.objects.update(policy=f'[policy.baseline]\npinned = "{pinned}"')
    project.refresh_from_db()
    assert refused_request(project, "pinned", "main") == ("base", sentence)


def test_the_rolling_one_is_the_commit_measured_before(project: Project, repository: Repository) -> None:
    case = factories.create_case(project, "walker")
    first = store_commit(repository, project, "v1", position=0)
    factories.create_run(first, case, tainted=True)
    assert refused_request(project, "rolling", "main")[1].endswith(" is measured on main.")
    factories.create_run(first, case)
    assert asked_base(project, "rolling", "main") == first.hash


def test_a_baseline_is_that_of_a_commit(project: Project, repository: Repository) -> None:
    assert refused_request(project, "rolling", "") == (
        "head",
        "it is missing: rolling is the baseline of a commit.",
    )
