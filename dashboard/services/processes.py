"""The site's own processes. docker-compose.yml repeats this table, and a test holds the two together."""

from __future__ import annotations

import http.client
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.services.child import Program

CHECKOUT = Path(__file__).resolve().parent.parent.parent
# What a host's own processes need of the account that starts them, and what its owner allows.
HOST_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_HOME", "PYTHONPATH"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("REQUESTS_CA_BUNDLE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PIP_FIND_LINKS"),
    *(f"PACELINE_SANDBOX{part}" for part in ("", "_NETWORK", "_MEMORY", "_PROCESSES", "_DISK", "_FILES")),
    *("PACELINE_SANDBOX_SHARED_MEMORY", "PACELINE_SANDBOX_BUILD_DISK", "PIP_NO_INDEX", "PIP_CERT"),
    *("PACELINE_MEMORY_LIMIT", "PACELINE_DISK_LIMIT", "PACELINE_LOG_FORMAT"),
)
FIRST_PROJECT = "paceline"
WILDCARD_HOSTS = {"0.0.0.0", "::", ""}  # noqa: S104 - compared with, never bound to
JUDGING_NICENESS = 10


@dataclass(frozen=True)
class Site:
    """The settings of the processes of one installation."""

    home: Path
    machine: str
    pool: str
    host: str = "127.0.0.1"
    port: int = 8000
    # Where the web server listens, if not there where people look for it.
    web_port: int | None = None

    @classmethod
    def from_settings(cls, settings: Any) -> Site:
        """From Django's settings, which this package may not import."""
        return cls(
            home=settings.PACELINE_HOME,
            machine=settings.PACELINE_MACHINE,
            pool=settings.PACELINE_POOL,
            host=settings.PACELINE_HOST,
            port=settings.PORT,
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PACELINE_HOME": str(self.home),
            "PACELINE_MACHINE": self.machine,
            "PACELINE_POOL": self.pool,
            "PORT": str(self.port),
            "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            "PYTHONUNBUFFERED": "1",
            # Said once by `up`, not by each worker in seven lines.
            "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
        }


def process_commands(site: Site) -> dict[str, list[str]]:
    """Name of each process -> the arguments of `python -m`, in the order of their start."""
    worker = ["celery", "--quiet", "-A", "workers.site.app", "worker", "--without-gossip", "--without-mingle"]
    return {
        "web": [
            *(
                "gunicorn",
                "dashboard.wsgi:application",
                "--bind",
                f"{site.host}:{site.web_port or site.port}",
            ),
            *("--workers", "2", "--threads", "4", "--timeout", "60", "--no-control-socket"),
            *("--log-level", "warning"),
        ],
        "service": [
            *(*worker, "--hostname", f"service@{site.machine}", "--queues", "service"),
            *("--concurrency", "2", "--loglevel", "WARNING"),
        ],
        # Threads: they wait for git and forges of other people. What computes is in the service's processes.
        "fetch": [
            *(*worker, "--hostname", f"fetch@{site.machine}", "--queues", "fetches"),
            *("--pool", "threads", "--concurrency", "4", "--loglevel", "WARNING"),
        ],
        # In one process: it does one short thing at a time.
        "sweep": [
            *(*worker, "--hostname", f"sweep@{site.machine}", "--queues", "sweeps"),
            *("--pool", "solo", "--loglevel", "WARNING"),
        ],
        # The schedule is kept in memory: all that it does is repeat itself, and a file could go bad.
        "beat": [
            *("celery", "--quiet", "-A", "workers.site.app", "beat", "--scheduler", "celery.beat:Scheduler"),
            *("--loglevel", "WARNING"),
        ],
        # Last: it calls the others. This machine measures in the same way as any other one does.
        "host": ["workers.host", "run"],
    }


def process_program(name: str, site: Site) -> Program:
    """The process `name` as a child of the supervisor."""
    return Program(
        name=name,
        argv=[sys.executable, "-m", *process_commands(site)[name]],
        folder=CHECKOUT,
        environment=site.environment,
        ready=_web_probe(site) if name == "web" else lambda: True,
        timeout=60,
        # Celery's own ends hang where the queue has died with the supervisor. What a killed worker measured
        # ends with it, as its pool and gunicorn's workers do.
        orphan_signal=signal.SIGKILL,
        grace=8,
        stop_group="site",
        # A page is waited for, a judgement isn't; nor is a run on this machine to be disturbed by it.
        niceness=JUDGING_NICENESS if name in ("service", "fetch") else 0,
    )


def host_program(site: Site, join_code: str) -> Program:
    """The agent of this machine, which joins the site by the code where it hasn't yet."""
    return Program(
        name="host",
        argv=[sys.executable, "-m", *process_commands(site)["host"]],
        folder=CHECKOUT,
        # Nothing of the site's: neither its database nor its keys are a host's affair.
        environment=host_environment(site, join_code, os.environ),
        inherits=False,
        # Once somebody has drained or retired it.
        may_end=True,
        orphan_signal=signal.SIGTERM,
        grace=25,
    )


def host_environment(site: Site, join_code: str, environ: Mapping[str, str]) -> dict[str, str]:
    address = "127.0.0.1" if site.host in WILDCARD_HOSTS else site.host
    no_proxy = ",".join(filter(None, (environ.get("no_proxy") or environ.get("NO_PROXY"), address)))
    return {
        **{name: environ[name] for name in HOST_VARIABLES if name in environ},
        # Its token stays on this machine.
        "no_proxy": no_proxy,
        "NO_PROXY": no_proxy,
        "PACELINE_SITE": f"http://{address}:{site.web_port or site.port}",
        "PACELINE_JOIN_CODE": join_code,
        "PACELINE_MACHINE": site.machine,
        "PACELINE_HOST_HOME": str(site.home / "host"),
        # One machine, by the name that the settings have.
        "PACELINE_SLOTS": "1",
        # Whoever starts a site from a checkout has run its code already.
        "PACELINE_UNBOXED_PROJECT": FIRST_PROJECT,
        "PYTHONUNBUFFERED": "1",
    }


def migration_program(site: Site) -> Program:
    # Django's checks are for who changes the code. They import every page, a second of each start.
    command = ["migrate", "--no-input", "--skip-checks", "--verbosity", "0"]
    return Program(
        name="migrate",
        argv=[sys.executable, "manage.py", *command],
        folder=CHECKOUT,
        environment=site.environment,
        timeout=3600,
    )


def _web_probe(site: Site) -> Callable[[], bool]:
    """A function that says whether the web server answers."""
    host = "127.0.0.1" if site.host in WILDCARD_HOSTS else site.host

    def is_answering() -> bool:
        connection = http.client.HTTPConnection(host, site.web_port or site.port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            # Any answer will do: a host that is not allowed is a 400, given by a server that runs.
            return connection.getresponse().status < 500
        except OSError:
            return False
        finally:
            connection.close()

    return is_answering
