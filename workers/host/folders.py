"""Folders that measured code has written into: how much lies in them, and how they are removed."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from pathlib import Path


def measure_folder(folder: Path, most_files: int) -> tuple[int, int]:
    """The bytes on disk and the number of files, folders and links below; counting ends beyond `most_files`.

    What vanishes or can't be read meanwhile counts nothing.
    """
    size = files = 0
    pending = [str(folder)]
    while pending:
        try:
            entries = os.scandir(pending.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                files += 1
                if files > most_files:
                    return size, files
                try:
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                except OSError:
                    continue
    return size, files


def remove_tree(folder: Path) -> None:
    """Remove a folder as far as possible, whatever its depth and its modes; never an error."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.is_dir() and not folder.is_symlink():
        # Python walks folders by recursion, and stops at one that may not be entered.
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(folder)], check=False, capture_output=True)


def read_untrusted_file(path: Path, limit: int) -> bytes:
    """The bytes of a plain file that measured code may have put there: no link, no pipe, at most `limit`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path.name} is not a plain file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"{path.name} is larger than {limit} bytes")
    return data
