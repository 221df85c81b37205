"""Small git repositories to measure."""

from __future__ import annotations

import subprocess
from pathlib import Path

IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


def run_git(folder: Path, *arguments: str) -> str:
    command = ["git", *IDENTITY, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def create_repository(folder: Path, files: dict[str, str]) -> Path:
    """A repository with one commit on `main`."""
    folder.mkdir(parents=True)
    run_git(folder, "init", "--quiet", "--initial-branch=main")
    commit_files(folder, files)
    return folder


def commit_files(folder: Path, files: dict[str, str]) -> str:
    """Write the files and commit them; the commit's hash."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--allow-empty", "--message", "Change it")
    return head_commit(folder)


def head_commit(folder: Path) -> str:
    return run_git(folder, "rev-parse", "HEAD")
