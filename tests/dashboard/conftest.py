"""Rows and repositories that the tests of runs, ingest, triggers and commands share."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from paceline import manifest
from paceline.manifest import Benchmark

from dashboard import dispatch, runs
from dashboard.models import Case, Commit, Project, Run
from tests import guards

MANIFEST = """
[benchmarks.tiny]
version = 1
script = "train.py"
steps = 100
repetitions = 3
time_limit = 60
cases = [ { size = 1 }, { size = 2 } ]

[benchmarks.other]
version = 4
script = "other.py"
steps = 10
"""


@pytest.fixture(autouse=True)
def git_in_transactions(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[str]]:
    """What git was started for while the product held a transaction open: nothing."""
    if not uses_database(request):
        yield []
        return
    # Its own transaction is open around most tests.
    request.getfixturevalue("_django_db_helper")
    outside = guards.transaction_depth()
    with guards.watched_git(monkeypatch, lambda: guards.transaction_depth() > outside) as started:
        yield started
    assert started == []


@pytest.fixture(autouse=True)
def second_writers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The files of the product that wrote a regression beside its one writer: none."""
    with guards.watched_writers(monkeypatch) as writers:
        yield writers
    assert writers == []


def uses_database(request: pytest.FixtureRequest) -> bool:
    marked = request.node.get_closest_marker("django_db") is not None
    return marked or not {"db", "transactional_db"}.isdisjoint(request.fixturenames)


@pytest.fixture
def project(db: None) -> Project:
    return Project.objects.create(slug="snakes", repository="/nowhere", hook_secret="a secret")


@pytest.fixture
def benchmark() -> Benchmark:
    return manifest.parse_manifest(MANIFEST, "test").benchmarks["tiny"]


@pytest.fixture
def case(project: Project, benchmark: Benchmark) -> Case:
    first = benchmark.cases[0]
    return project.cases.create(benchmark="tiny", key=first.key, params=dict(first.params))


@pytest.fixture
def make_commit(project: Project) -> Callable[[int], Commit]:
    def make(position: int) -> Commit:
        return project.commits.create(
            hash=f"{position:040x}", branch="main", position=position, committed_at=timezone.now()
        )

    return make


@pytest.fixture
def run(make_commit: Callable[[int], Commit], case: Case, benchmark: Benchmark) -> Run:
    return runs.request_run(make_commit(1), case, benchmark)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The tasks that would be sent: their transport has tests of its own."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(dispatch, "send_task", lambda *call: calls.append(call))
    return calls


class Repository:
    """A git repository with a work tree, made of real commits."""

    def __init__(self, folder: Path) -> None:
        """An empty one, or the one that is in the folder."""
        self.folder = folder
        if not folder.exists():
            folder.mkdir()
            # Each test copies it: without a dozen examples of hooks.
            self.git("init", "--quiet", "--initial-branch=main", "--template=")
            (folder / ".git" / "hooks").mkdir()
            # No second process behind each commit, to see whether there is anything to clear up.
            with (folder / ".git" / "config").open("a") as config:
                config.write("[maintenance]\n\tauto = false\n")

    def git(self, *arguments: str, stdin: str | None = None, **environment: str) -> str:
        who = {"NAME": "Ada", "EMAIL": "ada@example.org"}
        identity = {f"GIT_{role}_{key}": who[key] for role in ("AUTHOR", "COMMITTER") for key in who}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **identity, **environment},
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, subject: str, **files: str) -> str:
        """Commit files (their names with `_` for `.`) and return the hash."""
        for name, text in files.items():
            (self.folder / name.replace("_", ".")).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.read_head()

    def read_head(self) -> str:
        """The hash that was checked out or committed last, without a process."""
        head = (self.folder / ".git" / "HEAD").read_text().strip()
        branch = head.removeprefix("ref: ")
        return head if branch == head else (self.folder / ".git" / branch).read_text().strip()

    def commit_line(self, *commits: tuple[str, Mapping[str, str]]) -> list[str]:
        """Commit one behind the other onto `main`, as `commit` does with subject and files; their hashes.

        All by one process.
        """
        who = f"Ada <ada@example.org> {int(time.time())} +0000"
        stream = []
        for mark, (subject, files) in enumerate(commits, start=1):
            parent = "refs/heads/main^0" if mark == 1 else f":{mark - 1}"
            stream.append(f"commit refs/heads/main\nmark :{mark}\ncommitter {who}\n{data_command(subject)}\n")
            stream.append(f"from {parent}\n")
            for name, text in files.items():
                stream.append(f"M 100644 inline {name.replace('_', '.')}\n{data_command(text)}\n")
            stream.append(f"\nget-mark :{mark}\n")
        hashes = self.git("fast-import", "--quiet", stdin="".join(stream)).split()
        self.git("reset", "--quiet", "--hard", "main")
        return hashes


def data_command(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


@pytest.fixture(scope="session")
def two_commits(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """What each test's `repository` begins as."""
    made = Repository(tmp_path_factory.mktemp("template") / "repository")
    made.commit("Begin", train_py="print(1)\n")
    made.commit("Add a manifest", paceline_toml=MANIFEST)
    return made


def copy_repository(made: Repository, folder: Path) -> Repository:
    return Repository(shutil.copytree(made.folder, folder, symlinks=True))


@pytest.fixture
def repository(tmp_path: Path, two_commits: Repository) -> Repository:
    """Two commits; the first has no manifest yet."""
    return copy_repository(two_commits, tmp_path / "repository")


@pytest.fixture(scope="module")
def shared_repository(tmp_path_factory: pytest.TempPathFactory, two_commits: Repository) -> Repository:
    """The same two commits, for all tests of a module."""
    return copy_repository(two_commits, tmp_path_factory.mktemp("shared") / "repository")


@pytest.fixture
def tracked(repository: Repository, project: Project) -> Project:
    """The project of that repository."""
    project.repository = str(repository.folder)
    project.save()
    return project


@pytest.fixture
def stopped_clock(db: None) -> None:
    """Stop PostgreSQL's clock within the test's transaction: on a busy machine a second passes anywhere."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz"
            " STABLE LANGUAGE sql AS 'SELECT now()'"
        )
        # Named behind it, the catalog's own functions give way.
        cursor.execute("SET LOCAL search_path = public, pg_catalog")
