from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connections

from dashboard import hosts
from dashboard.management import first_project
from dashboard.management.base import SiteCommand
from dashboard.models import Run
from dashboard.projects.repository_location import ProjectError
from dashboard.repositories import RepositoryError
from dashboard.services import ServiceError
from dashboard.services.addresses import log_folder, remember_port
from dashboard.services.instance import HomeLock, lock_home, start_services
from dashboard.services.preflight import check_disk, check_port
from dashboard.services.processes import Site, host_program, process_commands, process_program
from dashboard.services.supervisor import Supervisor
from dashboard.triggers import TriggerError

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """A signal asks for the end. No Exception: nothing on the way may take it for a failure."""


class Command(SiteCommand):
    help = (
        "Start the whole site: database, queue, web server, measuring worker, the site's workers; "
        "Ctrl-C ends them all. The port and the folder of the data are environment variables: "
        "see docs/operations.md."
    )
    # The database isn't there yet.
    requires_system_checks = ()
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--no-first-project",
            dest="with_project",
            action="store_false",
            help="don't register this checkout as the project 'paceline' and don't measure it",
        )

    def perform(self, **options: Any) -> None:
        site = Site.from_settings(settings)
        try:
            with lock_home(site.home) as lock:
                check_git()
                check_disk(site.home)
                check_port(site.host, site.port)
                remember_port(site.home, site.port)
                self.serve(site, lock, options["with_project"])
        except ServiceError as error:
            self.stderr.write(str(error))
            sys.exit(1)

    def serve(self, site: Site, lock: HomeLock, with_project: bool) -> None:
        """Run until a signal ends it; whatever happens, nothing that was started here is left."""
        with recorded_stop_signals() as stop:
            supervisor = Supervisor(log_folder(site.home), self.print_line, stop.check)
            try:
                self.start(supervisor, site, with_project)
                stop.check()
                lock.write_state("ready")
                supervisor.watch(lambda: stop.requested)
                stop.check()
            except StopRequested:
                self.stdout.write("\nStopping.")
            finally:
                # What they say at their end (hit Ctrl-C again...) is about them alone, and in their logs.
                supervisor.journal.stop_printing()
                supervisor.stop()
                self.stdout.write("Everything has ended; nothing is lost.")

    def start(self, supervisor: Supervisor, site: Site, with_project: bool) -> None:
        self.stdout.write("Starting the database and the queue.")
        start_services(supervisor, site)
        password = make_administrator()
        supervisor.start(process_program("web", site))
        self.stdout.write(f"\n  Paceline answers at {settings.PACELINE_URL}")
        if password:
            self.stdout.write(f"  Sign in as admin with the password {password} (it is shown only now)")
        self.stdout.write("  Ctrl-C ends it.\n\n")
        for name in process_commands(site):
            if name not in ("web", "host"):
                supervisor.start(process_program(name, site))
        supervisor.start(host_program(site, hosts.local_join_code()))
        if with_project:
            self.measure_this_checkout()
        connections.close_all()

    def measure_this_checkout(self) -> None:
        """So that a newcomer sees a real run appear, progress, and turn into charts."""
        try:
            requested = first_project.request_first_runs()
        except (ProjectError, RepositoryError, TriggerError) as error:
            self.stdout.write(f"This checkout isn't measured: {error}")
            return
        for line in announce_runs(requested):
            self.stdout.write(line)

    def print_line(self, name: str, line: str) -> None:
        self.stdout.write(f"{name:8} | {line}")


def announce_runs(requested: list[Run]) -> list[str]:
    """What is measured first and where to watch it, and what comes after it."""
    if not requested:
        return []
    first, rest = requested[0], requested[1:]
    address = f"{settings.PACELINE_URL}{first.get_absolute_url()}"
    lines = [f"Measuring {first.case} at {first.commit.short}, the newest commit here: {address}"]
    if rest:
        names = ", ".join(dict.fromkeys(run.case.benchmark for run in rest))
        address = f"{settings.PACELINE_URL}{first.case.project.get_absolute_url()}"
        lines.append(f"After it {len(rest)} more quick runs, of {names}: {address}")
    return lines


def make_administrator() -> str | None:
    """The password of a new administrator, which is kept as a hash only; None if there is one already."""
    users = get_user_model()
    if users.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    users.objects.create_superuser("admin", password=password)
    return password


def check_git() -> None:
    try:
        subprocess.run(["git", "--version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise ServiceError("Paceline needs git; on Debian: apt install git") from None


class StopSignals:
    """Whether a signal has asked for the end.

    It is noted and looked for, not raised where it arrives: Python drops what is raised in a callback (those
    of a fork among them), and what is raised inside `subprocess` can leave its lock taken.
    """

    def __init__(self) -> None:
        self.requested = False

    def request(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True

    def check(self) -> None:
        """StopRequested where a signal has come."""
        if self.requested:
            raise StopRequested


@contextmanager
def recorded_stop_signals() -> Iterator[StopSignals]:
    """Inside, Ctrl-C, a polite kill and a closed terminal are noted and end nothing by themselves."""
    stop = StopSignals()
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    for number in STOP_SIGNALS:
        # `nohup` has the closing of the terminal ignored, and that is to stay so.
        if number != signal.SIGHUP or before[number] != signal.SIG_IGN:
            signal.signal(number, stop.request)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
