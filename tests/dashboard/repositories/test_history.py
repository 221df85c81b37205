from __future__ import annotations

import pytest

from dashboard import repositories
from dashboard.repositories import DETACHED, Mirror, RepositoryError
from tests.dashboard.conftest import MANIFEST, Repository


@pytest.mark.parametrize(
    "revision",
    ["--output=x", "-n", "a b", "HEAD:train.py", "a\nb", "", "^main", ":/fix", "a" * 2000, "a\x00"],
)
def test_what_can_not_name_a_commit_never_reaches_git(mirror: Mirror, revision: str) -> None:
    with pytest.raises(RepositoryError, match="isn't a revision"):
        repositories.resolve_revision(mirror, revision)


def test_an_unknown_revision_is_answered_with_the_branches(mirror: Mirror) -> None:
    with pytest.raises(RepositoryError, match=r"has no commit 'nothing'; its branches are: main\."):
        repositories.resolve_revision(mirror, "nothing")


def test_a_commit_is_found_by_branch_tag_and_short_hash(mirror: Mirror, repository: Repository) -> None:
    repository.git("tag", "v1")
    mirror.fetch()
    newest = repository.git("rev-parse", "HEAD")
    for revision in ("main", "v1", "HEAD", newest[:8], "refs/heads/main", "main~0"):
        assert repositories.resolve_revision(mirror, revision) == newest


@pytest.mark.parametrize("text", ["a", "..a", "a...b", "a..b..c", "--x..main", "main..-x"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(RepositoryError):
        repositories.parse_range(text)


def test_an_empty_range_says_what_may_be_wrong(mirror: Mirror) -> None:
    with pytest.raises(RepositoryError, match="holds no commit: is main the older one"):
        repositories.select_commits(mirror, {"range": "main..main~1"})


def test_a_range_has_a_bound(mirror: Mirror, repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD~")
    newest = repository.commit("One more", train_py="3")
    mirror.fetch()
    assert repositories.commits_between(mirror, first, newest, most=2)[-1] == newest
    with pytest.raises(RepositoryError, match="holds more than 1 commits"):
        repositories.commits_between(mirror, first, newest, most=1)


def test_a_range_may_end_at_the_newest(mirror: Mirror, repository: Repository) -> None:
    newest = repository.git("rev-parse", "HEAD")
    assert repositories.select_commits(mirror, {"range": "main~1.."}) == [newest]


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_a_count_has_bounds(mirror: Mirror, count: int) -> None:
    with pytest.raises(RepositoryError, match="1 to 1000 can"):
        repositories.select_commits(mirror, {"last": count})


def test_history_follows_the_first_parents(mirror: Mirror, repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "topic")
    topic = repository.commit("Topic", train_py="topic")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "topic")
    mirror.fetch()
    line = repositories.select_commits(mirror, {"last": 10})
    assert len(line) == 3
    assert topic not in line
    merged, tried = repositories.read_commits(mirror, [line[-1], topic])
    assert (merged.position, merged.branch, len(merged.parents)) == (2, "main", 2)
    assert (tried.position, tried.branch) == (2, "topic")
    assert repositories.merged_commits(mirror, line[1], topic) == {topic: [line[1]]}
    assert repositories.merge_base(mirror, line[1], topic) == line[1]


def test_unrelated_histories_have_no_merge_base(mirror: Mirror, repository: Repository) -> None:
    repository.git("checkout", "-q", "--orphan", "other")
    other = repository.commit("Other")
    mirror.fetch()
    assert repositories.merge_base(mirror, "main", other) is None
    assert repositories.is_same_tree(mirror, "main", other)
    assert repositories.commits_since_fork(mirror, "other") == ([other], -1)


def test_commits_of_several_branches_are_placed_at_once(mirror: Mirror, repository: Repository) -> None:
    fork = repository.git("rev-parse", "HEAD")
    repository.git("checkout", "-q", "-b", "zoo")
    shared, later = repository.commit("Shared", a="1"), repository.commit("Later", a="2")
    repository.git("branch", "ape", shared)
    repository.git("checkout", "-q", "-b", "gone")
    gone = repository.commit("Gone", a="3")
    mirror.fetch()
    repository.git("checkout", "-q", "zoo")
    repository.git("branch", "-q", "-D", "gone")
    mirror.fetch()
    found = repositories.read_commits(mirror, [gone, later, fork, shared])
    places = [(commit.branch, commit.position) for commit in found]
    assert places == [(DETACHED, 4), ("zoo", 3), ("main", 1), ("ape", 2)]
    # A single commit is looked for in another way, and found in the same place.
    assert [repositories.read_commits(mirror, [commit.hash])[0] for commit in found] == found


def test_without_the_projects_branch_commits_are_placed_on_others(
    mirror: Mirror, repository: Repository
) -> None:
    repository.git("branch", "-q", "-m", "main", "trunk")
    mirror.fetch()
    (found,) = repositories.read_commits(mirror, [repository.git("rev-parse", "HEAD")])
    assert (found.branch, found.position) == ("trunk", 1)


def test_a_commit_that_is_not_there_is_named(mirror: Mirror) -> None:
    with pytest.raises(RepositoryError, match=r"The repository of snakes has no commit aaaaaaaaaa\."):
        repositories.read_commits(mirror, ["a" * 40])


def test_commits_are_found_by_name(mirror: Mirror, repository: Repository) -> None:
    newest = repository.git("rev-parse", "HEAD")
    tree = repository.git("rev-parse", "HEAD^{tree}")
    names = [newest[:9], "none", tree, "two\nlines", "--all", newest]
    assert repositories.find_commits(mirror, names) == {newest[:9]: newest, newest: newest}


def test_manifests_are_read_where_there_are_any(mirror: Mirror, repository: Repository) -> None:
    without, with_text = repositories.select_commits(mirror, {"last": 2})
    (repository.folder / "paceline.toml").unlink()
    odd = repository.commit("A folder of that name", **{"train_py": "x"})
    (repository.folder / "paceline.toml").mkdir()
    folder = repository.commit("Folder", **{"paceline_toml/a": "x"})
    (repository.folder / "paceline.toml" / "a").unlink()
    (repository.folder / "paceline.toml").rmdir()
    large = repository.commit("Large", paceline_toml="#" * (2 * 1024 * 1024))
    mirror.fetch()
    found = repositories.read_manifests(mirror, [without, folder, large, with_text, odd])
    assert found.pop(with_text) == MANIFEST
    assert {sha: str(error) for sha, error in found.items()} == {
        large: f"paceline.toml of {large[:10]}: is larger than 262144 bytes, which no manifest needs",
        folder: f"paceline.toml of {folder[:10]}: is a folder, must be a file",
    }


def test_a_manifest_may_be_a_link_within_its_commit(mirror: Mirror, repository: Repository) -> None:
    path = repository.folder / "paceline.toml"
    path.rename(repository.folder / "kept.toml")
    path.symlink_to("kept.toml")
    linked = repository.commit("Link", a_txt="1")
    path.unlink()
    path.symlink_to("/etc/hostname")
    outside = repository.commit("Outside", a_txt="2")
    path.unlink()
    path.symlink_to("missing.toml")
    dangling = repository.commit("Dangling", a_txt="3")
    mirror.fetch()
    found = repositories.read_manifests(mirror, [linked, outside, dangling, linked])
    assert found[linked] == MANIFEST
    for sha in (outside, dangling):
        assert "is a symbolic link that doesn't lead to a file of the commit" in str(found[sha])


def test_a_manifest_is_utf8_with_or_without_its_mark(mirror: Mirror, repository: Repository) -> None:
    path = repository.folder / "paceline.toml"
    path.write_bytes(b"\xef\xbb\xbf" + MANIFEST.encode())
    marked = repository.commit("Mark", a_txt="1")
    path.write_bytes(MANIFEST.encode() + b"# caf\xe9\n")
    latin = repository.commit("Latin-1", a_txt="2")
    mirror.fetch()
    found = repositories.read_manifests(mirror, [marked, latin])
    assert found[marked] == MANIFEST
    assert f"paceline.toml of {latin[:10]}: is not UTF-8" in str(found[latin])


def test_a_subject_is_read_as_it_is(mirror: Mirror, repository: Repository) -> None:
    written = repository.commit("Größe: 'x' \"y\" <b> %H")
    mirror.fetch()
    assert repositories.read_commits(mirror, [written])[0].subject == "Größe: 'x' \"y\" <b> %H"


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\f", "\x1e"])
def test_what_other_programs_take_for_a_lines_end_is_not_one(
    mirror: Mirror, repository: Repository, separator: str
) -> None:
    odd = f"a{separator}b"
    repository.git("commit", "-q", "--allow-empty", "--author", f"{odd} <a@b>", "--message", odd)
    after = repository.commit("After")
    mirror.fetch()
    before = repositories.resolve_revision(mirror, "main~1")
    found = repositories.read_commits(mirror, [before, after])
    assert [(commit.hash, commit.subject) for commit in found] == [(before, odd), (after, "After")]
    assert (found[0].author, found[1].parents) == (odd, [before])
