"""A site and a host as two accounts that share nothing but loopback: a commit is measured all the same."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from dashboard import hosts, runs
from dashboard.models import Machine, Run
from dashboard.services.accounts import unprivileged_account
from tests.processes import CHECKOUT
from tests.workers.conftest import Requested, requested
from tests.workers.waiting import wait_until

__all__ = ["requested"]

# All that a host has of this code.
CODE = (
    *("workers", "trainers/harness/src/paceline", "dashboard/repositories", "dashboard/host_protocol"),
    *("dashboard/structured_logs.py", "dashboard/heartbeat_file.py", "dashboard/__init__.py"),
)


@pytest.fixture
def account() -> pwd.struct_passwd:
    """One that owns nothing of the site; who isn't root has only their own, and shares the account."""
    uid = unprivileged_account().uid if os.getuid() == 0 else os.getuid()
    return pwd.getpwuid(uid)


@pytest.fixture
def host_folder(account: pwd.struct_passwd) -> Iterator[Path]:
    """The account's own, with a copy of the code: the site's checkout may be where it can't look."""
    folder = Path(tempfile.mkdtemp(prefix="paceline-host-"))
    for name in CODE:
        copy = shutil.copytree if (CHECKOUT / name).is_dir() else shutil.copy
        copy(CHECKOUT / name, folder / "code" / name)
    (folder / "home").mkdir()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid)
    yield folder
    shutil.rmtree(folder)


def test_a_host_of_another_account_measures_a_commit(
    live_server: LiveServer, requested: Requested, account: pwd.struct_passwd, host_folder: Path
) -> None:
    run = requested()
    code = hosts.create_join_code(runs.pool_named("default"), "a test")
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    # Neither HOME nor any other variable of the site's; of its packages the host's alone are imported.
    environment = {
        "PATH": os.defpath,
        "HOME": str(host_folder / "home"),
        "PYTHONPATH": f"{host_folder / 'code'}:{host_folder / 'code/trainers/harness/src'}:{libraries}",
        "PACELINE_JOIN_CODE": code,
        "PACELINE_SITE": live_server.url,
        "PACELINE_MACHINE": "gpu-9",
    }
    log = host_folder / "log"
    with log.open("wb") as output:
        agent = subprocess.Popen(
            [os.path.realpath(sys.executable), "-m", "workers.host", "run"],
            cwd=host_folder / "code",
            env=environment,
            stdout=output,
            stderr=output,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
        )
    try:
        wait_until(lambda: Run.objects.get(pk=run.pk).state in Run.TERMINAL, seconds=100)
    finally:
        agent.terminate()
        assert agent.wait(100) == 0, log.read_text()
    run.refresh_from_db()
    assert (run.state, run.reason) == ("done", ""), log.read_text()
    assert run.machine == Machine.objects.get(name="gpu-9")
    token = (host_folder / "home" / ".paceline-host" / "host.json").stat()
    assert (token.st_uid, token.st_mode & 0o777) == (account.pw_uid, 0o600)


def test_a_host_imports_nothing_of_the_site() -> None:
    """No Django, no database driver, nothing of the dashboard but what both sides share."""
    code = (
        "import os, sys; sys.argv = ['x', '--help']\n"
        "import workers.host.agent, workers.host.next_job, workers.host.execution.experiment_executor\n"
        "ours = {name for name in sys.modules if name.startswith(('dashboard.', 'workers.site'))}\n"
        "shared = ('dashboard.repositories', 'dashboard.host_protocol', 'dashboard.structured_logs', "
        "'dashboard.heartbeat_file')\n"
        "print(sorted(name for name in ours if not name.startswith(shared)))\n"
        "print(sorted({'django', 'psycopg', 'torch', 'numpy', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n[]\n"
