"""Which commit is meant, as the repository here says it."""

from __future__ import annotations

import subprocess

from .errors import SiteError


def name_commit(revision: str | None) -> str:
    """The full hash of a revision, or of what is checked out; a name that only the site knows stays as it is.

    Raises SiteError where nothing is given and nothing is checked out here.
    """
    found = resolve_in_checkout(revision or "HEAD")
    if found or revision:
        return found or str(revision)
    raise SiteError("There is no git repository here that tells the commit: name it.")


def resolve_in_checkout(revision: str) -> str:
    """Empty where the repository here doesn't know it, or where there is none."""
    command = ["git", "rev-parse", "--quiet", "--verify", "--end-of-options", f"{revision}^{{commit}}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
