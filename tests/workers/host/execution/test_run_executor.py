"""One assignment from claim to document, with a real repository, database and harness."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from dashboard import runs
from dashboard.host_protocol import Lease, files_version
from dashboard.models import Document, Machine, Run, RunLog, Series
from tests.harness.strangers import UNCOMPILED
from tests.workers.conftest import MANIFEST, TRAIN, Host, Requested, join_host, request_run_at
from tests.workers.host.wheels import build_wheel
from tests.workers.repositories import commit_files, create_repository, head_commit
from tests.workers.scripts import UNDISTURBED
from tests.workers.waiting import wait_until
from workers.host import machine
from workers.host.box.box import NO_BOX
from workers.host.execution.run_executor import document_spool
from workers.host.site_api.spool import DocumentSpool

# Starts a process that outlives the harness, waits for the document and tampers with it.
TAMPER = """
import os, subprocess, sys

code = '''
import os, pathlib, time
document = pathlib.Path(os.environ["TMPDIR"]).parent / "document.json"
while not document.exists():
    time.sleep(0.001)
document.unlink()
document.symlink_to("/etc/hostname")
'''
subprocess.Popen([sys.executable, "-I", "-S", "-c", code], start_new_session=True)
"""
# Two ranks, started as a module, whose steps end with the optimizer's.
RANKS_MANIFEST = MANIFEST.replace(
    'script = "train.py"',
    'module = "package.train"\nauto = true\nstep = "optimizer"\nprocesses = 2',
)
RANKS_TRAIN = (
    UNCOMPILED
    + UNDISTURBED
    + """
import torch.distributed
from .sizes import WIDTH

torch.distributed.init_process_group("gloo")
layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(WIDTH, 1))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
while True:
    optimizer.zero_grad()
    layer(torch.ones(4, WIDTH)).sum().backward()
    optimizer.step()
"""
)
ENDLESS = TRAIN + "\nimport time\ntime.sleep(600)\n"


def execute_run(host: Host, run: Run) -> Run:
    """Execute it, as a message to its pool lets a worker do."""
    assert host.execute_next()
    run.refresh_from_db()
    return run


def test_the_whole_way_ends_with_a_document(
    host: Host, requested: Requested, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its box and its machine are kept with the run, and what is measured sees no address of ours.

    A harness in the checkout isn't the one that measures.
    """
    monkeypatch.setenv("SECRET_KEY", "hush")
    telling = "import os\nprint('uid', os.getuid())\nprint(sorted(os.environ))\n"
    trap = {"paceline/__init__.py": "raise SystemExit('the wrong one')", "paceline/__main__.py": ""}
    run = execute_run(host, requested({"train.py": telling + TRAIN, **trap}))
    assert (run.state, run.reason) == ("done", "")
    assert run.document.body["benchmark"]["params"] == {"size": 10}
    assert run.fingerprint == machine.take_fingerprint().as_dict()
    assert Machine.objects.get(name="gpu-1").fingerprint["cpu_count"] >= 1
    assert run.box
    assert (run.box["kind"] != "none", run.box["network"]) == (True, "none")
    assert f"uid {run.box['account']}" in run.log.text
    assert "TMPDIR" in run.log.text
    for name in ("DATABASE_URL", "BROKER_URL", "SECRET_KEY", "PACELINE_HOME", "DJANGO"):
        assert name not in run.log.text


def test_a_commit_that_changes_nothing_counted_is_not_counted(host: Host, requested: Requested) -> None:
    counted_twice = MANIFEST.replace("countings = 1\n", "")
    first = execute_run(host, requested({"paceline.toml": counted_twice, "notes.txt": "some"}))
    source = Path(first.commit.project.repository)
    unchanged = request_next(first, commit_files(source, {"notes.txt": "others"}))
    changed = request_next(unchanged, commit_files(source, {"train.py": TRAIN + "# more"}))
    for run in (unchanged, changed):
        execute_run(host, run)
    assert [run.counted_at for run in (first, unchanged, changed)] == ["", first.commit.hash, ""]
    parts = {run.pk: {cost.part: cost.seconds for cost in run.costs.all()} for run in (first, unchanged)}
    assert {"waiting", "checkout", "environment", "box", "start", "window"} <= set(parts[first.pk])
    assert "counting start" in parts[first.pk]
    assert "counting start" not in parts[unchanged.pk]


def request_next(run: Run, commit: str) -> Run:
    """The same configuration at the following commit."""
    before = run.commit
    following = before.project.commits.create(
        hash=commit, branch="main", position=before.position + 1, committed_at=before.committed_at
    )
    return runs.repeat_run(run, following)


def test_ranks_of_a_module_go_the_whole_way(host: Host, requested: Requested, client: Client) -> None:
    """In a box they meet on a loopback of their own."""
    package = {"__init__.py": "", "sizes.py": "WIDTH = 16\n", "train.py": RANKS_TRAIN}
    files = {f"package/{name}": text for name, text in package.items()}
    run = execute_run(host, requested({"paceline.toml": RANKS_MANIFEST, **files}))
    assert (run.state, run.reason) == ("done", "")
    assert run.box is not None
    body = run.document.body
    passes = {"forward": 1.0, "backward": 1.0, "optimizer": 1.0}
    assert body["step"] == {"kind": "optimizer", "owner": "SGD", "chosen": True, "passes": passes}
    assert [row["rank"] for row in body["ranks"]["rows"]] == [0, 1]
    names = set(Series.objects.filter(configuration=run.configuration).values_list("metric__name", flat=True))
    assert {"rank_spread", "collectives", "collective_bytes"} <= names
    shown = client.get(f"/runs/{run.pk}/").content.decode()
    assert "as the manifest chose" in shown
    assert 'id="ranks"' in shown


def test_a_message_without_a_run_does_nothing(host: Host, transactional_db: None) -> None:
    assert not host.execute_next()


def test_what_else_lies_in_the_spool_keeps_no_host_from_its_work(
    host: Host, transactional_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    spool = document_spool(host.configuration)
    late = spool.keep(Lease(1, 1, uuid4()), b"{}")
    draft, stray = late.with_suffix(".draft"), late.with_name("notes.json")
    for file in (draft, stray):
        file.write_text("{}")
    assert not host.execute_next()
    assert [file for file in (late, draft, stray) if file.exists()] == [stray]
    assert "No work could be asked for" not in caplog.text


def test_a_full_disk_keeps_no_part_of_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("workers.host.site_api.spool.os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        DocumentSpool(tmp_path).keep(Lease(1, 1, uuid4()), b"{}")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_claimed_while_the_machine_measures_or_its_disk_is_full(
    host: Host, requested: Requested, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = requested()
    with machine.lock_machine(host.home, "gpu-1"):
        assert not host.execute_next()
    monkeypatch.setattr("workers.host.next_job.LEAST_FREE_BYTES", 2**80)
    assert not host.execute_next()
    assert "No work is asked for: the disk of" in caplog.text
    run.refresh_from_db()
    assert run.state == "requested"


def test_a_crash_is_told_with_its_last_line(host: Host, requested: Requested) -> None:
    run = execute_run(host, requested({"train.py": "raise RuntimeError('no such snake')"}))
    assert (run.state, run.failure) == ("failed", "crash")
    assert run.reason == "train.py crashed with exit status 1: RuntimeError: no such snake"
    assert "Traceback" in run.log.text


def test_a_script_that_takes_no_step_is_no_crash(host: Host, requested: Requested) -> None:
    run = execute_run(host, requested({"train.py": "print('hello')"}))
    assert (run.state, run.failure) == ("failed", "no document")
    assert run.reason == (
        "train.py never iterated over paceline.steps: wrap its training loop in it, or time it as it is, "
        "with auto = true."
    )


def test_the_time_limit_is_told_and_ends_what_ran(host: Host, requested: Requested) -> None:
    limited = MANIFEST.replace("time_limit = 60", "time_limit = 1")
    run = execute_run(host, requested({"paceline.toml": limited, "train.py": ENDLESS}))
    assert (run.state, run.failure) == ("failed", "timeout")
    assert run.reason.startswith("tiny took longer than its time_limit of 1 s, ")
    assert processes_in(host.home) == []


def test_a_benchmark_that_ends_the_harness_is_told(host: Host, requested: Requested) -> None:
    hasty = "import os, signal, time; os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)"
    run = execute_run(host, requested({"train.py": hasty}))
    assert (run.state, run.failure, run.reason) == ("failed", "crash", "was ended by SIGTERM.")


def test_a_document_that_became_a_link_is_not_stored(host: Host, requested: Requested) -> None:
    """What else a document may have become, test_launching.py and test_forged_documents.py say."""
    run = execute_run(host, requested({"train.py": TAMPER + TRAIN}))
    assert (run.state, run.failure) == ("failed", "bad document")
    assert not Document.objects.exists()


def test_a_commit_that_does_not_exist_is_told(host: Host, tmp_path: Path, transactional_db: None) -> None:
    source = create_repository(tmp_path / "source", {"paceline.toml": MANIFEST})
    run = execute_run(host, request_run_at(source, "a" * 40, MANIFEST))
    assert (run.state, run.failure) == ("failed", "checkout")
    assert run.reason == "Commit aaaaaaaaaa is on no branch or tag of the repository."


def test_an_environment_that_cannot_be_built_is_told(host: Host, requested: Requested) -> None:
    failing = MANIFEST + '[environment]\nbuild = ["echo no compiler; exit 3"]\n'
    run = execute_run(host, requested({"paceline.toml": failing}))
    assert (run.state, run.failure) == ("failed", "environment")
    assert run.reason.endswith("ended with exit status 3: no compiler")
    assert "no compiler" in run.log.text


def test_the_environment_of_the_commit_is_the_one_that_is_measured(
    host: Host, requested: Requested, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A folder of the host's that builds may see, since its owner names it.
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    own = MANIFEST + '[environment]\nrequirements = ["requirements.txt"]\n'
    needed = build_wheel(tmp_path / "wheels", "tiny", "")
    files = {"paceline.toml": own, "requirements.txt": needed, "train.py": "import tiny\n" + TRAIN}
    run = execute_run(host, requested(files))
    assert (run.state, run.reason) == ("done", "")
    assert "building the environment of requirements.txt" in run.log.text
    # Memory is read with the worker's own instruments, which the commit does not require.
    assert run.document.body["repetitions"][0]["peak_memory"] > 0


KEPT_MANIFEST = """
[environment]
python_path = ["src"]
[benchmarks.tiny]
version = 1
script = "bench/train.py"
arguments = ["corpus={name}"]
params = { name = "small" }
steps = 33
counting_steps = 5
repetitions = 1
prepare = [
    { run = "python bench/prepare.py", reads = ["bench/*.py"], writes = ["data"], network = false },
]
"""
KEPT_FILES = {
    "bench/prepare.py": "import pathlib, code_of_theirs\npathlib.Path('data').mkdir(exist_ok=True)\n"
    "pathlib.Path('data/small.txt').write_text('a corpus')\n",
    "bench/train.py": "import sys, code_of_theirs\nassert sys.argv[1:] == ['corpus=small'], sys.argv\n"
    "assert open('data/small.txt').read() == 'a corpus'\n" + TRAIN,
}


def test_code_that_cannot_be_changed_is_measured(host: Host, requested: Requested) -> None:
    """By the manifest and with the files that the site keeps."""
    run = requested({"src/code_of_theirs.py": "", "paceline.toml": MANIFEST}, manifest=KEPT_MANIFEST)
    project = run.configuration.case.project
    for path, text in KEPT_FILES.items():
        project.kept_files.create(path=path, text=text)
    project.cases.update(params={"name": "small"}, key="name=small")
    # A document that the disk doesn't take is handed in all the same.
    (host.home / "spool").write_text("")
    run = execute_run(host, run)
    assert (run.state, run.reason) == ("done", "")
    assert run.document.body["protocol"]["steps"] == 33
    assert run.environment.values["kept_files"] == files_version(KEPT_FILES)
    assert "preparing the data: python bench/prepare.py" in run.log.text
    assert [path.read_text() for path in host.home.glob("prepared/*/files/data/small.txt")] == ["a corpus"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"paceline.toml": "steps = [\n"}, "can't be used: paceline.toml: is not valid TOML"),
        ({"paceline.toml": MANIFEST.replace("tiny", "other")}, "has no benchmark tiny"),
        (
            {"paceline.toml": MANIFEST.replace("train.py", "gone.py")},
            "'gone.py' is not a file of this commit",
        ),
    ],
)
def test_a_commit_that_cannot_be_measured_is_told(
    host: Host, tmp_path: Path, transactional_db: None, files: dict[str, str], words: str
) -> None:
    source = create_repository(tmp_path / "source", files)
    run = execute_run(host, request_run_at(source, head_commit(source), MANIFEST))
    assert (run.state, run.failure) == ("failed", "checkout")
    assert words in run.reason


def test_progress_and_log_arrive_until_a_cancelled_run_is_ended_with_its_whole_tree(
    host: Host, requested: Requested
) -> None:
    run = requested({"train.py": "print('hello', flush=True)\n" + ENDLESS})
    with executed_beside(host):
        wait_until(
            lambda: Run.objects.filter(pk=run.pk).exclude(activity="").exclude(activity="starting").exists()
        )
        wait_until(lambda: "repetition 1 of 1" in RunLog.objects.get(pk=run.pk).text)
        assert read_state(run) == "measuring"
        assert processes_in(host.home)
        runs.cancel_run(run.pk, by="Ada")
    assert read_state(run) == "cancelled"
    assert processes_in(host.home) == []
    assert not Document.objects.exists()


def test_without_a_box_nothing_is_measured_unless_its_owner_says_so(
    host: Host, requested: Requested, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.host.execution.executor.open_box", lambda *_: NO_BOX)
    run = execute_run(host, requested())
    assert (run.state, run.failure) == ("failed", "environment")
    assert run.reason.startswith("This machine gives no box for measured code: install bubblewrap there")
    owner = replace(host.configuration.owner, unboxed_project="demo")
    trusting = replace(host, configuration=replace(host.configuration, owner=owner))
    Run.objects.update(state="requested", lease_until=None, machine=None)
    run = execute_run(trusting, run)
    assert (run.state, run.box["kind"]) == ("done", "none")


@contextmanager
def executed_beside(host: Host) -> Iterator[None]:
    """The host executes what waits meanwhile."""
    executing = threading.Thread(target=host.execute_next)
    executing.start()
    try:
        yield
    finally:
        executing.join(100)
        assert not executing.is_alive()


def read_state(run: Run) -> str:
    return Run.objects.values_list("state", flat=True).get(pk=run.pk)


def processes_in(home: Path) -> list[int]:
    """Those that work in a checkout under this home."""
    pids = []
    for process in psutil.process_iter():
        try:
            if process.cwd().startswith(str(home)):
                pids.append(process.pid)
        except psutil.Error:
            continue
    return pids


def test_the_owners_limit_of_memory_holds(home: Path, live_server: LiveServer, requested: Requested) -> None:
    host = join_host(home / "host", live_server.url, "gpu-1", memory_bytes=500_000_000)
    run = execute_run(host, requested({"train.py": "bytearray(10**9)"}))
    assert (run.state, "MemoryError" in run.reason) == ("failed", True)
