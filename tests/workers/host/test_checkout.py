from __future__ import annotations

import hashlib
import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboard.repositories import Git, locate_mirror, try_lock
from tests.workers.repositories import commit_files, create_repository, head_commit, run_git
from workers.host.checkout import worktree
from workers.host.checkout.worktree import Checkouts, Worktree
from workers.host.errors import CheckoutError, Stopped


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return create_repository(tmp_path / "source", {"train.py": "one", "old.py": "old"})


@dataclass(frozen=True)
class LocalRepository:
    """Stands for the site: its repository is a folder, or whatever address is given."""

    address: str

    def bring_commit(self, project: str, commit: str) -> None:
        """It has what it has."""

    def repository_address(self, _project: str) -> str:
        return self.address


@pytest.fixture
def checkouts(tmp_path: Path) -> Checkouts:
    return Checkouts(tmp_path / "home", "gpu-1")


def mirror_folder(checkouts: Checkouts) -> Path:
    return locate_mirror(checkouts.home, "demo", "").folder


def test_exactly_the_files_of_the_commit_are_there(source: Path, checkouts: Checkouts) -> None:
    folder = checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    assert {path.name for path in folder.iterdir()} == {".git", "train.py", "old.py"}


def test_the_worktree_is_used_again_and_cleaned(source: Path, checkouts: Checkouts) -> None:
    folder = checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    (folder / "train.py").write_text("spoilt")
    (folder / "left").mkdir()
    (folder / "left" / "over.pyc").write_text("")
    (source / "old.py").unlink()
    newer = commit_files(source, {".gitignore": "*.pyc", "train.py": "two"})
    assert checkouts.prepare(LocalRepository(str(source)), "demo", newer) == folder
    assert {path.name for path in folder.iterdir()} == {".git", ".gitignore", "train.py"}
    assert (folder / "train.py").read_text() == "two"


def test_a_repository_made_inside_the_worktree_is_removed(source: Path, checkouts: Checkouts) -> None:
    folder = checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    create_repository(folder / "inner", {"a": "b"})
    checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    assert not (folder / "inner").exists()


def test_a_commit_that_the_mirror_has_needs_no_repository(source: Path, checkouts: Checkouts) -> None:
    wanted = head_commit(source)
    checkouts.prepare(LocalRepository(str(source)), "demo", wanted)
    shutil.rmtree(source)
    assert (checkouts.prepare(LocalRepository(str(source)), "demo", wanted) / "train.py").exists()


@pytest.mark.parametrize("spoil", ["git file", "index lock", "mirror's record"])
def test_a_broken_worktree_is_rebuilt(source: Path, checkouts: Checkouts, spoil: str) -> None:
    folder = checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    record = mirror_folder(checkouts) / "worktrees" / folder.name
    if spoil == "git file":
        (folder / ".git").write_text("nonsense")
    elif spoil == "index lock":
        (record / "index.lock").write_text("")
    else:
        shutil.rmtree(record)
    assert (
        checkouts.prepare(LocalRepository(str(source)), "demo", commit_files(source, {"train.py": "two"}))
        == folder
    )
    assert (folder / "train.py").read_text() == "two"


def test_a_worktree_whose_making_was_killed_stops_no_fetch(source: Path, checkouts: Checkouts) -> None:
    folder = checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    record = mirror_folder(checkouts) / "worktrees" / folder.name
    (record / "HEAD").write_text("0" * 40 + "\n")
    newer = commit_files(source, {"train.py": "two"})
    assert (checkouts.prepare(LocalRepository(str(source)), "demo", newer) / "train.py").read_text() == "two"


def test_a_worktree_is_made_while_nobody_fetches(
    source: Path, checkouts: Checkouts, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = mirror_folder(checkouts).with_suffix(".lock")
    rebuild, held = Worktree.rebuild, []

    def watched(worktree: Worktree, sha: str) -> None:
        with try_lock(lock) as descriptor:
            held.append(descriptor is None)
        rebuild(worktree, sha)

    monkeypatch.setattr(Worktree, "rebuild", watched)
    checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    assert held == [True]


def test_a_mirror_that_was_interrupted_is_made_anew(source: Path, checkouts: Checkouts) -> None:
    mirror = mirror_folder(checkouts)
    (mirror / "objects").mkdir(parents=True)
    assert checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source)).is_dir()


def test_a_commit_that_does_not_exist_is_told(source: Path, checkouts: Checkouts) -> None:
    with pytest.raises(CheckoutError, match=r"can't be fetched: .* not our ref aaaaaaaaaa"):
        checkouts.prepare(LocalRepository(str(source)), "demo", "a" * 40)


def test_a_repository_that_does_not_exist_is_told(tmp_path: Path, checkouts: Checkouts) -> None:
    with pytest.raises(CheckoutError, match=r"none can't be fetched: git fetch failed: .* does not appear"):
        checkouts.prepare(LocalRepository(str(tmp_path / "none")), "demo", "a" * 40)


@pytest.mark.parametrize("commit", ["main", "--upload-pack=x", "A" * 40, "a" * 39, "a" * 41, ""])
def test_only_the_full_hash_of_a_commit_is_taken(checkouts: Checkouts, commit: str) -> None:
    with pytest.raises(CheckoutError, match="not the full hash"):
        checkouts.prepare(LocalRepository("/nowhere"), "demo", commit)


def test_an_address_that_runs_a_command_is_refused(tmp_path: Path, checkouts: Checkouts) -> None:
    with pytest.raises(CheckoutError, match="can't be fetched: git fetch failed"):
        checkouts.prepare(LocalRepository(f"ext::sh -c 'touch {tmp_path}/ran'"), "demo", "a" * 40)
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_repository_of_somebody_else_is_fetched(source: Path, checkouts: Checkouts) -> None:
    wanted = head_commit(source)
    for path in (source, *source.rglob("*")):
        os.chown(path, 12345, 12345)
    assert checkouts.prepare(LocalRepository(str(source)), "demo", wanted).is_dir()


def test_hooks_do_not_run(source: Path, checkouts: Checkouts, tmp_path: Path) -> None:
    checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    hook = mirror_folder(checkouts) / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    # Not in the worktree, which is cleaned afterwards.
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    checkouts.prepare(LocalRepository(str(source)), "demo", commit_files(source, {"train.py": "two"}))
    assert not (tmp_path / "ran").exists()


def test_no_filter_of_the_account_runs_for_a_commit(source: Path, tmp_path: Path) -> None:
    configuration = tmp_path / "config"
    configuration.write_text('[filter "lfs"]\n\tsmudge = echo filtered\n\trequired = true\n')
    wanted = commit_files(source, {".gitattributes": "train.py filter=lfs", "train.py": "two"})
    git = Git(variables={**os.environ, "GIT_CONFIG_GLOBAL": str(configuration)})
    checkouts = Checkouts(tmp_path / "home", "gpu-1", git)
    folder = checkouts.prepare(LocalRepository(str(source)), "demo", wanted)
    assert (folder / "train.py").read_text() == "two"


def test_git_of_a_hook_that_started_us_is_not_heard(
    source: Path, checkouts: Checkouts, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = head_commit(source)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    own = Checkouts(checkouts.home, "gpu-1")
    assert (own.prepare(LocalRepository(str(source)), "demo", wanted) / "train.py").exists()


def test_a_run_that_is_no_longer_ours_stops_git(source: Path, tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        Checkouts(tmp_path / "home", "gpu-1", Git(stop)).prepare(
            LocalRepository(str(source)), "demo", head_commit(source)
        )


@pytest.mark.parametrize("kind", ["other repository", "pipe", "folder", "bytes", "link"])
def test_what_was_measured_can_not_lead_git_astray(
    source: Path, checkouts: Checkouts, tmp_path: Path, kind: str
) -> None:
    folder = checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    evil = create_repository(tmp_path / "evil", {"train.py": "evil"})
    run_git(evil, "config", "core.fsmonitor", f"touch {tmp_path}/ran")
    link = folder / ".git"
    link.unlink()
    if kind == "other repository":
        link.write_text(f"gitdir: {evil}/.git\n")
    elif kind == "pipe":
        os.mkfifo(link)
    elif kind == "folder":
        shutil.copytree(evil / ".git", link)
    elif kind == "bytes":
        link.write_bytes(b"gitdir: \xff\0\xfe")
    else:
        link.symlink_to(evil / ".git")
    assert (
        checkouts.prepare(LocalRepository(str(source)), "demo", commit_files(source, {"train.py": "two"}))
        == folder
    )
    assert (folder / "train.py").read_text() == "two"
    assert run_git(folder, "rev-parse", "HEAD") == head_commit(source)
    assert not (tmp_path / "ran").exists()


def test_two_machines_and_two_sides_have_worktrees_of_their_own(source: Path, checkouts: Checkouts) -> None:
    other = Checkouts(checkouts.home, "gpu-2")
    older, newer = head_commit(source), commit_files(source, {"train.py": "two"})
    folders = [
        checkouts.prepare(LocalRepository(str(source)), "demo", older),
        other.prepare(LocalRepository(str(source)), "demo", newer),
        checkouts.prepare(LocalRepository(str(source)), "demo", newer, "-bad"),
        other.prepare(LocalRepository(str(source)), "demo", older, "-good"),
    ]
    assert [(folder / "train.py").read_text() for folder in folders] == ["one", "two", "two", "one"]
    assert checkouts.prepare(LocalRepository(str(source)), "demo", newer) == folders[0]
    assert (folders[0] / "train.py").read_text() == "two"


def test_a_home_behind_a_link_is_used_again(source: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    checkouts = Checkouts(tmp_path / "home", "gpu-1")
    folder = checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    (folder / ".gitignore").write_text("*")
    inode = folder.stat().st_ino
    assert checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source)).stat().st_ino == inode


def test_a_worker_keeps_what_a_force_push_left_behind(source: Path, checkouts: Checkouts) -> None:
    older = head_commit(source)
    checkouts.prepare(LocalRepository(str(source)), "demo", older)
    run_git(source, "commit", "--quiet", "--amend", "--message", "Other history")
    checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    mirror = locate_mirror(checkouts.home, "demo", "")
    mirror.run(["reflog", "expire", "--expire=now", "--all"])
    mirror.run(["gc", "--quiet"])
    assert (checkouts.prepare(LocalRepository(str(source)), "demo", older) / "old.py").exists()


def blob_hash(text: str) -> str:
    return hashlib.sha1(f"blob {len(text)}\0{text}".encode(), usedforsecurity=False).hexdigest()


def test_git_tidies_up_before_a_measurement_and_in_the_foreground(source: Path, checkouts: Checkouts) -> None:
    mirror = locate_mirror(checkouts.home, "demo", "")
    checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    mirror.run(["config", "gc.auto", "1"])
    # git guesses how many objects there are from those whose hash begins with 17.
    guessed_from = [text for text in map(str, range(1000)) if blob_hash(text).startswith("17")]
    for text in guessed_from:
        mirror.run(["hash-object", "-w", "--stdin"], stdin=text.encode())
    checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    assert list(mirror.folder.glob("objects/pack/*.pack"))
    assert not (mirror.folder / "gc.pid").exists()


def test_a_path_through_a_link_of_the_commit_is_refused(source: Path, checkouts: Checkouts) -> None:
    (source / "outside.py").symlink_to("/etc/hostname")
    folder = checkouts.prepare(LocalRepository(str(source)), "demo", commit_files(source, {}))
    with pytest.raises(CheckoutError, match=r"The script 'outside.py' leads out of the checkout"):
        worktree.find_inside(folder, "outside.py", "The script")


@pytest.mark.parametrize("name", ["../up.py", "/etc/hostname", "a/../../up.py"])
def test_a_path_out_of_the_checkout_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckoutError, match="leads out of the checkout"):
        worktree.find_inside(tmp_path, name, "The script")


@pytest.mark.parametrize("name", ["round", "a" * 300, "a\0b", "gone.py"])
def test_what_is_no_path_is_no_file_of_the_commit(tmp_path: Path, name: str) -> None:
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(CheckoutError, match="is not a file of this commit"):
        worktree.find_inside(tmp_path, name, "The script")


def test_the_manifest_of_the_commit_is_read(tmp_path: Path) -> None:
    (tmp_path / "paceline.toml").write_text("x = 1")
    assert worktree.place_manifest(tmp_path, None) == "x = 1"


def test_a_commit_without_a_manifest_is_told(tmp_path: Path) -> None:
    with pytest.raises(CheckoutError, match=r"The manifest 'paceline.toml' is not a file of this commit"):
        worktree.place_manifest(tmp_path, None)


def test_the_servers_manifest_never_writes_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "paceline.toml").symlink_to(target)
    worktree.place_manifest(tmp_path / "checkout", "x = 1")
    assert target.read_text() == "precious"
    assert (tmp_path / "checkout" / "paceline.toml").read_text() == "x = 1"


def test_kept_files_are_placed_inside_the_checkout_alone(tmp_path: Path) -> None:
    for name in ("outside", "checkout"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside" / "old.txt").write_text("precious")
    top = tmp_path / "checkout"
    (top / "link.txt").symlink_to(tmp_path / "outside" / "old.txt")
    (top / "folder").symlink_to(tmp_path / "outside")
    worktree.place_files(top, {"link.txt": "new", "bench/train.py": "print()"})
    assert ((top / "link.txt").read_text(), (top / "bench/train.py").read_text()) == ("new", "print()")
    for name in ("folder/new.txt", "../new.txt", "bench", "link.txt/x", ".git/config"):
        with pytest.raises(CheckoutError, match="The kept file"):
            worktree.place_files(top, {name: "new"})
    assert [(path.name, path.read_text()) for path in (tmp_path / "outside").iterdir()] == [
        ("old.txt", "precious")
    ]


def test_a_branch_with_another_history_can_still_be_fetched(source: Path, checkouts: Checkouts) -> None:
    checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source))
    run_git(source, "commit", "--quiet", "--amend", "--message", "Other history")
    assert checkouts.prepare(LocalRepository(str(source)), "demo", head_commit(source)).is_dir()


def test_a_password_in_an_address_is_not_told(checkouts: Checkouts) -> None:
    with pytest.raises(CheckoutError, match=r"git://localhost:1/x\.git can't be fetched: .*") as caught:
        checkouts.prepare(LocalRepository("git://user:SEC@RET@localhost:1/x.git"), "demo", "a" * 40)
    assert "RET" not in str(caught.value)
