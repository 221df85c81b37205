"""Writes trees as the commits of a new git repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from .calibration import write_tree
from .edits import Tree

AUTHOR = "Robin Trainer"
ADDRESS = "robin@snake.example"
FIRST_DATE = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
MAIN = "main"


class RepositoryError(Exception):
    """The repository can't be made; the message is one sentence."""


def claim_folder(folder: Path) -> None:
    """Make the repository's folder; raises RepositoryError where one is that isn't empty."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except OSError as error:
        raise RepositoryError(f"--repository {folder} can't be made: {error.strerror}") from error
    if taken:
        raise RepositoryError(f"--repository {folder} is there already and isn't empty")


def create_repository(folder: Path, history: Iterable[tuple[str, Tree]]) -> list[str]:
    """Make a repository whose branch main holds one commit per (subject, tree); return their hashes."""
    repository = Repository(folder)
    return [repository.commit(subject, tree) for subject, tree in history]


class Repository:
    """A new repository in a folder, whose commits get a day each."""

    def __init__(self, folder: Path) -> None:
        claim_folder(folder)
        self.folder = folder
        self.number = 0
        self.git("init", "--quiet", f"--initial-branch={MAIN}", ".")

    def commit(self, subject: str, tree: Tree) -> str:
        """Commit a tree to the branch that is checked out; return the hash."""
        try:
            write_tree(tree, self.folder)
        except OSError as error:
            raise RepositoryError(f"{self.folder} can't be written: {error.strerror}") from error
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", subject)
        return self.ended()

    def branch(self, name: str) -> None:
        """Start a branch where the history is now."""
        self.git("checkout", "--quiet", "-b", name)

    def switch(self, name: str) -> None:
        self.git("checkout", "--quiet", name)

    def merge(self, name: str) -> str:
        """Merge a branch into main by a commit of its own; return the hash."""
        self.switch(MAIN)
        self.git("merge", "--quiet", "--no-ff", "--message", f"Merge branch '{name}'", name)
        return self.ended()

    def ended(self) -> str:
        """The hash of the commit that was made; the next one is of the next day."""
        self.number += 1
        return self.git("rev-parse", "HEAD").strip()

    def git(self, *arguments: str) -> str:
        """What git answers; raises RepositoryError where it fails."""
        date = FIRST_DATE + timedelta(days=self.number, minutes=97 * (self.number % 4))
        identity = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", AUTHOR), ("EMAIL", ADDRESS), ("DATE", date.isoformat()))
        }
        # Nobody's own configuration: no signing, no hooks, no template.
        quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        try:
            done = subprocess.run(
                ["git", "-C", str(self.folder), *arguments],
                env={
                    "PATH": os.environ.get("PATH", os.defpath),
                    "HOME": str(self.folder),
                    **identity,
                    **quiet,
                },
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            raise RepositoryError(f"git can't be run: {error.strerror}") from error
        if done.returncode:
            reason = done.stderr.strip() or done.returncode
            raise RepositoryError(f"git {arguments[0]} failed in {self.folder}: {reason}")
        return done.stdout
