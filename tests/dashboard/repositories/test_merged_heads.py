"""Where a head came to the branch, in repositories that git has merged, squashed and rebased."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard import repositories
from dashboard.repositories import MergedBy, MergedHead, Mirror, ProposedBranch
from tests.dashboard.conftest import Repository, copy_repository


@pytest.fixture(scope="module")
def feature_once(shared_repository: Repository) -> Repository:
    """What each test's `feature` begins as."""
    lines = [f"line {number}" for number in range(30)]
    shared_repository.commit("Write", model_py="\n".join(lines))
    shared_repository.git("checkout", "--quiet", "-b", "feature")
    shared_repository.commit("Change the model", model_py="\n".join([*lines[:20], "another", *lines[21:]]))
    shared_repository.commit("Add a loop", loop_py="while True: pass")
    shared_repository.git("checkout", "--quiet", "main")
    return shared_repository


@pytest.fixture
def repository(tmp_path: Path, feature_once: Repository) -> Repository:
    """`feature` is two commits ahead of `main`, which is checked out."""
    return copy_repository(feature_once, tmp_path / "repository")


@pytest.fixture
def feature(repository: Repository) -> Repository:
    return repository


def go_on(feature: Repository) -> str:
    """Let `main` go on in the file that `feature` changes, far above."""
    lines = (feature.folder / "model.py").read_text().split("\n")
    return feature.commit("Go on", model_py="\n".join(["new", *lines]))


def find_hashes(feature: Repository, *names: str) -> list[str]:
    return feature.git("rev-parse", *names).split()


def find_merge(mirror: Mirror, feature: Repository, base: str, at: str, told: str = "") -> MergedHead | None:
    mirror.fetch()
    mirror.fetch_ref("refs/heads/feature", "feature")
    (commit,) = find_hashes(feature, at)
    proposed = ProposedBranch(*find_hashes(feature, "feature", base), told)
    return repositories.find_merges(mirror, commit, "main", {1: proposed}).get(1)


@pytest.mark.parametrize("moved", [False, True])
def test_a_merge_commit(mirror: Mirror, feature: Repository, moved: bool) -> None:
    base = find_hashes(feature, "main")[0]
    before = go_on(feature) if moved else base
    feature.git("merge", "--quiet", "--no-ff", "--message", "Merge", "feature")
    merge = find_hashes(feature, "main")[0]
    found = find_merge(mirror, feature, base, "main")
    assert found == MergedHead(merge, before, MergedBy.MERGE_COMMIT)


@pytest.mark.parametrize("at", ["main", "main~1"])
def test_a_fast_forward_is_of_all_commits_that_it_brought(
    mirror: Mirror, feature: Repository, at: str
) -> None:
    base = find_hashes(feature, "main")[0]
    feature.git("merge", "--quiet", "--ff-only", "feature")
    head = find_hashes(feature, "main")[0]
    assert find_merge(mirror, feature, base, at) == MergedHead(head, base, MergedBy.FAST_FORWARD)


@pytest.mark.parametrize(
    ("moved", "told", "by"),
    [
        (False, False, MergedBy.SAME_FILES),
        (True, False, MergedBy.SAME_PATCH),
        (True, True, MergedBy.FORGE),
    ],
)
def test_a_squash(mirror: Mirror, feature: Repository, moved: bool, told: bool, by: MergedBy) -> None:
    base = find_hashes(feature, "main")[0]
    before = go_on(feature) if moved else base
    feature.git("merge", "--quiet", "--squash", "feature")
    squash = feature.commit("Squashed")
    found = find_merge(mirror, feature, base, "main", squash if told else "")
    assert found == MergedHead(squash, before, by)


@pytest.mark.parametrize("at", ["main", "main~1"])
@pytest.mark.parametrize(("told", "by"), [(False, MergedBy.SAME_PATCH), (True, MergedBy.FORGE)])
def test_a_rebase_is_of_all_commits_that_it_brought(
    mirror: Mirror, feature: Repository, told: bool, by: MergedBy, at: str
) -> None:
    base = find_hashes(feature, "main")[0]
    before = go_on(feature)
    feature.git("cherry-pick", "main..feature")
    last = find_hashes(feature, "main")[0]
    found = find_merge(mirror, feature, base, at, last if told else "")
    assert found == MergedHead(last, before, by)


def test_a_merge_that_mended_a_conflict_counts_alone_where_its_forge_tells_it(
    mirror: Mirror, feature: Repository
) -> None:
    base = find_hashes(feature, "main")[0]
    go_on(feature)
    feature.git("merge", "--quiet", "--squash", "feature")
    squash = feature.commit("Squashed, with a change", loop_py="while False: pass")
    assert find_merge(mirror, feature, base, "main") is None
    found = find_merge(mirror, feature, base, "main", squash)
    assert found == MergedHead(squash, find_hashes(feature, "main~1")[0], MergedBy.FORGE)


@pytest.mark.parametrize("at", ["main~1", "main"])
def test_another_commit_holds_nothing_of_it(mirror: Mirror, feature: Repository, at: str) -> None:
    base = find_hashes(feature, "main")[0]
    go_on(feature)
    feature.git("merge", "--quiet", "--no-ff", "--message", "Merge", "feature")
    feature.commit("Go on", notes_txt="later")
    merged = find_merge(mirror, feature, base, at)
    assert (merged is None) == (at == "main")


def test_a_branch_that_changes_nothing_is_found_by_history_alone(mirror: Mirror, feature: Repository) -> None:
    (base,) = find_hashes(feature, "main")
    feature.git("checkout", "--quiet", "feature")
    feature.git("revert", "--no-edit", "feature", "feature~1")
    feature.git("checkout", "--quiet", "main")
    feature.commit("Try", loop_py="pass")
    feature.git("revert", "--no-edit", "main")
    assert find_merge(mirror, feature, base, "main") is None
