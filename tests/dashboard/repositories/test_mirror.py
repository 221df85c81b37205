"""The mirror that site and workers share: what is fetched, kept, refused, and healed."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from dashboard import repositories
from dashboard.repositories import (
    Git,
    Mirror,
    RepositoryBusy,
    RepositoryError,
    Stopped,
    Unreachable,
    locate_mirror,
    safe_name,
)
from tests.dashboard.conftest import Repository


def newest_commit(mirror: Mirror) -> str:
    return repositories.resolve_revision(mirror, "HEAD")


def test_a_force_push_is_followed_and_what_it_left_behind_is_kept(
    mirror: Mirror, repository: Repository
) -> None:
    before = newest_commit(mirror)
    repository.git("commit", "-q", "--amend", "--message", "Rewritten")
    mirror.fetch()
    assert newest_commit(mirror) == repository.git("rev-parse", "HEAD") != before
    mirror.run(["gc", "--quiet"])
    assert mirror.has_commit(before)


def test_a_branch_makes_way_for_one_below_its_name(mirror: Mirror, repository: Repository) -> None:
    repository.git("branch", "topic")
    mirror.fetch()
    repository.git("branch", "-q", "-m", "topic", "topic/first")
    mirror.fetch()
    assert mirror.branches() == ["main", "topic/first"]


def test_what_others_propose_is_not_fetched(mirror: Mirror, repository: Repository) -> None:
    repository.git("checkout", "-q", "--detach")
    proposed = repository.commit("Proposed", train_py="evil")
    repository.git("update-ref", "refs/pull/1/head", proposed)
    repository.git("checkout", "-q", "main")
    mirror.fetch()
    assert not mirror.has_commit(proposed)
    with pytest.raises(RepositoryError, match="has no commit"):
        repositories.resolve_revision(mirror, proposed)


@pytest.mark.parametrize(
    "address",
    ["--upload-pack=touch ran", "ext::sh -c 'touch ran'", "/nowhere", "http://127.0.0.1:1/x.git", ""],
)
def test_a_bad_address_is_one_sentence(tmp_path: Path, address: str) -> None:
    with pytest.raises(Unreachable) as refused:
        locate_mirror(tmp_path, "snakes", address).fetch()
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.rglob("ran"))


@pytest.mark.parametrize("secret", ["SECRET", "SEC@RET", "SEC%40RET"])
def test_a_password_is_not_told(tmp_path: Path, secret: str) -> None:
    with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:1/x\.git can't be fetched") as refused:
        locate_mirror(tmp_path, "snakes", f"http://ada:{secret}@127.0.0.1:1/x.git").fetch()
    assert "RET" not in str(refused.value)


def test_a_home_that_can_not_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "mirrors").write_text("")
    with pytest.raises(RepositoryError, match="can't be opened: "):
        locate_mirror(tmp_path, "snakes", "/nowhere").fetch()


def test_a_hooks_surroundings_do_not_lead_astray(
    mirror: Mirror, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare'='nonsense'")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "nonsense")
    own = locate_mirror(mirror.folder.parent.parent, "snakes", str(repository.folder), "main")
    own.fetch()
    assert newest_commit(own) == newest_commit(mirror)


def test_no_hook_runs(mirror: Mirror, repository: Repository) -> None:
    (mirror.folder / "hooks").mkdir()
    hook = mirror.folder / "hooks" / "reference-transaction"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    repository.commit("Another")
    mirror.fetch()
    assert not (mirror.folder / "ran").exists()


def test_the_accounts_configuration_is_used(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text(f'[url "{repository.folder}"]\n\tinsteadOf = short:\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    mirror = locate_mirror(tmp_path / "home", "snakes", "short:", "main")
    mirror.fetch()
    assert newest_commit(mirror) == repository.git("rev-parse", "HEAD")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a repository away")
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_repository_of_another_account_can_be_read(
    tmp_path: Path, repository: Repository, scheme: str
) -> None:
    for path in [repository.folder, *repository.folder.rglob("*")]:
        os.chown(path, 65534, 65534)
    mirror = locate_mirror(tmp_path / "home", "snakes", f"{scheme}{repository.folder}", "main")
    mirror.fetch()
    assert newest_commit(mirror)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a mirror away")
def test_a_mirror_of_another_account_can_be_read(mirror: Mirror) -> None:
    for path in [mirror.folder, *mirror.folder.rglob("*")]:
        os.chown(path, 65534, 65534)
    assert newest_commit(mirror)


def test_a_worktree_without_a_commit_stops_no_fetch(mirror: Mirror, repository: Repository) -> None:
    unfinished = mirror.folder / "worktrees" / "killed"
    unfinished.mkdir(parents=True)
    (unfinished / "HEAD").write_text("0" * 40 + "\n")
    (unfinished / "gitdir").write_text("/nowhere/.git\n")
    (unfinished / "commondir").write_text("../..\n")
    added = repository.commit("One more", train_py="print(3)")
    mirror.fetch()
    assert newest_commit(mirror) == added


@pytest.mark.parametrize(
    "left",
    ["packed-refs.lock", "HEAD.lock", "config.lock", "refs/heads/main.lock", "objects/pack/tmp_pack_x"],
)
def test_what_a_killed_git_left_stops_no_fetch(mirror: Mirror, repository: Repository, left: str) -> None:
    (mirror.folder / left).write_text("")
    repository.git("branch", "-q", "doomed")
    added = repository.commit("One more", train_py="print(3)")
    mirror.fetch()
    repository.git("branch", "-q", "-D", "doomed")
    (mirror.folder / left).write_text("")
    mirror.fetch()
    assert newest_commit(mirror) == added
    assert mirror.branches() == ["main"]
    assert not (mirror.folder / left).exists()


@pytest.mark.parametrize(
    "spoilt", ["only objects", "empty HEAD", "no HEAD", "no refs", "empty configuration"]
)
def test_a_mirror_whose_making_was_interrupted_is_completed(
    tmp_path: Path, repository: Repository, spoilt: str
) -> None:
    mirror = locate_mirror(tmp_path / "home", "snakes", str(repository.folder), "main")
    if spoilt == "only objects":
        (mirror.folder / "objects").mkdir(parents=True)
    else:
        mirror.fetch()
    if spoilt == "empty HEAD":
        (mirror.folder / "HEAD").write_text("")
    elif spoilt == "no HEAD":
        (mirror.folder / "HEAD").unlink()
    elif spoilt == "no refs":
        (mirror.folder / "refs" / "heads" / "main").unlink()
        (mirror.folder / "refs").rename(mirror.folder / "moved")
    elif spoilt == "empty configuration":
        (mirror.folder / "config").write_text("")
    mirror.fetch()
    assert newest_commit(mirror) == repository.git("rev-parse", "HEAD")


def test_who_waits_too_long_is_told(mirror: Mirror) -> None:
    with mirror.folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(RepositoryBusy, match=r"The repository of snakes is being fetched already\."):
            mirror.fetch(patience=0.2)
        mirror.collect_garbage()


def test_a_stop_ends_a_fetch(mirror: Mirror) -> None:
    stop = threading.Event()
    stop.set()
    own = locate_mirror(mirror.folder.parent.parent, "snakes", mirror.repository, git=Git(stop))
    with pytest.raises(Stopped):
        own.fetch()


def test_another_address_has_a_mirror_of_its_own(tmp_path: Path) -> None:
    folders = {locate_mirror(tmp_path, "snakes", address).folder for address in ("/one", "/two")}
    assert len(folders) == 2


@pytest.mark.parametrize(("name", "safe"), [("gpu-1", "gpu-1"), ("../x", "___x"), ("", "_"), ("ä b", "__b")])
def test_a_name_is_one_component_of_a_path(name: str, safe: str) -> None:
    assert safe_name(name) == safe
