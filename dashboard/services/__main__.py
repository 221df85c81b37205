"""Prints what a shell needs to reach the embedded database, as lines for its `eval`."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from dashboard.services import accounts, binaries
from dashboard.services.addresses import service_addresses
from dashboard.services.postgres import NAME
from dashboard.services.processes import CHECKOUT


def database_variables(home: Path) -> dict[str, str]:
    """For psql, pg_dump and their like: which programs, and where the server listens."""
    programs = binaries.find_binaries(accounts.account_of_uid(os.getuid())).postgres
    return {
        "PATH": f"{programs}:{os.environ.get('PATH', '')}",
        "PGHOST": str(service_addresses(home).socket_folder),
        "PGUSER": NAME,
        "PGDATABASE": NAME,
    }


if __name__ == "__main__":
    folder = Path(os.environ.get("PACELINE_HOME") or CHECKOUT / ".paceline")
    for name, value in database_variables(folder).items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
