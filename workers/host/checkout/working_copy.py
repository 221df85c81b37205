"""Where commands of a commit may write beside its code, and which files they have written."""

from __future__ import annotations

import filecmp
import os
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paceline.manifest.preparation import read_file_states, written_files

from workers.host.box.box import Box
from workers.host.errors import BuildError
from workers.host.folders import remove_tree


@dataclass(frozen=True)
class WorkingCopy:
    """A copy of the checkout that a box shows in its place; without a box it is the checkout itself."""

    checkout: Path
    folder: Path
    before: Mapping[str, tuple[int, int]]

    @property
    def copy(self) -> Path | None:
        """The copy, None where there is none."""
        return None if self.folder == self.checkout else self.folder

    def written(self) -> list[str]:
        """The files that are new or have changed since the copy was made."""
        after = read_file_states(self.folder)
        return [path for path in written_files(self.before, after) if self.differs(path)]

    def differs(self, path: str) -> bool:
        """Whether a written file is another one than the checkout's: the same bytes again are no change."""
        if self.copy is None or path not in self.before:
            return True
        old, new = self.checkout / path, self.folder / path
        if old.is_symlink() and new.is_symlink():
            return old.readlink() != new.readlink()
        # A command may have put anything in a file's place, a pipe too.
        plain = stat.S_ISREG(old.lstat().st_mode) and stat.S_ISREG(new.lstat().st_mode)
        return not plain or not filecmp.cmp(old, new, shallow=False)


def is_file_or_link(path: Path) -> bool:
    """Whether it can be kept: no pipe, no socket, no device."""
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


@contextmanager
def working_copy(checkout: Path, target: Path, box: Box) -> Iterator[WorkingCopy]:
    """Let commands write: in a box into a copy at `target`, while this lasts, else into the checkout.

    `target` lies in no folder that the commands may write: they could put a link in its place.
    """
    if not box.encloses:
        yield WorkingCopy(checkout, checkout, read_file_states(checkout))
        return
    remove_tree(target)
    try:
        copy_checkout(checkout, target)
        hand_over_tree(target, box)
        yield WorkingCopy(checkout, target, read_file_states(target))
    finally:
        remove_tree(target)


def copy_checkout(checkout: Path, target: Path) -> None:
    """Copy all but the file that leads to the mirror, which no command of a commit sees."""
    command = ["cp", "--archive", "--reflink=auto", "--no-target-directory", "--", str(checkout), str(target)]
    copied = subprocess.run(command, check=False, capture_output=True, text=True)
    if copied.returncode != 0:
        reason = (copied.stderr.strip().splitlines() or ["cp failed"])[-1]
        raise BuildError(f"The checkout can't be copied: {reason}")
    (target / ".git").unlink(missing_ok=True)


def hand_over_tree(folder: Path, box: Box) -> None:
    """Give a folder and all in it to the box's account."""
    if box.account is None:
        return
    owner = f"{box.account}:{box.account}"
    command = ["chown", "--recursive", "--no-dereference", owner, "--", os.fspath(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        raise BuildError(f"The checkout's copy can't be given to the account {box.account}.")
