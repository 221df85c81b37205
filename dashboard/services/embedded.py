"""The embedded database and queue of one PACELINE_HOME."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from dashboard.services import accounts, binaries
from dashboard.services.accounts import Account, private_folder, public_folder
from dashboard.services.addresses import service_addresses
from dashboard.services.broker import Redis
from dashboard.services.errors import ServiceError
from dashboard.services.postgres import Postgres
from dashboard.services.supervisor import Supervisor


def start_embedded(
    supervisor: Supervisor, home: Path, *, database: bool = True, queue: bool = True, durable: bool = True
) -> None:
    """Start the database and the queue and wait until they answer.

    ServiceError, one sentence, where that fails.
    """
    home = Path(os.path.realpath(home))
    folder, account = data_folder(home)
    programs = binaries.find_binaries(account)
    sockets = private_folder(service_addresses(home).socket_folder, account)
    if database:
        postgres = Postgres(folder / "postgres", sockets, programs.postgres, account, durable)
        postgres.prepare(supervisor)
        supervisor.start(postgres.program())
        postgres.create_database()
    if queue:
        data = private_folder(folder / "redis", account)
        supervisor.start(
            Redis(data, service_addresses(home).broker_socket, programs.redis_server, account).program()
        )


def data_folder(home: Path) -> tuple[Path, Account]:
    """The folder of the services' files, made if need be, and the account that owns it.

    It is HOME/services. For root that is a link to a folder outside, since the unprivileged account which
    has to own it can rarely reach below root's folders.
    """
    entry = home / "services"
    home.mkdir(parents=True, exist_ok=True)
    if entry.is_symlink() and not entry.exists():
        raise ServiceError(
            f"{entry} points to a folder that is gone; remove it to start with an empty database."
        )
    if not entry.exists():
        _make_data_folder(entry)
    folder = Path(os.path.realpath(entry))
    _claim_data_folder(folder, entry)
    owner = folder.stat().st_uid
    if os.getuid() not in {0, owner}:
        raise ServiceError(
            f"{folder} belongs to {accounts.account_of_uid(owner).name}; start Paceline as that user."
        )
    return folder, accounts.account_of_uid(owner)


def _make_data_folder(entry: Path) -> None:
    if os.getuid() != 0:
        entry.mkdir(mode=0o700)
        return
    account = accounts.unprivileged_account()
    folder = public_folder(binaries.SYSTEM_FOLDER / "data") / secrets.token_hex(8)
    entry.symlink_to(private_folder(folder, account))


def _claim_data_folder(folder: Path, entry: Path) -> None:
    """A copied home must not share the database of the one that it was copied from."""
    label = folder / "home"
    try:
        other = Path(label.read_text().strip())
    except FileNotFoundError:
        other = entry
    if other != entry and os.path.realpath(other) == str(folder):
        raise ServiceError(f"{entry} is a copy of {other}; remove it to start with an empty database.")
    label.write_text(f"{entry}\n")
