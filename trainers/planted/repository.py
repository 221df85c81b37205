"""Writes a list of trees as the commits of a new git repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from .calibration import write
from .edits import Tree

AUTHOR = "Robin Trainer"
ADDRESS = "robin@snake.example"
FIRST_DATE = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


class RepositoryError(Exception):
    """The repository can't be made; the message is one sentence."""


def claim(folder: Path) -> None:
    """Make the repository's folder; raises RepositoryError where one is that isn't empty."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except OSError as error:
        raise RepositoryError(f"--repository {folder} can't be made: {error.strerror}") from error
    if taken:
        raise RepositoryError(f"--repository {folder} is there already and isn't empty")


def create(folder: Path, history: Iterable[tuple[str, Tree]]) -> list[str]:
    """Make a repository whose branch main holds one commit per (subject, tree); return their hashes."""
    claim(folder)
    try:
        _git(folder, FIRST_DATE, "init", "--quiet", "--initial-branch=main", ".")
        return [_commit(folder, number, *entry) for number, entry in enumerate(history)]
    except OSError as error:
        raise RepositoryError(f"{folder} can't be written: {error.strerror}") from error


def _commit(folder: Path, number: int, subject: str, tree: Tree) -> str:
    date = FIRST_DATE + timedelta(days=number, minutes=97 * (number % 4))
    write(tree, folder)
    _git(folder, date, "add", "--all")
    _git(folder, date, "commit", "--quiet", "--message", subject)
    return _git(folder, date, "rev-parse", "HEAD").strip()


def _git(folder: Path, date: datetime, *arguments: str) -> str:
    identity = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", AUTHOR), ("EMAIL", ADDRESS), ("DATE", date.isoformat()))
    }
    # Nobody's own configuration: no signing, no hooks, no template.
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), **identity, **quiet},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RepositoryError(
            f"git {arguments[0]} failed in {folder}: {done.stderr.strip() or done.returncode}"
        )
    return done.stdout
