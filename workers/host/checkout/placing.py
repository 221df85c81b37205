"""Files that are put into a checkout beside the commit's own: through no link, and nowhere outside of it."""

from __future__ import annotations

import shutil
from pathlib import Path, PurePosixPath

from workers.host.errors import CheckoutError


def open_place(checkout: Path, name: str, what: str) -> Path:
    """Where the file `name` is to lie: its folders are there, and nothing is in its place.

    CheckoutError where a link or a file of the commit stands in the way.
    """
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or ".git" in parts:
        raise CheckoutError(f"{what} {name!r} leads out of the checkout.")
    folder = checkout
    for part in parts[:-1]:
        folder = folder / part
        # Writing through a link of the commit would change what it leads to.
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            way = folder.relative_to(checkout)
            raise CheckoutError(f"{what} {name!r} can't be placed: {way} is a link or a file of the commit.")
        folder.mkdir(exist_ok=True)
    path = folder / parts[-1]
    if path.is_dir() and not path.is_symlink():
        raise CheckoutError(f"{what} {name!r} can't be placed: the commit has a folder there.")
    path.unlink(missing_ok=True)
    return path


def place_copy(source: Path, checkout: Path, name: str, what: str) -> None:
    """Copy a file, or a link as a link."""
    shutil.copy2(source, open_place(checkout, name, what), follow_symlinks=False)


def place_link(source: Path, checkout: Path, name: str, what: str) -> None:
    """Let `name` lead to a file elsewhere."""
    open_place(checkout, name, what).symlink_to(source)
