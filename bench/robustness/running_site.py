"""A whole site in a folder of its own, as `manage.py up` starts it, with more hosts beside it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from dashboard.services.preflight import free_port
from tests.workers.repositories import commit_files, create_repository

ROOT = Path(__file__).resolve().parents[2]
POOL = "default"
# Prints when it begins and ends, by the clock that the database has too.
SCRIPT = """
import time
print("first line", time.time(), flush=True)
import paceline
for _ in paceline.steps(range(10**9)):
    sum(range({work}))
print("last line", time.time(), flush=True)
"""
MANIFEST = """
[benchmarks.nothing]
version = 1
script = "train.py"
warmup_steps = 1
steps = {steps}
counting_steps = 1
repetitions = 1
cases = [{cases}]
"""


@dataclass
class RunningSite:
    """`process` is `manage.py up`; `hosts` are agents that are started again whenever they end."""

    home: Path
    port: int
    process: subprocess.Popen[bytes]
    hosts: list[HostSupervisor] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def part(self, *words: str) -> psutil.Process:
        """The process of the site whose command line holds these words; of several the oldest."""
        found = [
            process
            for process in psutil.Process(self.process.pid).children(recursive=True)
            if all(word in read_command(process) for word in words)
        ]
        return min(found, key=lambda process: process.create_time())

    def get_page(self, path: str) -> float:
        """Seconds that a page took; OSError where it isn't answered."""
        started = time.perf_counter()
        with urllib.request.urlopen(f"{self.address}{path}", timeout=20) as answer:  # noqa: S310
            answer.read()
        return time.perf_counter() - started


def read_command(process: psutil.Process) -> str:
    """Its command line; empty where it has ended meanwhile."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


class HostSupervisor:
    """An agent beside the site's own, started again when it is killed, as systemd does."""

    def __init__(self, home: Path, address: str, code: str, name: str) -> None:
        self.command = [sys.executable, "-m", "workers.host", "run", "--site", address, "--code", code]
        self.command += ["--name", name, "--home", str(home)]
        self.log = home.with_suffix(".log")
        self.over = threading.Event()
        self.process = self._start()
        self.thread = threading.Thread(target=self._keep_running, daemon=True)
        self.thread.start()

    def kill(self) -> None:
        self.process.kill()

    def end(self) -> None:
        self.over.set()
        self.thread.join()
        self.process.terminate()
        self.process.wait(30)

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            return subprocess.Popen(self.command, cwd=ROOT, stdout=output, stderr=output)

    def _keep_running(self) -> None:
        while not self.over.wait(0.5):
            if self.process.poll() is not None:
                self.process = self._start()


@contextmanager
def running_site(hosts: int = 1, *, database: str = "") -> Iterator[RunningSite]:
    """A site that measures with so many hosts. Once in a process: Django reads its settings once.

    `database` is the address of one that somebody else runs; else the site has its own.
    """
    home = Path(tempfile.mkdtemp(prefix="paceline-robust-"))
    port = free_port()
    environment = {**os.environ, "PACELINE_HOME": str(home / "site"), "PORT": str(port)}
    if database:
        environment["DATABASE_URL"] = database
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        log = stack.enter_context((home / "up.log").open("wb"))
        command = [sys.executable, "manage.py", "up", "--no-first-project"]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        stack.callback(end_process, process)
        site = RunningSite(home, port, process)
        wait_for(lambda: is_answering(site), 120)
        set_up_django(environment)
        from dashboard import hosts as host_rows
        from dashboard import runs

        wait_for(lambda: host_is_there(), 60)
        for number in range(1, hosts):
            code = host_rows.create_join_code(runs.pool_named(POOL), "a benchmark")
            supervisor = HostSupervisor(home / f"host-{number}", site.address, code, f"host-{number}")
            site.hosts.append(supervisor)
            stack.callback(supervisor.end)
        yield site


def set_up_django(environment: dict[str, str]) -> None:
    os.environ.update({name: environment[name] for name in ("PACELINE_HOME", "PORT")})
    if "DATABASE_URL" in environment:
        os.environ["DATABASE_URL"] = environment["DATABASE_URL"]
    os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
    import django

    django.setup()


def host_is_there() -> bool:
    from dashboard.models import Machine

    return Machine.objects.filter(seen_at__isnull=False).exists()


def is_answering(site: RunningSite) -> bool:
    if site.process.poll() is not None:
        raise RuntimeError((site.home / "up.log").read_text())
    with suppress(OSError):
        return site.get_page("/healthz") < 20
    return False


def end_process(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    process.wait(60)


def wait_for(happens: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > until:
            raise TimeoutError(f"it did not happen within {seconds} s")
        time.sleep(0.1)


def request_runs(folder: Path, commits: int, cases: int, *, steps: int = 1, work: int = 1) -> list[int]:
    """The keys of requested runs of a benchmark that does next to nothing, in a new repository."""
    from dashboard import triggers
    from dashboard.projects.registration import NewProject, add_project

    described = ", ".join(f"{{ case = {number} }}" for number in range(cases))
    files = {
        "train.py": SCRIPT.format(work=work),
        "paceline.toml": MANIFEST.format(steps=steps, cases=described),
    }
    repository = create_repository(folder, files)
    for number in range(commits - 1):
        commit_files(repository, {"notes.txt": str(number)})
    project = add_project(NewProject("nothing", str(repository)))
    return triggers.create_command_trigger(project, triggers.parse_revisions(None, None, commits))[1]


def count_states(keys: list[int]) -> Counter[str]:
    from dashboard.models import Run

    return Counter(Run.objects.filter(pk__in=keys).values_list("state", flat=True))


def wait_for_runs(keys: list[int], seconds: float) -> None:
    """Until all have ended. The database may be away meanwhile."""
    from django.db import DatabaseError, InterfaceError, connection

    from dashboard.models import Run

    def have_ended() -> bool:
        try:
            return not set(count_states(keys)) - set(Run.TERMINAL)
        except (DatabaseError, InterfaceError):
            connection.close()
            return False

    wait_for(have_ended, seconds)
