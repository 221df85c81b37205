"""A project's repository as this host knows it: a bare mirror in PACELINE_HOME/mirrors."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from dashboard.models import Project
from dashboard.repositories import git
from dashboard.repositories.errors import RepositoryBusy, RepositoryError, Unreachable

# --no-auto-gc: nothing that git leaves behind may run beside a measurement.
FETCH = ("fetch", "--prune", "--force", "--no-write-fetch-head", "--quiet", "--no-auto-gc")
FETCH_SECONDS = 600
LOCK_SECONDS = 20
# Heads and tags only: what others propose (refs/pull/...) isn't fetched, so it can't be measured.
REFSPECS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


@dataclass(frozen=True)
class Mirror:
    slug: str
    repository: str
    branch: str
    folder: Path

    def fetch(self) -> None:
        """Bring the mirror up to date. Raises Unreachable, RepositoryBusy."""
        if not self.repository:
            raise Unreachable(f"{self.slug} has no repository, only an imported history.")
        with self._lock():
            self._prepare()
            try:
                git.run(
                    self.folder,
                    [*FETCH, "--", self.repository, *REFSPECS],
                    seconds=FETCH_SECONDS,
                    config=self._config,
                )
            except RepositoryError as error:
                where = git.hide_password(self.repository)
                raise Unreachable(f"{where} can't be fetched: {error}") from error

    def branches(self) -> list[str]:
        return git.lines(self.folder, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads")

    def _prepare(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write_config()
        except OSError as error:
            raise RepositoryError(f"{self.folder} can't be made: {error.strerror}.") from error
        if not (self.folder / "HEAD").exists():
            git.run(self.folder, ["init", "--quiet", "--bare"])
            # What a force-push left behind may have been measured: it can be looked at for ever.
            git.run(self.folder, ["config", "gc.pruneExpire", "never"])
        # A worker on this host may have been killed while it made a worktree: no fetch gets past one without
        # a commit. While the lock is held, nobody is making one.
        for head in self.folder.glob("worktrees/*/HEAD"):
            if not head.read_text().strip("0\n"):
                shutil.rmtree(head.parent)
        # HEAD is what people mean by it: the newest commit of the project's branch.
        git.run(self.folder, ["symbolic-ref", "HEAD", f"refs/heads/{self.branch}"])

    @property
    def _config(self) -> Path:
        return self.folder / "paceline-user-config"

    def _write_config(self) -> None:
        """The user's configuration, and trust in a local repository that belongs to another account.

        git refuses those; a repository that somebody registered here is one that is meant to be read.
        """
        own = [os.environ.get("GIT_CONFIG_GLOBAL") or "~/.gitconfig", "~/.config/git/config"]
        text = "".join(f"[include]\n\tpath = {_quoted(path)}\n" for path in own)
        if Path(self.repository).is_absolute():
            for path in (self.repository, f"{self.repository.rstrip('/')}/.git"):
                text += f"[safe]\n\tdirectory = {_quoted(path)}\n"
        self._config.write_text(text)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        path = self.folder.with_suffix(".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("w")
        except OSError as error:
            raise RepositoryError(f"{path} can't be opened: {error.strerror}.") from error
        with file:
            _take(file.fileno(), self.slug)
            yield


def mirror_of(project: Project) -> Mirror:
    # Keyed by the address too: what an earlier repository held isn't this one's.
    address = hashlib.sha256(project.repository.encode()).hexdigest()[:10]
    folder = settings.PACELINE_HOME / "mirrors" / f"{project.slug}-{address}.git"
    return Mirror(project.slug, project.repository, project.branch, folder)


def _take(descriptor: int, slug: str) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise RepositoryBusy(f"The repository of {slug} is being fetched already.") from None
            time.sleep(0.1)
        else:
            return


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
