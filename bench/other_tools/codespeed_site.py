"""codespeed on the site's own PostgreSQL: its tables beside the site's, the same points, its server."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.gunicorn_server import running_server
from bench.other_tools.history import MeasuredCommit

DATABASE = "codespeed"
FILLING = Path(__file__).with_name("fill_codespeed.py")
# Its sample project, as its README tells to run it in production; whitenoise stands for nginx.
SETTINGS = """
from sample_project.settings import *

DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
DATABASES = {{"default": {database!r}}}
MIDDLEWARE = ("whitenoise.middleware.WhiteNoiseMiddleware", *MIDDLEWARE)
STATICFILES_DIRS = ()
STATIC_ROOT = {static!r}
"""
WSGI = "from django.core.wsgi import get_wsgi_application\napplication = get_wsgi_application()\n"
MODULE = "codespeed_beside"


@contextmanager
def serve_codespeed(
    checkout: Path, folder: Path, commits: Sequence[MeasuredCommit], database: dict[str, object]
) -> Iterator[str]:
    """The address of codespeed's pages over these commits.

    `checkout` has codespeed with its packages in `.venv`; `folder` is a scratch folder; `database` is the
    site's in Django's words.
    """
    create_database()
    settings = {name: database[name] for name in ("HOST", "PORT", "USER", "PASSWORD")}
    settings |= {"ENGINE": "django.db.backends.postgresql", "NAME": DATABASE}
    static = str(folder / "static")
    (folder / f"{MODULE}.py").write_text(SETTINGS.format(database=settings, static=static))
    (folder / f"{MODULE}_wsgi.py").write_text(WSGI)
    python = str(checkout / ".venv/bin/python")
    environment = {
        "DJANGO_SETTINGS_MODULE": MODULE,
        "PYTHONPATH": f"{folder}:{checkout}",
        "PYTHONWARNINGS": "ignore",
    }

    def run(*arguments: str, text: str = "") -> None:
        subprocess.run(
            [python, *arguments],
            input=text,
            text=True,
            check=True,
            env={**os.environ, **environment},
            cwd=folder,
        )

    run("-m", "django", "migrate", "--verbosity", "0")
    run("-m", "django", "collectstatic", "--no-input", "--verbosity", "0")
    run("-m", "whitenoise.compress", "--quiet", static)
    run(str(FILLING), text=dump_commits(commits))
    with running_server([python], f"{MODULE}_wsgi:application", environment, str(folder)) as address:
        yield address


def dump_commits(commits: Sequence[MeasuredCommit]) -> str:
    """Return what `fill_codespeed` reads."""
    return json.dumps(
        [
            {
                "commitid": commit.hash,
                "message": commit.subject,
                "date": commit.at.replace(tzinfo=None).isoformat(),
                "value": commit.value,
                "std_dev": (commit.high - commit.low) / 4,
            }
            for commit in commits
        ]
    )


def create_database() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE}")
