"""Code that means harm, in a box of each kind: it ends as one clear failure, and the next run is clean."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import paceline
import psutil
import pytest
from paceline.manifest.environment_table import Environment

from tests.workers.host.boxes import KINDS, MIB, SMALL, TIME_LIMIT, Cell, small_box
from tests.workers.waiting import wait_until
from workers.host.environments.build_runner import BuildRunner, BuildStep
from workers.host.environments.shared_environments import Environments
from workers.host.execution import launching
from workers.host.logs import Log
from workers.host.processes.process_tree import ProcessResult

ROOT = Path(launching.__file__).parents[3]
SECRET = "the-token-of-this-machine"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(params=KINDS)
def cell(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Iterator[Cell]:
    """A box; afterwards nothing of it runs, and code runs in it as if nothing had been."""
    held = Cell(small_box(request.param, home), tmp_path).prepare()
    before = {process.pid for process in psutil.process_iter()}
    yield held
    left = [process for process in psutil.process_iter(["cmdline"]) if process.pid not in before]
    assert [
        process.info["cmdline"] for process in left if str(tmp_path) in str(process.info["cmdline"])
    ] == []
    for folder in (held.box.groups.by_controller or {}).values():
        assert list(folder[1].glob(f"paceline-box-{os.getpid()}-*")) == []
    after = Cell(held.box, tmp_path / "next").prepare().run("print(open('train.py').read())")
    assert (after.result, after.printed.strip()) == (ProcessResult(0), "print('trained')")


def test_a_fork_bomb_runs_out_of_processes(cell: Cell) -> None:
    ended = cell.run("import os\nwhile True: os.fork()")
    assert ended.result == ProcessResult(1)
    assert "Resource temporarily unavailable" in ended.printed


def test_a_bomb_of_threads_runs_out_of_them(cell: Cell) -> None:
    thread = "threading.Thread(target=time.sleep, args=[60], daemon=True).start()"
    ended = cell.run(f"import threading, time\nfor _ in range(99): {thread}")
    assert "can't start new thread" in ended.printed


def test_a_memory_hog_is_ended(cell: Cell) -> None:
    code = "held = []\nfor _ in range(60): held.append(bytearray(2**24))\nprint('held all')"
    ended = cell.run(code)
    assert ended.result.status in (1, 128 + 9)
    assert "held all" not in ended.printed


def test_a_crowd_has_one_limit_of_memory_where_groups_can_be_made_and_else_each_its_own(cell: Cell) -> None:
    # Each holds its memory until all do, or one has been ended.
    code = """
import os, select, signal
told, tell = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        held = b'x' * (100 * 2**20)
        print('held', flush=True)
        os.write(tell, b'x')
        signal.pause()
holding = 0
while holding < 6 and not os.waitpid(-1, os.WNOHANG)[0]:
    if select.select([told], [], [], 0.05)[0]:
        holding += len(os.read(told, 6))
"""
    held = cell.run(code).printed.count("held")
    assert held < 6 if cell.box.groups.limits_memory else held == 6


FILL = """
import os
for place in (os.environ['HOME'], '.', '/dev/shm'):
    try:
        with open(place + '/hog', 'wb') as file:
            while True: file.write(bytes(2**20))
    except OSError as error:
        print(place, error.strerror)
    # They may lie on one disk.
    os.unlink(place + '/hog')
for number in range(1000): open(f'/tmp/{number}', 'w')
"""


def test_a_disk_hog_and_files_without_end_find_the_disk_full(cell: Cell) -> None:
    ended = cell.run(FILL)
    assert ended.result == ProcessResult(1)
    assert ended.printed.count(" No space left on device\n") == 3
    assert "No space left on device: '/tmp/" in ended.printed


# Watched from outside of the box, whatever its kind.
@pytest.mark.parametrize(
    ("cell", "code"),
    [
        (KINDS[0], "open('../../scratch/hog', 'wb').write(bytes(24 * 2**20)); time.sleep(50)"),
        (KINDS[1], "[open(f'../../scratch/{number}', 'w') for number in range(700)]; time.sleep(50)"),
    ],
    indirect=["cell"],
)
def test_what_stays_on_the_machines_disk_is_watched(cell: Cell, code: str) -> None:
    assert cell.run(f"import time; {code}").result.exceeded == "folder"


def test_output_without_end_is_cut_off(cell: Cell) -> None:
    ended = cell.run("import os\nwhile True: os.write(1, b'x' * 65536)")
    assert ended.result.exceeded == "output"
    assert len(ended.printed) <= SMALL.output


def test_who_ignores_the_polite_signal_is_killed(cell: Cell) -> None:
    ended = cell.run(
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)",
        overdue_once_printed=True,
    )
    assert ended.result == ProcessResult(128 + 9, timed_out=True)


def test_who_heeds_the_polite_signal_may_end_by_itself(cell: Cell) -> None:
    code = """
import signal, sys, time
signal.signal(15, lambda *_: sys.exit(5))
print('listening', flush=True)
time.sleep(600)
"""
    assert cell.run(code, grace=30, overdue_once_printed=True).result == ProcessResult(5, timed_out=True)


def test_a_daemon_in_a_session_of_its_own_ends_with_the_box(cell: Cell) -> None:
    daemon = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "  os.setsid()\n"
        "  if os.fork(): os._exit(0)\n"
        "  while True: open('../../scratch/alive', 'a').write('x'); time.sleep(0.01)\n"
        "while not os.path.exists('../../scratch/alive'): time.sleep(0.01)"
    )
    assert cell.run(daemon).result == ProcessResult(0)
    size = (cell.scratch / "alive").stat().st_size
    time.sleep(0.1)
    assert (cell.scratch / "alive").stat().st_size == size


def test_killing_all_that_it_sees_kills_nobody_else(cell: Cell) -> None:
    code = """
import os, signal
own = os.getpid()
for pid in [1, os.getppid(), *(int(name) for name in os.listdir('/proc') if name.isdigit())]:
    if pid not in (0, own):
        try: os.kill(pid, signal.SIGKILL)
        except OSError: pass
try: os.kill(-1, signal.SIGKILL)
except OSError: pass
print(len([name for name in os.listdir('/proc') if name.isdigit()]))
raise SystemExit(7)
"""
    ended = cell.run(code)
    assert ended.result == ProcessResult(7)
    assert int(ended.printed) <= 3


@pytest.mark.parametrize("victim", ["reaper", "launcher"])
def test_a_box_whose_reaper_or_launcher_is_killed_ends(cell: Cell, victim: str) -> None:
    code = "import time\nwhile True: open('../../scratch/alive', 'a').write('x'); time.sleep(0.01)"
    running = threading.Thread(target=cell.run, args=(code,))
    running.start()
    wait_until((cell.scratch / "alive").exists)
    reapers = [
        child for child in psutil.Process().children() if "processes/reaper.py" in " ".join(child.cmdline())
    ]
    (reapers[0] if victim == "reaper" else reapers[0].children()[0]).kill()
    # Before its time limit is over.
    running.join(timeout=TIME_LIMIT - 10)
    assert not running.is_alive()
    time.sleep(0.1)
    size = (cell.scratch / "alive").stat().st_size
    time.sleep(0.1)
    assert (cell.scratch / "alive").stat().st_size == size


@pytest.mark.parametrize("kind", KINDS)
def test_a_box_whose_worker_is_killed_ends(kind: str, home: Path, tmp_path: Path) -> None:
    small_box(kind, home)
    command = [sys.executable, "-m", "tests.workers.host.boxed_worker", kind, str(home), str(tmp_path)]
    worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert worker.stdout
    assert worker.stdout.readline() == b"running\n"
    tree = psutil.Process(worker.pid).children(recursive=True)
    worker.kill()
    worker.communicate()
    psutil.wait_procs(tree, timeout=60)
    assert [process for process in tree if process.is_running()] == []


READ_ALL = """
import glob, os
names = ('environ', 'cmdline', 'root')
for path in [path for name in names for path in glob.glob('/proc/*/' + name)] + ['/proc/1/mem']:
    try:
        print(path, open(path, 'rb').read(10**6) if not path.endswith('root') else os.listdir(path))
    except OSError as error:
        print(path, error.strerror)
"""
READ_FILES = """
import os
for path in {paths}:
    print(path, os.access(path, os.R_OK))
"""
WRITE_FILES = """
import os
for path in {paths}:
    for act in ('open(path, "a").write("#")', 'os.unlink(path)', 'open(path, "w").write("#")'):
        try: exec(act)
        except OSError: pass
"""
CONNECT = """
import socket
for family, address in {addresses}:
    try:
        with socket.socket(getattr(socket, family)) as asked:
            asked.settimeout(2)
            asked.connect(tuple(address) if isinstance(address, list) else address)
            print('connected', address)
    except OSError as error:
        print('refused', address, error.strerror)
"""


PRIVILEGED = """
import ctypes
libc = ctypes.CDLL(None)
print([
    libc.unshare(0x10000000),
    libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None),
    libc.umount2(b'/dev/shm', 2),
    libc.setuid(0),
    libc.ptrace(16, 1, 0, 0),
    libc.sethostname(b'hostile', 7),
    libc.mknod(b'/tmp/disk', 0o60666, 0xfe00),
])
"""


def test_nothing_of_the_machine_is_read_reached_or_changed_and_no_privilege_won(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACELINE_TOKEN", SECRET)
    hidden, used_again = hidden_files(cell), used_files(cell)
    before = {path: path.read_bytes() for path in used_again if path.exists()}
    with out_of_reach(cell) as addresses:
        attacks = {
            "processes": READ_ALL,
            "files": READ_FILES.format(paths=hidden),
            "addresses": CONNECT.format(addresses=addresses),
            "writing": WRITE_FILES.format(paths=[str(path) for path in used_again]),
            "privileges": PRIVILEGED,
        }
        ended = cell.run("".join(f"print('--- {name}')\n{code}" for name, code in attacks.items()))
    assert ended.result == ProcessResult(0)
    parts = (part.partition("\n") for part in ended.printed.split("--- ")[1:])
    told = {name: lines for name, _, lines in parts}
    assert SECRET not in ended.printed
    assert "/proc/1/environ Permission denied" in told["processes"]
    assert told["files"].splitlines() == [f"{path} False" for path in hidden]
    answers = [line.partition(" ")[0] for line in told["addresses"].splitlines()]
    assert answers == ["refused"] * len(addresses)
    assert "Network is unreachable" in told["addresses"]
    assert {path: path.read_bytes() for path in used_again if path.exists()} == before
    assert json.loads(told["privileges"]) == [-1] * 7


def hidden_files(cell: Cell) -> list[str]:
    """Of this machine, and of others that are measured on it."""
    other = cell.machine / "worktrees" / "other" / "train.py"
    token = cell.machine / "token"
    other.parent.mkdir()
    for path in (other, token):
        path.write_text(SECRET)
    (cell.checkout / "link").symlink_to(token)
    (cell.checkout / "up").symlink_to("../..")
    hidden = [str(other), str(token), "link", "up/token", __file__]
    hidden += ["/etc/shadow", "/root", "/home", "/var/lib", str(Path.home() / ".ssh"), "/dev/mem"]
    hidden += [f"/proc/1/{name}" for name in ("root", "mem", "cwd")]
    return hidden + [str(device) for device in Path("/dev").iterdir() if device.is_block_device()]


def used_files(cell: Cell) -> list[Path]:
    """What the next run uses again."""
    (cell.checkout / ".git").write_text("gitdir: /somewhere")
    packages = Path(psutil.__file__).parent.parent
    harness = [Path(paceline.__file__), Path(psutil.__file__), packages / "sitecustomize.py"]
    system = [Path(sys.prefix, "pyvenv.cfg"), Path("/etc/pip.conf"), Path("/etc/passwd")]
    code = [cell.checkout / ".git", cell.checkout / "train.py", cell.machine / "worktrees" / "new"]
    return [*harness, *system, *code]


@contextmanager
def out_of_reach(cell: Cell) -> Iterator[list[list[object]]]:
    """Addresses where this machine, and others, would answer."""
    with (
        socket.create_server(("127.0.0.1", 0)) as loopback,
        socket.socket(socket.AF_UNIX) as path,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        path.bind(str(cell.machine / "redis"))
        abstract.bind(f"\0paceline-{os.getpid()}")
        for listening in (path, abstract):
            listening.listen()
        yield [
            ["AF_INET", ["127.0.0.1", loopback.getsockname()[1]]],
            ["AF_INET", ["192.0.2.1", 80]],
            ["AF_UNIX", str(cell.machine / "redis")],
            ["AF_UNIX", f"\0paceline-{os.getpid()}"],
        ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_of_the_host_is_reached_where_its_owner_allows_it(
    kind: str, home: Path, tmp_path: Path
) -> None:
    held = Cell(small_box(kind, home, replace(SMALL, network="all")), tmp_path).prepare()
    with socket.create_server(("127.0.0.1", 0)) as loopback:
        addresses = [["AF_INET", ["127.0.0.1", loopback.getsockname()[1]]]]
        assert held.run(CONNECT.format(addresses=addresses)).printed.startswith("connected")


@pytest.mark.parametrize("kind", KINDS)
def test_a_build_reaches_its_index_and_no_service_beside_it(kind: str, home: Path, tmp_path: Path) -> None:
    held = Cell(small_box(kind, home), tmp_path).prepare()
    with (
        socket.create_server(("127.0.0.1", 0)) as index,
        socket.create_server(("127.0.0.1", 0)) as redis,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        abstract.bind(f"\0paceline-index-{os.getpid()}")
        abstract.listen()
        ports = [listening.getsockname()[1] for listening in (index, redis)]
        addresses = [["AF_INET", ["127.0.0.1", port]] for port in ports]
        addresses += [["AF_UNIX", f"\0paceline-index-{os.getpid()}"]]
        view = replace(held.view(), network=True, ports=ports[:1])
        lines = held.run(CONNECT.format(addresses=addresses), view=view).printed.splitlines()
    answers = [line.partition(" ")[0] for line in lines]
    # A kernel without rules on ports lets a build reach them all: the box says so where it is described.
    assert answers[0] == "connected"
    assert answers[1:] == ["refused" if held.box.limits_ports else "connected"] * 2


def test_a_folder_deeper_than_python_goes_is_removed(tmp_path: Path) -> None:
    with launching.scratch_folder(tmp_path, "gpu-1") as scratch:
        descriptor = os.open(scratch, os.O_RDONLY)
        for _ in range(2000):
            os.mkdir("deep", dir_fd=descriptor)
            inner = os.open("deep", os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        os.close(descriptor)
    assert not scratch.parent.exists()


HOSTILE_BUILD = """
import glob, os, socket
found = {"environment": sorted(os.environ), "secret": []}
for path in [*glob.glob("/proc/*/environ"), %(token)r]:
    try: found["secret"] += [path] if %(secret)r in open(path, errors="replace").read() else []
    except OSError: pass
for path in %(targets)r:
    try: open(path, "a").write("hostile")
    except OSError as error: pass
try:
    socket.create_connection(("127.0.0.1", %(port)d), timeout=2)
    found["secret"].append("network")
except OSError: pass
print(found)
"""
SETUP = (
    HOSTILE_BUILD
    + """
from setuptools import setup
site = glob.glob(%(folder)r + "/*/lib/python*/site-packages")[0]
for name, target in (("paceline-environment.json.draft", %(token)r), ("bin/lent", "/")):
    try: os.symlink(target, os.path.join(site, "../../..", name))
    except FileExistsError: pass
setup(name="hostile", version="1.0")
"""
)


@dataclass(frozen=True)
class HostileBuild:
    """What code that means harm is told of this machine, and what may not change."""

    values: dict[str, object]
    before: dict[str, bytes]

    def is_harmless(self) -> bool:
        return {path: Path(path).read_bytes() for path in self.before} == self.before


@pytest.fixture
def hostile_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostileBuild]:
    monkeypatch.setenv("PACELINE_TOKEN", SECRET)
    token, requirements = tmp_path / "token", tmp_path / "checkout" / "requirements.txt"
    requirements.parent.mkdir()
    token.write_text(SECRET)
    requirements.write_text("--no-index\n--find-links wheels\nhostile\n")
    targets = [str(token), sys.prefix + "/pyvenv.cfg", str(requirements), paceline.__file__]
    before = {path: Path(path).read_bytes() for path in targets}
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        folder = str(tmp_path / "home" / "environments")
        values = {"token": str(token), "secret": SECRET, "targets": targets, "folder": folder, "port": port}
        yield HostileBuild(values, before)


def build_runner(kind: str, home: Path, tmp_path: Path) -> BuildRunner:
    box = small_box(kind, home, type(SMALL)(network="none", build_disk=400 * MIB))
    return BuildRunner(tmp_path / "home", Log(), box=box, host_variables={"PIP_INDEX_URL": "x"})


@pytest.mark.parametrize("kind", KINDS)
def test_a_build_sees_no_secret(kind: str, tmp_path: Path, home: Path, hostile_build: HostileBuild) -> None:
    runner = build_runner(kind, home, tmp_path)
    step = BuildStep(tmp_path / "home" / "environments" / "new", tmp_path / "checkout")
    runner.make_folders(step)
    runner.execute([sys.executable, "-I", "-S", "-c", HOSTILE_BUILD % hostile_build.values], step)
    printed = runner.log.finish()
    assert "'secret': []" in printed
    assert "'HOME'" in printed
    assert "PIP_INDEX_URL" not in printed
    assert hostile_build.is_harmless()


def test_a_build_of_a_package_changes_nothing_but_its_environment(
    tmp_path: Path, home: Path, hostile_build: HostileBuild
) -> None:
    checkout = tmp_path / "checkout"
    write_source_package(checkout / "wheels", SETUP % hostile_build.values)
    environments = Environments(build_runner(KINDS[0], home, tmp_path))
    environments.base(checkout, Environment(("requirements.txt",)))
    marks = list((tmp_path / "home" / "environments").glob("*/paceline-environment.json"))
    assert [json.loads(mark.read_text())["requirements"] for mark in marks]
    assert hostile_build.is_harmless()


def write_source_package(folder: Path, setup: str) -> None:
    """A source distribution `hostile` whose setup.py is this code."""
    package = folder / "hostile-1.0"
    package.mkdir(parents=True)
    (package / "setup.py").write_text(setup)
    (package / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: hostile\nVersion: 1.0\n")
    with tarfile.open(folder / "hostile-1.0.tar.gz", "w:gz") as archive:
        archive.add(package, "hostile-1.0")
