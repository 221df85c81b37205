"""git as a child process: limited, ended with all that it started, and told of nothing but what it needs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from dashboard.repositories import Git, GitError, RepositoryError, Stopped, git, hide_password
from dashboard.repositories.git import failure_reason

ROOT = Path(git.__file__).resolve().parent.parent.parent


def shell_alias(command: str) -> list[str]:
    return ["-c", f"alias.wait=!{command}", "wait"]


def is_running(*command: str) -> bool:
    lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return any(line[: len(command)] == list(command) for line in lines)


def wait_until_gone(*command: str) -> bool:
    until = time.monotonic() + 60
    while is_running(*command) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_running(*command)


def test_what_git_prints_is_returned_whole(tmp_path: Path) -> None:
    printed = Git().run(shell_alias("seq 1 300000 #"), folder=tmp_path)
    assert printed.endswith(b"\n299999\n300000\n")


def test_what_git_is_told_reaches_it_whole(tmp_path: Path) -> None:
    told = b"x" * 3_000_000
    assert Git().run(["hash-object", "--stdin"], folder=tmp_path, stdin=told) == Git().run(
        shell_alias("cat >all && git hash-object all #"), folder=tmp_path, stdin=told
    )


def test_a_git_that_reads_nothing_stops_nobody(tmp_path: Path) -> None:
    assert Git().run(["version"], folder=tmp_path, stdin=b"x" * 3_000_000).startswith(b"git version")


def test_a_failure_has_its_reason_and_its_status(tmp_path: Path) -> None:
    with pytest.raises(GitError, match=r"^git rev-parse failed: not a git repository[^\n]*\.$") as failed:
        Git().run(["rev-parse", "HEAD"], folder=tmp_path)
    assert failed.value.status == 128


def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match=r"git can't be started in .*none: No such file or directory"):
        Git().run(["version"], folder=tmp_path / "none")


def test_a_git_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match=r"git can't be started in .*: No such file or directory"):
        Git(variables={"PATH": str(tmp_path)}).run(["version"], folder=tmp_path)


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "MOST_BYTES", 1000)
    with pytest.raises(RepositoryError, match=r"git wait printed more than 1000 bytes\."):
        Git().run(shell_alias("yes"), folder=tmp_path)
    assert wait_until_gone("yes")


@pytest.mark.parametrize("command", ["sleep 3601", "sh -c 'trap \"\" TERM; sleep 3601; sleep 3601' #"])
def test_git_is_ended_with_all_that_it_started(tmp_path: Path, command: str) -> None:
    with pytest.raises(RepositoryError, match=r"git wait took longer than 0\.3 seconds\."):
        Git().run(shell_alias(command), folder=tmp_path, time_limit=0.3)
    assert wait_until_gone("sleep", "3601")


def test_what_goes_on_in_the_background_is_ended(tmp_path: Path) -> None:
    Git().run(shell_alias("(sleep 300; touch slept) & true"), folder=tmp_path)
    assert wait_until_gone("sleep", "300")
    assert not (tmp_path / "slept").exists()


def test_a_pipe_that_somebody_keeps_open_holds_nobody_up(tmp_path: Path) -> None:
    keep = "setsid sh -c 'echo $$ > keeper; exec sleep 303'"
    command = f"{keep} & until [ -s keeper ]; do sleep 0.05; done; echo done #"
    assert Git().run(shell_alias(command), folder=tmp_path) == b"done\n"
    keeper = psutil.Process(int((tmp_path / "keeper").read_text()))
    assert keeper.is_running()
    keeper.kill()


def test_a_stop_ends_git_at_once(tmp_path: Path) -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    with pytest.raises(Stopped):
        Git(stop).run(shell_alias("sleep 302; touch slept #"), folder=tmp_path)
    assert wait_until_gone("sleep", "302")
    assert not (tmp_path / "slept").exists()


@pytest.mark.parametrize("without_setpriv", ["", "child._tying_launcher = tuple\n"])
def test_git_does_not_outlive_who_started_it(tmp_path: Path, without_setpriv: str) -> None:
    code = (
        "from pathlib import Path\nfrom dashboard.repositories import Git, child\n"
        f"{without_setpriv}"
        "alias = ['-c', 'alias.wait=!touch started; exec sleep 3604', 'wait']\n"
        f"Git().run(alias, folder=Path({str(tmp_path)!r}))"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    until = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(starter.pid, signal.SIGKILL)
    starter.wait()
    assert wait_until_gone("sleep", "3604")


def test_git_sees_nothing_of_its_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_CONFIG_PARAMETERS", "GIT_EXEC_PATH", "DATABASE_URL", "GIT_EDITOR"):
        monkeypatch.setenv(name, "astray")
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    printed = Git().run(shell_alias("env"), folder=tmp_path).decode()
    assert "astray" not in printed
    assert "https_proxy=http://proxy:3128" in printed
    assert "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh" in printed


@pytest.mark.parametrize(
    "said",
    [
        "unable to look up ann:S@CRET@host",
        "repository 'https://ann:SECRET@host/r.git' not found",
        "could not read Password for 'https://SECRET@host'",
    ],
)
def test_no_reason_holds_a_password(said: str) -> None:
    hidden = hide_password(said)
    assert "CRET" not in hidden
    assert "host" in hidden


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [
        ("warning: x\nfatal: bad object 1\nfatal: another\n", "bad object 1"),
        (
            "git@host: Permission denied.\nfatal: Could not read from remote repository.\n",
            "git@host: Permission denied",
        ),
        (
            "fatal: unable to access 'https://u:SEC@RET@host/x.git/': no",
            "unable to access 'https://host/x.git/': no",
        ),
        ("\n", "it gave no reason"),
    ],
)
def test_the_reason_is_the_line_that_says_why(complaint: str, reason: str) -> None:
    assert failure_reason(complaint) == reason
