"""The code of a commit in a folder: a mirror per project, and one worktree that is used again and again.

A new worktree per commit of a large repository costs seconds, a checkout in an old one hundredths.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from workers import locks
from workers.errors import CheckoutError
from workers.git import Git
from workers.machine import safe_name

HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
FETCH_SECONDS = 900
MANIFEST = "paceline.toml"
LARGEST_TEXT = 1024 * 1024


@dataclass(frozen=True)
class Checkouts:
    """Mirrors and worktrees under a home. One run at a time per machine uses its worktrees."""

    home: Path
    machine: str
    git: Git

    def prepare(self, project: str, repository: str, commit: str, beside: str = "") -> Path:
        """A folder with exactly the files of the commit; CheckoutError says why not.

        Folders of another `beside` exist at the same time.
        """
        if not HASH.fullmatch(commit):
            raise CheckoutError(f"{commit[:80]!r} is not the full hash of a commit.")
        mirror = self.mirror(project, repository)
        try:
            with locks.hold(mirror.with_suffix(".lock"), FETCH_SECONDS, self.git.stop):
                self.bring(mirror, repository, commit)
            folder = self.home / "worktrees" / safe_name(self.machine) / f"{mirror.stem}{beside}"
            try:
                self.renew(folder, commit)
            except CheckoutError:
                # Interrupted, or spoilt by what was measured in it. One that is being made has no commit at
                # first, and a fetch beside it would fail.
                with locks.hold(mirror.with_suffix(".lock"), FETCH_SECONDS, self.git.stop):
                    self.rebuild(mirror, folder, commit)
                self.renew(folder, commit)
        except TimeoutError as error:
            raise CheckoutError(f"The mirror of {project} is busy: {error}.") from error
        return folder

    def mirror(self, project: str, repository: str) -> Path:
        """Keyed by the address too: a project that moves gets a new mirror."""
        address = hashlib.sha256(repository.encode()).hexdigest()[:10]
        return self.home / "mirrors" / f"{safe_name(project)}-{address}.git"

    def bring(self, mirror: Path, repository: str, commit: str) -> None:
        """Have the commit in the mirror, with as little work as that takes."""
        if self.holds(mirror, commit):
            return
        if not self.usable(mirror):
            shutil.rmtree(mirror, ignore_errors=True)
            mirror.mkdir(parents=True)
            self.git.run("init", "--quiet", "--bare", "--template=", ".", folder=mirror)
        self.forget_unfinished(mirror)
        heads_and_tags = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        self.git.run(
            *("fetch", "--quiet", "--prune", "--no-auto-gc", "--", repository, *heads_and_tags),
            folder=mirror,
            time_limit=FETCH_SECONDS,
        )
        # In the foreground, where it does anything: nothing may run beside a measurement.
        self.succeeds(mirror, "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet")
        if not self.holds(mirror, commit):
            raise CheckoutError(f"Commit {commit[:10]} is on no branch or tag of the repository.")

    def usable(self, mirror: Path) -> bool:
        """Is it a repository, and not the rest of an interrupted set-up?"""
        return mirror.is_dir() and self.succeeds(mirror, "rev-parse", "--git-dir")

    def forget_unfinished(self, mirror: Path) -> None:
        """Drop worktrees whose making was killed: they have no commit yet, and no fetch gets past them."""
        for record in mirror.glob("worktrees/*"):
            head = record / "HEAD"
            if not head.is_file() or not head.read_text().strip("0\n"):
                shutil.rmtree(record)

    def holds(self, mirror: Path, commit: str) -> bool:
        """Is the whole commit there?"""
        return mirror.is_dir() and self.succeeds(mirror, "cat-file", "-e", f"{commit}^{{tree}}")

    def succeeds(self, mirror: Path, *arguments: str) -> bool:
        try:
            # Named, so that git never looks for a repository in the folders above.
            self.git.run("--git-dir", str(mirror), *arguments, folder=mirror)
        except CheckoutError:
            return False
        return True

    def renew(self, folder: Path, commit: str) -> None:
        """Bring an existing worktree to the commit, and remove whatever else lies in it."""
        if not (folder / ".git").is_file():
            raise CheckoutError("There is no worktree yet.")
        self.git.run(
            *("checkout", "--quiet", "--force", "--detach", commit, "--"),
            folder=folder,
            time_limit=FETCH_SECONDS,
        )
        # Twice -f: also repositories that were made inside the worktree.
        self.git.run("clean", "-ffdxq", folder=folder)

    def rebuild(self, mirror: Path, folder: Path, commit: str) -> None:
        """The worktree anew, still without files."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.git.run("worktree", "prune", folder=mirror)
        self.git.run(
            *("worktree", "add", "--quiet", "--force", "--no-checkout", "--detach", str(folder), commit),
            folder=mirror,
        )


def manifest(checkout: Path, kept_by_server: str | None) -> str:
    """The manifest's text, which lies in the checkout afterwards wherever it came from."""
    path = checkout / MANIFEST
    if kept_by_server is None:
        return text_inside(checkout, MANIFEST, "The manifest")
    # Removed first: writing through a link of the commit would write elsewhere.
    path.unlink(missing_ok=True)
    path.write_text(kept_by_server)
    return kept_by_server


def inside(checkout: Path, name: str, what: str) -> Path:
    """The file `name` of the checkout; refused where a link or `..` leads out of it."""
    path = (checkout / name).resolve()
    if not path.is_relative_to(checkout.resolve()):
        raise CheckoutError(f"{what} {name!r} leads out of the checkout.")
    if not path.is_file():
        raise CheckoutError(f"{what} {name!r} is not a file of this commit.")
    return path


def text_inside(checkout: Path, name: str, what: str) -> str:
    """What stands in a file of the checkout: text of a sensible size."""
    data = inside(checkout, name, what).read_bytes()
    if len(data) > LARGEST_TEXT:
        raise CheckoutError(f"{what} {name!r} is larger than {LARGEST_TEXT} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CheckoutError(f"{what} {name!r} is not UTF-8 text.") from error
