"""The tables of the tests' database, which migrations have made, for an embedded one that runs beside it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from django.db import connection

from dashboard.services import service_addresses
from dashboard.services.__main__ import database_variables


def copy_tables(home: Path) -> None:
    """To migrate takes ten times as long. The caller has the mark `django_db`."""
    source = connection.settings_dict
    variables = {**os.environ, **database_variables(home)}
    dump = [
        "pg_dump",
        "--no-owner",
        f"postgresql:///{source['NAME']}?host={source['HOST']}&user={source['USER']}",
    ]
    dumped = subprocess.run(dump, env=variables, check=True, capture_output=True).stdout
    restore = ["psql", "--quiet", "--output", os.devnull, "--set", "ON_ERROR_STOP=1"]
    restore += ["--dbname", service_addresses(home).database_url]
    subprocess.run(restore, env=variables, check=True, input=dumped)
