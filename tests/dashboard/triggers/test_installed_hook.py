"""The hook as git runs it, against a real server: needs git, openssl and curl."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from dashboard import runs
from dashboard.models import Project, Run, Trigger
from dashboard.triggers.hook_installation import HookRefusedError, install_hooks
from tests.dashboard.conftest import Repository

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def site(live_server: LiveServer, settings: Any) -> None:
    settings.PACELINE_URL = live_server.url


def wait_for_triggers(count: int) -> list[Trigger]:
    """The triggers, once so many have come in: the hook works in the background."""
    deadline = time.monotonic() + 60
    while Trigger.objects.count() < count and time.monotonic() < deadline:
        time.sleep(0.05)
    return list(Trigger.objects.order_by("pk"))


def wait_for_answer(repository: Path) -> str:
    """What the last request was answered, once it has one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (answer := (repository / "paceline/last").read_text().strip()):
        time.sleep(0.05)
    return answer


def test_a_commit_becomes_runs(site: None, tracked: Project, repository: Repository) -> None:
    install_hooks(tracked, repository.folder)
    commit = repository.commit("Change", train_py="changed")
    (trigger,) = wait_for_triggers(1)
    assert (trigger.source, trigger.revisions) == ("hook", {"commit": commit})
    runs.resolve_trigger(trigger.pk)
    assert {run.commit.hash for run in Run.objects.all()} == {commit}


def test_two_commits_at_once_are_both_told(site: None, tracked: Project, repository: Repository) -> None:
    install_hooks(tracked, repository.folder)
    commits = {repository.commit("One", train_py="1"), repository.commit("Two", train_py="2")}
    assert {trigger.revisions["commit"] for trigger in wait_for_triggers(2)} == commits


def test_a_merge_is_told(site: None, tracked: Project, repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit("Topic", train_py="topic")
    repository.git("checkout", "-q", "main")
    install_hooks(tracked, repository.folder)
    repository.git("merge", "-q", "--squash", "topic")
    repository.git("reset", "-q", "--hard")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge", "topic")
    (trigger,) = wait_for_triggers(1)
    assert trigger.revisions == {"commit": repository.git("rev-parse", "HEAD")}


def test_a_rebase_and_an_amended_commit_are_told_once(
    site: None, tracked: Project, repository: Repository
) -> None:
    repository.git("branch", "other", "main~1")
    repository.git("checkout", "-q", "other")
    repository.commit("Other", other_py="other")
    repository.git("checkout", "-q", "main")
    install_hooks(tracked, repository.folder)
    repository.git("rebase", "-q", "other")
    rebased = repository.git("rev-parse", "HEAD")
    assert [trigger.revisions for trigger in wait_for_triggers(1)] == [{"commit": rebased}]
    repository.git("commit", "-q", "--amend", "--message", "Amended")
    amended = repository.git("rev-parse", "HEAD")
    wait_for_answer(repository.folder / ".git")
    assert [trigger.revisions["commit"] for trigger in wait_for_triggers(2)] == [rebased, amended]


def test_a_push_to_a_bare_repository_becomes_a_range(
    site: None, tracked: Project, repository: Repository, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repository.folder), str(bare)], check=True)
    assert [hook.name for hook in install_hooks(tracked, bare)] == ["post-receive"]
    before = repository.git("rev-parse", "HEAD")
    newest = [repository.commit(f"Change {number}", train_py=str(number)) for number in range(2)][-1]
    repository.git("push", "--quiet", str(bare), "main", "main:refs/heads/topic")
    (trigger,) = wait_for_triggers(1)
    assert trigger.revisions == {"range": f"{before}..{newest}"}


def test_a_new_branch_is_told_without_a_range(
    site: None, tracked: Project, repository: Repository, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(bare)], check=True)
    install_hooks(tracked, bare)
    repository.git("push", "--quiet", str(bare), "main")
    (trigger,) = wait_for_triggers(1)
    assert trigger.revisions == {"commit": repository.git("rev-parse", "main")}


def test_another_secret_is_refused(site: None, tracked: Project, repository: Repository) -> None:
    install_hooks(tracked, repository.folder)
    tracked.hook_secret = "changed since"
    tracked.save()
    repository.commit("Change", train_py="changed")
    assert "isn't that of this body" in wait_for_answer(repository.folder / ".git")
    assert not Trigger.objects.exists()


def test_a_long_secret_signs_as_well(site: None, tracked: Project, repository: Repository) -> None:
    tracked.hook_secret = "long " * 30
    tracked.save()
    install_hooks(tracked, repository.folder)
    repository.commit("Change", train_py="changed")
    assert len(wait_for_triggers(1)) == 1


def test_a_site_that_is_down_breaks_nothing(tracked: Project, repository: Repository, settings: Any) -> None:
    settings.PACELINE_URL = "http://127.0.0.1:1"
    install_hooks(tracked, repository.folder)
    assert repository.commit("Change", train_py="changed")


def test_a_site_that_does_not_answer_delays_nothing(
    tracked: Project, repository: Repository, settings: Any
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.PACELINE_URL = f"http://127.0.0.1:{silent.getsockname()[1]}"
        install_hooks(tracked, repository.folder)
        assert repository.commit("Change", train_py="changed")
        # The commit is there while the hook waits for its answer: what it gives up with isn't said yet.
        assert (repository.folder / ".git/paceline/last").read_text() == ""


def test_missing_tools_break_nothing(
    site: None, tracked: Project, repository: Repository, tmp_path: Path
) -> None:
    install_hooks(tracked, repository.folder)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh", "dirname"):
        (tools / name).symlink_to(shutil.which(name) or name)
    repository.git("commit", "--quiet", "--allow-empty", "--message", "Change", PATH=str(tools))
    assert (
        wait_for_answer(repository.folder / ".git") == "Paceline isn't notified: openssl is not on the PATH."
    )


def test_a_hook_that_was_there_runs_first(site: None, tracked: Project, repository: Repository) -> None:
    theirs = repository.folder / ".git/hooks/post-commit"
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text("#!/bin/sh\necho ran >>ran\n")
    theirs.chmod(0o755)
    install_hooks(tracked, repository.folder)
    install_hooks(tracked, repository.folder)
    repository.commit("Change", train_py="changed")
    assert (repository.folder / "ran").read_text() == "ran\n"
    assert len(wait_for_triggers(1)) == 1


def test_a_hook_that_was_there_gets_its_input(
    site: None, tracked: Project, repository: Repository, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repository.folder), str(bare)], check=True)
    theirs = bare / "hooks/post-receive"
    theirs.write_text(f"#!/bin/sh\ncat >{tmp_path}/got\n")
    theirs.chmod(0o755)
    install_hooks(tracked, bare)
    commit = repository.commit("Change", train_py="changed")
    repository.git("push", "--quiet", str(bare), "main")
    assert (tmp_path / "got").read_text().split()[1:] == [commit, "refs/heads/main"]


def test_the_key_is_readable_by_its_owner_alone(tracked: Project, repository: Repository) -> None:
    install_hooks(tracked, repository.folder)
    ours = repository.folder / ".git/paceline"
    assert {stat.S_IMODE((ours / name).stat().st_mode) for name in ("inner", "outer")} == {0o600}
    assert {path.name for path in ours.iterdir()} >= {"inner", "outer", "notify"}
    assert all(b"a secret" not in path.read_bytes() for path in ours.iterdir())


def test_a_project_without_a_secret_gets_one(tracked: Project, repository: Repository) -> None:
    Project.objects.update(hook_secret="")
    tracked.refresh_from_db()
    install_hooks(tracked, repository.folder)
    tracked.refresh_from_db()
    assert len(tracked.hook_secret) > 40


def test_shared_hooks_are_left_alone(tracked: Project, repository: Repository, tmp_path: Path) -> None:
    repository.git("config", "core.hooksPath", str(tmp_path / "everybody"))
    with pytest.raises(HookRefusedError, match=r"core\.hooksPath is"):
        install_hooks(tracked, repository.folder)


def test_two_foreign_hooks_are_refused(tracked: Project, repository: Repository) -> None:
    for name in ("post-commit", "post-rewrite", "post-rewrite.before-paceline"):
        path = repository.folder / ".git/hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
    with pytest.raises(HookRefusedError, match="remove one of them"):
        install_hooks(tracked, repository.folder)
    assert not (repository.folder / ".git/hooks/post-commit.before-paceline").exists()


def test_what_is_no_repository_is_refused(tracked: Project, tmp_path: Path) -> None:
    with pytest.raises(HookRefusedError, match="is not a git repository"):
        install_hooks(tracked, tmp_path)
    with pytest.raises(HookRefusedError, match="is not a folder on this machine"):
        install_hooks(tracked, tmp_path / "nowhere")


def test_the_repositorys_owner_owns_what_root_installs(tracked: Project, repository: Repository) -> None:
    owner = repository.folder / ".git"
    if os.getuid() == 0:
        os.chown(owner, 65534, 65534)
    hooks = install_hooks(tracked, repository.folder)
    for path in (*hooks, owner / "paceline", owner / "paceline/inner"):
        assert path.stat().st_uid == owner.stat().st_uid
