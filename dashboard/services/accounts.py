"""Under which account the embedded services run: PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.services.errors import ServiceError

UNPRIVILEGED = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """A system account; `needs_switch` says whether a child has to be switched to it."""

    name: str
    uid: int
    gid: int

    @property
    def needs_switch(self) -> bool:
        return self.uid != os.getuid()

    @property
    def popen_arguments(self) -> dict[str, Any]:
        """The arguments that make `subprocess` start a program under this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.needs_switch else {}

    def give_ownership(self, path: Path) -> None:
        """Hand `path` (not what is below it) to the account."""
        if self.needs_switch:
            os.chown(path, self.uid, self.gid)


def account_of_uid(uid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise ServiceError(
            f"PostgreSQL needs an account with a name, but user id {uid} has none in /etc/passwd."
        ) from None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def unprivileged_account() -> Account:
    """The account for services that root starts."""
    for name in UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise ServiceError("PostgreSQL refuses to run as root, and there is no account postgres or nobody.")


def public_folder(path: Path) -> Path:
    """Make `path` a folder that every account can enter, whatever the umask."""
    if not path.exists():
        public_folder(path.parent)
        path.mkdir(exist_ok=True)
        path.chmod(0o755)
    return path


def private_folder(path: Path, account: Account) -> Path:
    """Make `path` a folder that only `account` can enter; refuse one that another user prepared."""
    try:
        path.mkdir(mode=0o700)
        account.give_ownership(path)
    except FileExistsError:
        pass
    status = path.lstat()
    if not path.is_dir() or path.is_symlink() or status.st_uid not in {account.uid, os.getuid()}:
        raise ServiceError(f"{path} belongs to somebody else; remove it and start again.")
    path.chmod(0o700)
    account.give_ownership(path)
    return path
