"""Where a project's repository lies, as people type it: a folder of this machine, or a URL."""

from __future__ import annotations

import re
from pathlib import Path

URL = re.compile(r"(https?|ssh|git|file)://.+|[\w.-]+@[\w.-]+:.+")
LONGEST_SHOWN = 200


class ProjectError(Exception):
    """The project can't be added; the message is one sentence for people."""


def absolute_address(repository: str) -> str:
    """A URL as it stands, a path made absolute."""
    if URL.fullmatch(repository):
        return repository
    if not repository.strip():
        raise ProjectError("The repository is empty: give a folder on this machine, or a URL.")
    try:
        path = Path(repository).expanduser()
        if path.is_dir():
            return str(path.resolve())
    except (OSError, RuntimeError, ValueError):  # A name that is too long, an unknown home, a NUL.
        pass
    shown = repository if repository.isprintable() else repr(repository)
    raise ProjectError(
        f"{shown[:LONGEST_SHOWN]} is neither a folder on this machine nor the URL of a repository."
    )
