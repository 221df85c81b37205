from __future__ import annotations

import os
from pathlib import Path

import pytest

from dashboard import repositories
from dashboard.models import Project
from dashboard.repositories import Mirror, RepositoryError, Unreachable, git
from tests.dashboard.conftest import MANIFEST, Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def mirror(tracked: Project) -> Mirror:
    made = repositories.mirror_of(tracked)
    made.fetch()
    return made


@pytest.mark.parametrize(
    "revision", ["--output=x", "-n", "a b", "HEAD:train.py", "a\nb", "", "^main", ":/fix", "a" * 300, "a\x00"]
)
def test_what_can_not_name_a_commit_never_reaches_git(mirror: Mirror, revision: str) -> None:
    with pytest.raises(RepositoryError, match="isn't a revision"):
        repositories.resolve(mirror, revision)


def test_an_unknown_revision_is_answered_with_the_branches(mirror: Mirror) -> None:
    with pytest.raises(RepositoryError, match=r"has no commit 'nothing'; its branches are: main\."):
        repositories.resolve(mirror, "nothing")


def test_a_commit_is_found_by_branch_tag_and_short_hash(mirror: Mirror, repository: Repository) -> None:
    repository.git("tag", "v1")
    mirror.fetch()
    newest = repository.git("rev-parse", "HEAD")
    for revision in ("main", "v1", "HEAD", newest[:8], "refs/heads/main", "main~0"):
        assert repositories.resolve(mirror, revision) == newest


@pytest.mark.parametrize("text", ["a", "..a", "a...b", "a..b..c", "--x..main", "main..-x"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(RepositoryError):
        repositories.parse_range(text)


def test_an_empty_range_says_what_may_be_wrong(mirror: Mirror) -> None:
    with pytest.raises(RepositoryError, match="holds no commit: is main the older one"):
        repositories.select(mirror, {"range": "main..main~1"})


def test_a_range_may_end_at_the_newest(mirror: Mirror, repository: Repository) -> None:
    assert repositories.select(mirror, {"range": "main~1.."}) == [repository.git("rev-parse", "HEAD")]


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_a_count_has_bounds(mirror: Mirror, count: int) -> None:
    with pytest.raises(RepositoryError, match="1 to 1000 can"):
        repositories.select(mirror, {"last": count})


def test_history_follows_the_first_parents(mirror: Mirror, repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "topic")
    topic = repository.commit("Topic", train_py="topic")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "topic")
    mirror.fetch()
    line = repositories.select(mirror, {"last": 10})
    assert len(line) == 3
    assert topic not in line
    merged, tried = repositories.facts(mirror, [line[-1], topic])
    assert (merged.position, merged.branch, len(merged.parents)) == (2, "main", 2)
    assert (tried.position, tried.branch) == (2, "topic")


def test_a_worktree_without_a_commit_stops_no_fetch(mirror: Mirror, repository: Repository) -> None:
    unfinished = mirror.folder / "worktrees" / "killed"
    unfinished.mkdir(parents=True)
    (unfinished / "HEAD").write_text("0" * 40 + "\n")
    (unfinished / "gitdir").write_text("/nowhere/.git\n")
    (unfinished / "commondir").write_text("../..\n")
    newest = repository.commit("One more", train_py="print(3)")
    mirror.fetch()
    assert repositories.resolve(mirror, "main") == newest


def test_a_force_push_is_followed(mirror: Mirror, repository: Repository) -> None:
    repository.git("commit", "-q", "--amend", "--message", "Rewritten")
    mirror.fetch()
    assert repositories.resolve(mirror, "HEAD") == repository.git("rev-parse", "HEAD")


def test_manifests_are_read_where_there_are_any(mirror: Mirror, repository: Repository) -> None:
    without, with_one = repositories.select(mirror, {"last": 2})
    (repository.folder / "paceline.toml").unlink()
    odd = repository.commit("A folder of that name", **{"train_py": "x"})
    (repository.folder / "paceline.toml").mkdir()
    folder = repository.commit("Folder", **{"paceline_toml/a": "x"})
    mirror.fetch()
    assert repositories.manifests(mirror, [without, folder, with_one, odd]) == {with_one: MANIFEST}


def test_a_subject_is_read_as_it_is(mirror: Mirror, repository: Repository) -> None:
    written = repository.commit("Größe: 'x' \"y\" <b> %H")
    mirror.fetch()
    assert repositories.facts(mirror, [written])[0].subject == "Größe: 'x' \"y\" <b> %H"


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\f", "\x1e"])
def test_what_other_programs_take_for_a_lines_end_is_not_one(
    mirror: Mirror, repository: Repository, separator: str
) -> None:
    odd = f"a{separator}b"
    repository.git("commit", "-q", "--allow-empty", "--author", f"{odd} <a@b>", "--message", odd)
    after = repository.commit("After")
    mirror.fetch()
    before = repositories.resolve(mirror, "main~1")
    found = repositories.facts(mirror, [before, after])
    assert [(facts.hash, facts.subject) for facts in found] == [(before, odd), (after, "After")]
    assert (found[0].author, found[1].parents) == (odd, [before])


def test_what_others_propose_is_not_fetched(mirror: Mirror, repository: Repository) -> None:
    repository.git("checkout", "-q", "--detach")
    proposed = repository.commit("Proposed", train_py="evil")
    repository.git("update-ref", "refs/pull/1/head", proposed)
    repository.git("checkout", "-q", "main")
    mirror.fetch()
    with pytest.raises(RepositoryError, match="has no commit"):
        repositories.resolve(mirror, proposed)


@pytest.mark.parametrize(
    "address", ["--upload-pack=touch /tmp/x", "ext::sh -c true", "/nowhere", "http://127.0.0.1:1/x.git"]
)
def test_a_bad_address_is_one_sentence(tracked: Project, address: str) -> None:
    tracked.repository = address
    with pytest.raises(Unreachable) as refused:
        repositories.mirror_of(tracked).fetch()
    assert "\n" not in str(refused.value)


def test_a_password_is_not_told(tracked: Project) -> None:
    tracked.repository = "http://ada:geheim@127.0.0.1:1/x.git"
    with pytest.raises(Unreachable) as refused:
        repositories.mirror_of(tracked).fetch()
    assert "geheim" not in str(refused.value)


def test_a_hooks_surroundings_do_not_lead_astray(
    mirror: Mirror, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    mirror.fetch()
    assert repositories.resolve(mirror, "main")


def test_git_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    git.run(tmp_path, ["init", "-q"])
    with pytest.raises(RepositoryError, match="took longer than"):
        git.run(tmp_path, ["-c", "alias.wait=!sleep 61", "wait"], seconds=0.3)
    assert not any(
        b"sleep\x0061" in (folder / "cmdline").read_bytes()
        for folder in Path("/proc").glob("[0-9]*")
        if (folder / "cmdline").exists()
    )


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a repository away")
def test_a_repository_of_another_account_can_be_read(mirror: Mirror, repository: Repository) -> None:
    for path in [repository.folder, *repository.folder.rglob("*")]:
        os.chown(path, 65534, 65534)
    mirror.fetch()
    assert repositories.resolve(mirror, "main")


@pytest.mark.parametrize(
    "said",
    ["unable to look up ann:S@CRET@host", "repository 'https://ann:SECRET@host/r.git' not found"],
)
def test_no_reason_holds_a_password(said: str) -> None:
    hidden = git.hide_password(said)
    assert "CRET" not in hidden
    assert "host" in hidden
