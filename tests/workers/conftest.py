"""A project with one tiny benchmark, and runs of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from paceline import manifest
from pytest_django.live_server_helper import LiveServer

from dashboard import hosts, runs
from dashboard.models import Project, Run
from tests.workers import repositories
from tests.workers.scripts import UNDISTURBED
from workers.host.box.box import open_box
from workers.host.configuration import HostConfiguration, OwnerSettings, Registration, write_identity
from workers.host.execution import executor
from workers.host.execution.launching import Measurement
from workers.host.machine import take_fingerprint
from workers.host.next_job import execute_next
from workers.host.site_api.client import SiteClient

MANIFEST = """
[benchmarks.tiny]
version = 1
script = "train.py"
params = { size = 10 }
warmup_steps = 2
steps = 20
counting_steps = 5
countings = 1
repetitions = 1
time_limit = 60
"""
TRAIN = (
    UNDISTURBED
    + """
import paceline

for _ in paceline.steps(range(10**9)):
    with paceline.phase("learn"):
        sum(range(1000))
"""
)
# As `python -m paceline`. What the machine is worth beside each repetition is asked in a tenth of the time:
# most tests measure dozens of repetitions.
HARNESS = """
import sys
from paceline import __main__
from paceline.watching import calibration
calibration.ROUNDS //= 10
sys.exit(__main__.main())
"""

Requested = Callable[..., Run]


@dataclass(frozen=True)
class Host:
    """A host of the test's site, in this very process; it calls the site by HTTP as any other does."""

    configuration: HostConfiguration
    client: SiteClient

    @property
    def home(self) -> Path:
        return self.configuration.home

    def execute_next(self) -> bool:
        return execute_next(self.configuration, self.client)


@pytest.fixture
def home(settings: Any, tmp_path: Path) -> Path:
    """A worker's home that nobody else uses."""
    settings.PACELINE_HOME = tmp_path / "home"
    settings.PACELINE_MACHINE = "gpu-1"
    return tmp_path / "home"


@pytest.fixture
def host(
    home: Path,
    live_server: LiveServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Host:
    """The machine gpu-1 of the pool default, which has joined."""
    # Which box the machine gives is tried once for each home: as if all tests had one.
    shared = tmp_path_factory.getbasetemp()
    monkeypatch.setattr(executor, "open_box", lambda sandbox, _home: open_box(sandbox, shared))
    command = Measurement.command

    def command_of_tests(measurement: Measurement, scratch: Path) -> list[str]:
        python, safe_path, module, name, *arguments = command(measurement, scratch)
        assert (module, name) == ("-m", "paceline")
        return [python, safe_path, "-c", HARNESS, *arguments]

    monkeypatch.setattr(Measurement, "command", command_of_tests)
    return join_host(home / "host", live_server.url, "gpu-1")


def join_host(home: Path, site: str, name: str, **owner: Any) -> Host:
    code = hosts.create_join_code(runs.pool_named("default"), "a test")
    home.mkdir(parents=True)
    (identity,) = SiteClient(site).join(code, [name])
    write_identity(home, identity)
    client = SiteClient.of_identity(identity)
    answer = client.register("test", take_fingerprint().as_dict())
    registration = Registration(answer.text("pool"), answer.integer("lease_seconds"), "")
    return Host(HostConfiguration(home, identity, registration, OwnerSettings(**owner)), client)


@pytest.fixture
def requested(transactional_db: None, tmp_path: Path) -> Requested:
    """A requested run of the benchmark at a commit with these files, beside a script and a manifest."""

    def request(files: dict[str, str] | None = None, **project: Any) -> Run:
        written = {"paceline.toml": MANIFEST, "train.py": TRAIN, **(files or {})}
        source = repositories.create_repository(tmp_path / "source", written)
        return request_run_at(source, repositories.head_commit(source), written["paceline.toml"], **project)

    return request


def request_run_at(source: Path, commit: str, described: str, **more: Any) -> Run:
    project = Project.objects.create(slug="demo", repository=str(source), **more)
    benchmark = manifest.parse_manifest(described, "test").benchmarks["tiny"]
    case = benchmark.cases[0]
    return runs.request_run(
        project.commits.create(hash=commit, branch="main", position=1, committed_at=timezone.now()),
        project.cases.create(benchmark="tiny", key=case.key, params=dict(case.params)),
        benchmark,
    )
