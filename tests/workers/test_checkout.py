from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from tests.workers.repositories import commit, git, head, repository
from workers import checkout, locks
from workers.checkout import Checkouts
from workers.errors import CheckoutError, Stopped
from workers.git import Git, reason


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return repository(tmp_path / "source", {"train.py": "one", "old.py": "old"})


@pytest.fixture
def checkouts(tmp_path: Path) -> Checkouts:
    return Checkouts(tmp_path / "home", "gpu-1", Git(tmp_path / "home"))


def test_exactly_the_files_of_the_commit_are_there(source: Path, checkouts: Checkouts) -> None:
    folder = checkouts.prepare("demo", str(source), head(source))
    assert {path.name for path in folder.iterdir()} == {".git", "train.py", "old.py"}


def test_the_worktree_is_used_again_and_cleaned(source: Path, checkouts: Checkouts) -> None:
    folder = checkouts.prepare("demo", str(source), head(source))
    (folder / "train.py").write_text("spoilt")
    (folder / "left").mkdir()
    (folder / "left" / "over.pyc").write_text("")
    (source / "old.py").unlink()
    newer = commit(source, {".gitignore": "*.pyc", "train.py": "two"})
    assert checkouts.prepare("demo", str(source), newer) == folder
    assert {path.name for path in folder.iterdir()} == {".git", ".gitignore", "train.py"}
    assert (folder / "train.py").read_text() == "two"


def test_a_repository_made_inside_the_worktree_is_removed(source: Path, checkouts: Checkouts) -> None:
    folder = checkouts.prepare("demo", str(source), head(source))
    repository(folder / "inner", {"a": "b"})
    checkouts.prepare("demo", str(source), head(source))
    assert not (folder / "inner").exists()


def test_a_commit_that_the_mirror_has_needs_no_repository(source: Path, checkouts: Checkouts) -> None:
    wanted = head(source)
    checkouts.prepare("demo", str(source), wanted)
    shutil.rmtree(source)
    assert (checkouts.prepare("demo", str(source), wanted) / "train.py").exists()


@pytest.mark.parametrize("spoil", ["git file", "index lock", "mirror's record"])
def test_a_broken_worktree_is_rebuilt(source: Path, checkouts: Checkouts, spoil: str) -> None:
    folder = checkouts.prepare("demo", str(source), head(source))
    record = checkouts.mirror("demo", str(source)) / "worktrees" / folder.name
    if spoil == "git file":
        (folder / ".git").write_text("nonsense")
    elif spoil == "index lock":
        (record / "index.lock").write_text("")
    else:
        shutil.rmtree(record)
    assert checkouts.prepare("demo", str(source), commit(source, {"train.py": "two"})) == folder
    assert (folder / "train.py").read_text() == "two"


def test_a_worktree_whose_making_was_killed_stops_no_fetch(source: Path, checkouts: Checkouts) -> None:
    folder = checkouts.prepare("demo", str(source), head(source))
    record = checkouts.mirror("demo", str(source)) / "worktrees" / folder.name
    (record / "HEAD").write_text("0" * 40 + "\n")
    newer = commit(source, {"train.py": "two"})
    assert (checkouts.prepare("demo", str(source), newer) / "train.py").read_text() == "two"


def test_a_worktree_is_made_while_nobody_fetches(
    source: Path, checkouts: Checkouts, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = checkouts.mirror("demo", str(source)).with_suffix(".lock")
    rebuild, held = checkouts.rebuild, []

    def watched(mirror: Path, folder: Path, sha: str) -> None:
        with locks.attempt(lock) as taken:
            held.append(taken is None)
        rebuild(mirror, folder, sha)

    monkeypatch.setattr(Checkouts, "rebuild", lambda _self, *given: watched(*given))
    checkouts.prepare("demo", str(source), head(source))
    assert held == [True]


def test_a_mirror_that_was_interrupted_is_made_anew(source: Path, checkouts: Checkouts) -> None:
    mirror = checkouts.mirror("demo", str(source))
    (mirror / "objects").mkdir(parents=True)
    assert checkouts.prepare("demo", str(source), head(source)).is_dir()


def test_a_commit_that_does_not_exist_is_told(source: Path, checkouts: Checkouts) -> None:
    with pytest.raises(CheckoutError, match="Commit aaaaaaaaaa is on no branch or tag of the repository"):
        checkouts.prepare("demo", str(source), "a" * 40)


def test_a_repository_that_does_not_exist_is_told(tmp_path: Path, checkouts: Checkouts) -> None:
    with pytest.raises(CheckoutError, match=r"git fetch failed: .*none.* does not appear to be a git"):
        checkouts.prepare("demo", str(tmp_path / "none"), "a" * 40)


@pytest.mark.parametrize("commit", ["main", "--upload-pack=x", "A" * 40, "a" * 39, "a" * 41, ""])
def test_only_the_full_hash_of_a_commit_is_taken(checkouts: Checkouts, commit: str) -> None:
    with pytest.raises(CheckoutError, match="not the full hash"):
        checkouts.prepare("demo", "/nowhere", commit)


def test_an_address_that_runs_a_command_is_refused(tmp_path: Path, checkouts: Checkouts) -> None:
    with pytest.raises(CheckoutError, match="git fetch failed"):
        checkouts.prepare("demo", f"ext::sh -c 'touch {tmp_path}/ran'", "a" * 40)
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_repository_of_somebody_else_is_fetched(source: Path, checkouts: Checkouts) -> None:
    wanted = head(source)
    for path in (source, *source.rglob("*")):
        os.chown(path, 12345, 12345)
    assert checkouts.prepare("demo", str(source), wanted).is_dir()


def test_hooks_do_not_run(source: Path, checkouts: Checkouts) -> None:
    checkouts.prepare("demo", str(source), head(source))
    hook = checkouts.mirror("demo", str(source)) / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    folder = checkouts.prepare("demo", str(source), commit(source, {"train.py": "two"}))
    assert not (folder / "ran").exists()


def test_git_of_a_hook_that_started_us_is_not_heard(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert "GIT_DIR" not in Git(tmp_path / "home").environment()


def test_a_run_that_is_no_longer_ours_stops_git(source: Path, tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    slow = Git(tmp_path / "home", stop)
    with pytest.raises(Stopped):
        slow.run("-c", "alias.wait=!sleep 60", "wait", folder=source)


def test_git_has_a_time_limit(source: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckoutError, match=r"did not end within 0.1 s"):
        Git(tmp_path / "home").run("-c", "alias.wait=!sleep 60", "wait", folder=source, time_limit=0.1)


def test_a_path_through_a_link_of_the_commit_is_refused(source: Path, checkouts: Checkouts) -> None:
    (source / "outside.py").symlink_to("/etc/hostname")
    folder = checkouts.prepare("demo", str(source), commit(source, {}))
    with pytest.raises(CheckoutError, match=r"The script 'outside.py' leads out of the checkout"):
        checkout.inside(folder, "outside.py", "The script")


@pytest.mark.parametrize("name", ["../up.py", "/etc/hostname", "a/../../up.py"])
def test_a_path_out_of_the_checkout_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckoutError, match="leads out of the checkout"):
        checkout.inside(tmp_path, name, "The script")


def test_the_manifest_of_the_commit_is_read(tmp_path: Path) -> None:
    (tmp_path / "paceline.toml").write_text("x = 1")
    assert checkout.manifest(tmp_path, None) == "x = 1"


def test_a_commit_without_a_manifest_is_told(tmp_path: Path) -> None:
    with pytest.raises(CheckoutError, match=r"The manifest 'paceline.toml' is not a file of this commit"):
        checkout.manifest(tmp_path, None)


def test_the_servers_manifest_never_writes_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "paceline.toml").symlink_to(target)
    checkout.manifest(tmp_path / "checkout", "x = 1")
    assert target.read_text() == "precious"
    assert (tmp_path / "checkout" / "paceline.toml").read_text() == "x = 1"


def test_a_branch_that_was_forced_elsewhere_can_still_be_fetched(source: Path, checkouts: Checkouts) -> None:
    checkouts.prepare("demo", str(source), head(source))
    git(source, "commit", "--quiet", "--amend", "--message", "Other history")
    assert checkouts.prepare("demo", str(source), head(source)).is_dir()


@pytest.mark.parametrize("secret", ["SECRET", "SEC@RET"])
def test_a_password_in_an_address_is_not_told(tmp_path: Path, secret: str) -> None:
    with pytest.raises(CheckoutError, match=r"git ls-remote failed: .*") as caught:
        Git(tmp_path).run("ls-remote", f"git://user:{secret}@localhost:1/x.git", folder=tmp_path)
    assert "RET" not in str(caught.value)
    said = reason(f"fatal: unable to access 'https://user:{secret}@host/x.git/': no")
    assert said == "unable to access 'https://host/x.git/': no"
