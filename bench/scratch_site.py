"""A site for a benchmark alone: an embedded PostgreSQL and queue, migrated and empty, gone at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_site(kept_home: Path | None = None) -> Iterator[None]:
    """Within it the models of the site can be used. Once in a process: Django reads its settings once.

    `kept_home`: a folder in which it stays, to be found again as it was left.
    """
    home = kept_home.resolve() if kept_home else Path(tempfile.mkdtemp(prefix="paceline-bench-"))
    os.environ["PACELINE_HOME"] = str(home)
    os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
    from dashboard.services import embedded, service_addresses
    from dashboard.services.supervisor import Supervisor

    supervisor = Supervisor(home / "logs")
    try:
        embedded.start_embedded(supervisor, home, durable=False, database=True, queue=True)
        addresses = service_addresses(home)
        os.environ["DATABASE_URL"], os.environ["BROKER_URL"] = addresses.database_url, addresses.broker_url
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        yield
    finally:
        supervisor.stop()
        if kept_home is None:
            shutil.rmtree(os.path.realpath(home / "services"), ignore_errors=True)
            shutil.rmtree(service_addresses(home).socket_folder, ignore_errors=True)
            shutil.rmtree(home, ignore_errors=True)
