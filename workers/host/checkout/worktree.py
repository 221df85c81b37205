"""The code of a commit in a folder: one worktree of the project's mirror, which is used again and again.

A new worktree per commit of a large repository costs seconds, a checkout in an old one hundredths.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from paceline.manifest import FILE_NAME, read_manifest

from dashboard.repositories import (
    FULL_HASH,
    Git,
    GitError,
    Mirror,
    RepositoryError,
    Unreachable,
    locate_mirror,
    safe_name,
)
from workers.host.checkout.placing import open_place
from workers.host.errors import CheckoutError
from workers.host.site_api.outages import ask_site

# Whoever measures waits for a fetch that is under way.
PATIENCE_SECONDS = 900
FETCHES = 3
FETCH_PAUSE_SECONDS = 1
CHECKOUT_SECONDS = 900
# A checkout asks no remote: without the configuration of the account and the machine no filter that the
# commit's .gitattributes names runs as this account, nor does a setting change line ends.
NO_FILTERS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
MOST_TEXT_BYTES = 1024 * 1024
LONGEST_SHOWN = 300
MOST_LINK_BYTES = 8192


class CommitServer(Protocol):
    """The site, from where commits come."""

    def bring_commit(self, project: str, commit: str) -> None: ...

    def repository_address(self, project: str) -> str: ...


@dataclass(frozen=True)
class Worktree:
    """A folder with files of a mirror's commits."""

    mirror: Mirror
    folder: Path

    def check_out(self, commit: str) -> None:
        """Bring the folder to the commit, and remove whatever else lies in it; GitError where that fails."""
        self._run("checkout", "--quiet", "--force", "--detach", commit, "--")
        # Twice -f: also repositories that were made inside the worktree.
        self._run("clean", "-ffdxq")

    def rebuild(self, commit: str) -> None:
        """The worktree anew, still without files. Hold the mirror: one that is being made stops a fetch."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.mirror.run(["worktree", "prune"])
        self.mirror.run(
            ["worktree", "add", "--quiet", "--force", "--no-checkout", "--detach", str(self.folder), commit]
        )

    def mark_used(self) -> None:
        """Note when it was last used, where what is measured in it can't write."""
        if record := self.record():
            os.utime(record)

    def record(self) -> Path | None:
        """Where the mirror keeps the worktree's state; None where the two don't know each other."""
        link = self.folder / ".git"
        for record in self.mirror.folder.glob("worktrees/*"):
            if _follow_link(record / "gitdir") == link and _follow_link(link, "gitdir: ") == record:
                return record
        return None

    def _run(self, *arguments: str) -> None:
        record = self.record()
        if record is None:
            raise GitError("There is no worktree yet.", 128)
        # Named, since what was measured here may have written another one into the folder.
        variables = {
            **self.mirror.variables,
            "GIT_DIR": str(record),
            "GIT_WORK_TREE": str(self.folder),
            **NO_FILTERS,
        }
        self.mirror.git.run(arguments, folder=self.folder, variables=variables, time_limit=CHECKOUT_SECONDS)


def _follow_link(file: Path, prefix: str = "") -> Path | None:
    """The path that git wrote into a file; None where nothing of the kind stands there."""
    # What was measured may have put anything in its place, a pipe too.
    if not file.is_file():
        return None
    with file.open("rb") as opened:
        text = os.fsdecode(opened.read(MOST_LINK_BYTES)).strip()
    if not text.startswith(prefix) or "\0" in text:
        return None
    return (file.parent / text.removeprefix(prefix)).resolve()


@dataclass(frozen=True)
class Checkouts:
    """Mirrors and worktrees under a home. One run at a time per machine uses its worktrees."""

    home: Path
    machine: str
    git: Git = field(default_factory=Git)

    def prepare(self, site: CommitServer, project: str, commit: str, folder_suffix: str = "") -> Path:
        """A folder with exactly the files of the commit; CheckoutError says why not, SiteAway: not now.

        Folders of other suffixes exist at the same time.
        """
        if not FULL_HASH.fullmatch(commit):
            raise CheckoutError(f"{commit[:80]!r} is not the full hash of a commit.")
        # One mirror per project, wherever its site and its repository move.
        mirror = locate_mirror(self.home, project, "", git=self.git)
        mirror = replace(mirror, repository=site.repository_address(project))
        worktree = self.worktree(mirror, folder_suffix)
        if mirror.folder.is_dir():
            # First, so that who removes mirrors long unused leaves this one.
            os.utime(mirror.folder)
        try:
            bring_commit(site, mirror, commit)
            try:
                worktree.check_out(commit)
            except GitError:
                # Interrupted, or spoilt by what was measured in it.
                with mirror.locked(PATIENCE_SECONDS):
                    worktree.rebuild(commit)
                worktree.check_out(commit)
        except RepositoryError as error:
            raise CheckoutError(str(error)) from error
        worktree.mark_used()
        return worktree.folder

    def tree(self, project: str, commit: str) -> str:
        """The hash of all files of a commit that has been checked out."""
        mirror = locate_mirror(self.home, project, "", git=self.git)
        try:
            return mirror.run(["rev-parse", f"{commit}^{{tree}}"]).decode().strip()
        except RepositoryError as error:
            raise CheckoutError(str(error)) from error

    def worktree(self, mirror: Mirror, folder_suffix: str = "") -> Worktree:
        folder = self.home / "worktrees" / safe_name(self.machine) / f"{mirror.folder.stem}{folder_suffix}"
        return Worktree(mirror, folder.resolve())


def bring_commit(site: CommitServer, mirror: Mirror, commit: str) -> None:
    """Have the commit in the mirror, with as little work as that takes."""
    tries = 0
    while not mirror.has_commit(commit):
        ask_site(lambda: site.bring_commit(mirror.project, commit), mirror.git.stop)
        tries += 1
        try:
            mirror.fetch_commit(commit, PATIENCE_SECONDS)
        except Unreachable:
            # The site may have gone away meanwhile: then it is waited for.
            if tries == FETCHES or mirror.git.stop.wait(FETCH_PAUSE_SECONDS):
                raise
    # Here, where the machine is ours and nothing is measured.
    mirror.collect_garbage()


def place_manifest(checkout: Path, kept_by_server: str | None) -> str:
    """The manifest's text, which lies in the checkout afterwards wherever it came from; ManifestError."""
    if kept_by_server is None:
        return read_manifest(find_inside(checkout, FILE_NAME, "The manifest"), FILE_NAME)
    path = checkout / FILE_NAME
    # Removed first: writing through a link of the commit would change what it leads to.
    path.unlink(missing_ok=True)
    path.write_text(kept_by_server)
    return kept_by_server


def place_files(checkout: Path, files: Mapping[str, str]) -> None:
    """Put the files that the site keeps into the checkout, before the commit's own of the same names."""
    for name, text in files.items():
        open_place(checkout, name, "The kept file").write_text(text)


def find_inside(checkout: Path, name: str, what: str) -> Path:
    """The file `name` of the checkout; refused where a link or `..` leads out of it."""
    try:
        path = (checkout / name).resolve()
        is_inside, is_file = path.is_relative_to(checkout.resolve()), path.is_file()
    except (OSError, ValueError, RuntimeError):
        # Too long for a path, or with a NUL in it, or links that lead in a circle.
        is_inside, is_file = True, False
    if not is_inside:
        raise CheckoutError(f"{what} {name[:LONGEST_SHOWN]!r} leads out of the checkout.")
    if not is_file:
        raise CheckoutError(f"{what} {name[:LONGEST_SHOWN]!r} is not a file of this commit.")
    return path


def read_text_inside(checkout: Path, name: str, what: str) -> str:
    """What stands in a file of the checkout: text of a sensible size."""
    with find_inside(checkout, name, what).open("rb") as file:
        data = file.read(MOST_TEXT_BYTES + 1)
    if len(data) > MOST_TEXT_BYTES:
        raise CheckoutError(f"{what} {name!r} is larger than {MOST_TEXT_BYTES} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CheckoutError(f"{what} {name!r} is not UTF-8 text.") from error
