"""Prints what a shell needs to reach the embedded database, as lines for its `eval`."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from dashboard.services import accounts, binaries
from dashboard.services.places import addresses
from dashboard.services.postgres import NAME
from dashboard.services.processes import CHECKOUT


def variables(home: Path) -> dict[str, str]:
    """For psql, pg_dump and their like: which programs, and where the server listens."""
    programs = binaries.find(accounts.of_uid(os.getuid())).postgres
    return {
        "PATH": f"{programs}:{os.environ.get('PATH', '')}",
        "PGHOST": str(addresses(home).socket_folder),
        "PGUSER": NAME,
        "PGDATABASE": NAME,
    }


if __name__ == "__main__":
    folder = Path(os.environ.get("PACELINE_HOME") or CHECKOUT / ".paceline")
    for name, value in variables(folder).items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
