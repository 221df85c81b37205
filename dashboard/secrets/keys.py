"""The site's keys where no environment variable gives them: kept in files that only their owner can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

KEY, EARLIER = "secret_key", "secret_key_fallbacks"


def read_or_make_key(home: Path) -> str:
    """The key in the folder of the data, made where there is none; raises ImproperlyConfigured."""
    try:
        return _read_or_make(home / KEY)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ImproperlyConfigured(
            f"PACELINE_HOME is {home}, where the key can't be kept: {reason}."
        ) from error


def read_earlier_keys(home: Path) -> list[str]:
    """The keys that were the site's before, the last one first."""
    try:
        return (home / EARLIER).read_text().split()
    except OSError:
        return []


def renew_key(home: Path) -> str:
    """Make a new key and keep the one before among the earlier ones; the new key."""
    before = read_or_make_key(home)
    # First what opens the secrets as they are: whatever ends this here, nothing is lost.
    _write_private(home / EARLIER, "\n".join([before, *read_earlier_keys(home)]))
    key = secrets.token_urlsafe(50)
    _write_private(home / KEY, key)
    return key


def _read_or_make(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = _write_draft(path, secrets.token_urlsafe(50))
    try:
        # A link fails where the name exists: of two processes that start together one key wins.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text().strip()


def _write_private(path: Path, text: str) -> None:
    _write_draft(path, text).rename(path)


def _write_draft(path: Path, text: str) -> Path:
    draft = path.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(text)
    return draft
