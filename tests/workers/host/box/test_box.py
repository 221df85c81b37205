"""What a box gives and what it says of itself; test_hostile_code tries to break out of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from paceline import document

from tests.workers.conftest import MANIFEST, TRAIN
from tests.workers.host.boxes import KINDS, SMALL, Cell, small_box
from workers.host.box import box, cgroup, mounts
from workers.host.box.box import ACCOUNT, Box, BoxError, BoxView, Sandbox
from workers.host.box.launcher import identity_map
from workers.host.environments.pip_options import CONFIGURATIONS, index_options, index_ports, list_sources
from workers.host.errors import BuildError, CrashError
from workers.host.execution import launching
from workers.host.logs import Log
from workers.host.processes.process_tree import REAPER, ProcessResult

PARENTS = cgroup.GroupParents({"memory": (2, Path("/sys/fs/cgroup")), "pids": (2, Path("/sys/fs/cgroup"))})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(params=KINDS)
def cell(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Cell:
    return Cell(small_box(request.param, home), tmp_path).prepare()


@pytest.mark.parametrize("status", [0, 3])
def test_the_exit_status_is_the_commands(cell: Cell, status: int) -> None:
    assert cell.run(f"import sys; sys.exit({status})").result == ProcessResult(status)


def test_a_signal_is_told_as_a_shell_tells_it(cell: Cell) -> None:
    assert cell.run("import os; os.kill(os.getpid(), 11)").result.status == 128 + 11


def test_a_command_that_is_missing_is_named(cell: Cell) -> None:
    with cell.box.wrap_command(["/no/such/python"], cell.checkout, cell.view(), {}) as boxed:
        assert boxed.command[-1] == "/no/such/python"
    code = "import os; os.execv('/no/such/python', ['python'])"
    assert "FileNotFoundError" in cell.run(code).printed


def test_the_pipe_of_standard_input_is_open_until_the_end(cell: Cell) -> None:
    code = "import select; print(select.select([0], [], [], 0.2)[0])"
    assert cell.run(code).printed.strip() == "[]"


def test_it_writes_beside_its_code_and_nothing_of_it_stays(cell: Cell) -> None:
    code = """
import os
for path in ('runs/1', 'package/cache'):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, 'w').write('x')
os.unlink('train.py')
print(sorted(os.listdir('.')))
"""
    printed = cell.run(code).printed.strip()
    # A kernel that allows no layer over the checkout leaves it read-only.
    assert printed == "['package', 'runs']" if cell.box.layers else "Read-only file system" in printed
    assert sorted(path.name for path in cell.checkout.rglob("*")) == ["package", "train.py"]


def test_what_is_written_into_the_scratch_folder_stays(cell: Cell) -> None:
    cell.run("open('../../scratch/document.json', 'w').write('{}')")
    assert (cell.scratch / "document.json").read_text() == "{}"


def test_its_home_and_temporary_folder_go_with_it(cell: Cell) -> None:
    code = "import os\nfor name in ('HOME', 'TMPDIR'): open(os.environ[name] + '/file', 'w').write('x')"
    assert cell.run(code).result == ProcessResult(0)
    assert [list((cell.scratch / name).iterdir()) for name in ("home", "tmp")] == [[], []]


def test_it_serves_and_asks_on_a_loopback_of_its_own(cell: Cell) -> None:
    code = """
import socket
with socket.create_server(('127.0.0.1', 8000)) as server:
    socket.create_connection(server.getsockname(), timeout=2)
print([name for _, name in socket.if_nameindex()])
"""
    assert cell.run(code).printed.strip() == "['lo']"


def test_shared_memory_is_there_for_data_loaders(cell: Cell) -> None:
    code = "from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=2**20)"
    assert cell.run(f"{code}; print(m.size); m.unlink()").printed.startswith("1048576")


def test_it_runs_as_an_account_with_a_name_and_no_capabilities(cell: Cell) -> None:
    code = "import os, pwd; print(os.getuid(), pwd.getpwuid(os.getuid()).pw_name, os.getgroups())"
    own = ACCOUNT if os.geteuid() == 0 else os.geteuid()
    assert cell.run(code).printed.startswith(f"{own} measured")
    code = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('CapEff')])"
    assert cell.run(code).printed.strip() == "['0000000000000000']"


def test_what_was_made_under_a_strict_umask_is_read(cell: Cell, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        strict = Cell(cell.box, tmp_path / "strict").prepare()
        assert strict.run("print(open('train.py').read())").printed.strip() == "print('trained')"
    finally:
        os.umask(before)


def test_the_machines_load_is_seen_and_its_processes_are_not(cell: Cell) -> None:
    code = """
import os
print(len([name for name in os.listdir('/proc') if name.isdigit()]) <= 3)
print(open('/proc/loadavg').read().count('.'), 'cpu0' in open('/proc/stat').read())
print(os.path.exists('/sys/devices/system/cpu/online'))
"""
    assert cell.run(code).printed.split() == ["True", "3", "True", "True"]


@pytest.mark.parametrize("kind", KINDS)
def test_two_boxes_take_their_steps_in_turn(kind: str, home: Path, tmp_path: Path) -> None:
    opened, found = small_box(kind, home), list[bytes]()

    def measure_side(name: str) -> None:
        (tmp_path / f"scratch-{name}").mkdir()
        code = write_code(tmp_path / f"code-{name}")
        what = replace(tiny_measurement(code), turns=tmp_path / name)
        scratch = tmp_path / f"scratch-{name}"
        found.append(launching.run_harness(what, scratch, Log(), threading.Event(), opened))

    threads = [threading.Thread(target=measure_side, args=[name]) for name in launching.TURNS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [document.read_document(written).metric("step_time") is not None for written in found] == [
        True
    ] * 2


def write_code(checkout: Path, script: str = TRAIN) -> Path:
    """A checkout with the tiny benchmark."""
    checkout.mkdir(exist_ok=True)
    (checkout / "paceline.toml").write_text(MANIFEST)
    (checkout / "train.py").write_text(script)
    return checkout


def tiny_measurement(checkout: Path) -> launching.Measurement:
    python = Path(sys.executable)
    return launching.Measurement("tiny", {}, 1, False, 60, checkout, python, without=launching.TIMED_ONLY)


def measure_tiny(checkout: Path, home: Path, opened: Box, script: str = TRAIN) -> bytes:
    """A whole measurement by the harness."""
    what = tiny_measurement(write_code(checkout, script))
    with launching.scratch_folder(home, "gpu-1") as scratch:
        return launching.run_harness(what, scratch, Log(), threading.Event(), opened)


def test_the_harness_measures_in_a_box(home: Path, tmp_path: Path) -> None:
    """In the one that a machine without bubblewrap gives; executors' tests measure in the other one."""
    slow = TRAIN.replace("sum(range(1000))", "__import__('time').sleep(0.04)")
    opened = small_box("namespaces", home)
    measured = document.read_document(measure_tiny(tmp_path / "code", home, opened, slow))
    assert measured.metric("step_time") is not None
    # What the sampler reads of other processes, it reads of those in its box.
    channels = {row["channel"] for row in measured.raw["telemetry"]}
    assert channels >= {"cpu_utilization", "memory", "memory_pss", "threads", "disk_write"}


def test_who_needs_too_much_memory_is_told_so(home: Path, tmp_path: Path) -> None:
    opened = small_box("namespaces", home)
    hog = "held = [bytearray(2**24) for _ in range(60)]"
    expected = "more memory than the 400 MiB" if opened.groups.limits_memory else "MemoryError"
    with pytest.raises(CrashError, match=expected):
        measure_tiny(tmp_path / "code", home, opened, hog)


def test_a_box_that_can_not_be_made_is_told_in_one_sentence(home: Path, tmp_path: Path) -> None:
    held = Cell(small_box("namespaces", home), tmp_path).prepare()
    view = BoxView(writable=[held.scratch], private=[tmp_path / "missing"], layered=held.checkout)
    with held.box.wrap_command(["/bin/true"], held.checkout, view, {}) as boxed:
        ended = subprocess.run(boxed.command, capture_output=True, text=True, check=False)
    assert ended.returncode == 125
    sentence = f"paceline: the box could not be made: No such file or directory (mount {tmp_path}/missing)\n"
    assert ended.stdout == sentence


def test_what_is_in_force_is_described(home: Path) -> None:
    described = small_box("namespaces", home).describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["kind"], described["network"], described["processes"]) == ("namespaces", "none", 48)
    assert Box(Sandbox(mode="off")).describe()["kind"] == "none"


def test_without_a_box_a_command_is_as_it_was(tmp_path: Path) -> None:
    with box.NO_BOX.wrap_command(["/bin/true"], tmp_path, BoxView(writable=[tmp_path]), {}) as boxed:
        assert boxed.command == ["/bin/true"]


def test_off_gives_none_and_asks_nothing(tmp_path: Path) -> None:
    assert not box.open_box(Sandbox(mode="off"), tmp_path / "never-made").encloses
    assert not (tmp_path / "never-made").exists()


def test_strict_refuses_where_memory_has_no_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    give_box(monkeypatch, Box(SMALL, "namespaces"))
    with pytest.raises(BoxError, match=r"PACELINE_SANDBOX=strict asks for: a limit on the memory of all"):
        box.open_box(Sandbox(mode="strict", processes=1), tmp_path)


def test_strict_takes_a_whole_box(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    give_box(monkeypatch, Box(SMALL, "namespaces", groups=PARENTS))
    assert box.open_box(Sandbox(mode="strict", processes=2), tmp_path).encloses


@pytest.mark.parametrize("mode", ["strict", "available"])
def test_root_measures_nothing_without_a_box(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: Any
) -> None:
    give_box(monkeypatch, None)
    monkeypatch.setattr(box.os, "geteuid", lambda: 0)
    with pytest.raises(BoxError, match=r"(it won't do; it won't do|PACELINE_SANDBOX=off)"):
        box.open_box(Sandbox(mode=mode, processes=3), tmp_path)


def test_others_measure_without_one_where_they_may(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    give_box(monkeypatch, None)
    monkeypatch.setattr(box.os, "geteuid", lambda: 1000)
    assert box.open_box(Sandbox(processes=4), tmp_path).describe()["kind"] == "none"


def give_box(monkeypatch: pytest.MonkeyPatch, found: Box | None) -> None:
    """Let a machine give this box and no other."""

    def try_kind(kind: str, sandbox: Sandbox, home: Path, reasons: list[str]) -> Box | None:
        reasons.append("it won't do")
        return found

    monkeypatch.setattr(box, "try_kind", try_kind)


def test_settings_are_read_from_variables() -> None:
    variables = {"PACELINE_SANDBOX": "strict", "PACELINE_SANDBOX_MEMORY": "8G", "PACELINE_SANDBOX_FILES": "7"}
    assert box.read_sandbox(variables) == Sandbox(mode="strict", memory=8 * 1024**3, files=7)
    assert box.read_sandbox({}) == Sandbox()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PACELINE_SANDBOX", "on"),
        ("PACELINE_SANDBOX_NETWORK", "yes"),
        ("PACELINE_SANDBOX_MEMORY", "8 GB"),
        ("PACELINE_SANDBOX_PROCESSES", "0"),
    ],
)
def test_a_wrong_setting_is_named(variable: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{variable} must be"):
        box.read_sandbox({variable: value})


def test_devices_are_those_of_drivers_and_no_disks(tmp_path: Path) -> None:
    for name in ("null", "nvidia0", "nvidiactl", "sda", "mem", "tty"):
        (tmp_path / name).touch()
    shown = [words[0] for kind, *words in mounts.device_mounts(tmp_path) if kind == "device"]
    assert shown == ["/dev/null", "/dev/nvidia0", "/dev/nvidiactl"]


def test_groups_that_may_use_a_device_are_kept(tmp_path: Path) -> None:
    for name, mode in (("kfd", 0o660), ("nvidia0", 0o666), ("dri/card0", 0o660), ("sda", 0o660)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    own = os.getegid()
    assert mounts.device_groups(tmp_path) == ([own] if own else [])
    assert identity_map(ACCOUNT, 0, [44]) == "0 0 1\n65530 65530 1\n44 44 1\n"


def test_outer_folders_are_shown_before_those_in_them(tmp_path: Path) -> None:
    scratch, harness = tmp_path / "scratch", tmp_path / "scratch" / "harness"
    view = BoxView(read_only=[harness, Path("/usr/lib/python3")], writable=[scratch])
    own = [mount for mount in mounts.folder_mounts(view, {}) if str(tmp_path) in mount[2]]
    assert [(target, writable) for _, _, target, writable in own] == [
        (str(scratch), True),
        (str(harness), False),
    ]


def test_pip_is_told_by_options_how_packages_are_reached() -> None:
    variables = {
        "PIP_INDEX_URL": "https://a/simple",
        "PIP_EXTRA_INDEX_URL": "https://b https://c",
        "PIP_NO_INDEX": "1",
        "PIP_PRE": "false",
        "PIP_TARGET": "/elsewhere",
    }
    assert index_options(variables) == [
        *("--index-url", "https://a/simple", "--extra-index-url", "https://b"),
        *("--extra-index-url", "https://c", "--no-index"),
    ]


def test_a_build_reaches_the_ports_of_its_index_and_proxy() -> None:
    variables = {
        "PIP_INDEX_URL": "http://index:3141/root",
        "https_proxy": "10.0.0.1:3128",
        "A": "b://c:9",
    }
    assert index_ports(variables, [Path("/missing")]) == [22, 53, 80, 443, 3128, 3141]


def test_a_password_of_an_index_is_not_shown_to_packages() -> None:
    with pytest.raises(BuildError, match="PIP_INDEX_URL of the measuring machine holds a password"):
        index_options({"PIP_INDEX_URL": "https://user:secret@host/simple"})


def test_packages_that_lie_on_this_machine_are_seen_by_a_build(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    configuration = tmp_path / "pip.conf"
    configuration.write_text(f"[global]\nfind-links = {tmp_path}/wheels\nlog = {tmp_path}\n")
    assert list(list_sources({}, [configuration])) == [configuration, tmp_path / "wheels"]
    private = {"PIP_CACHE_DIR": str(tmp_path), "PIP_CONFIG_FILE": str(configuration)}
    assert list(list_sources(private, [Path("/missing")])) == []
    configuration.write_text("[global]\nindex-url = https://me:secret@host/simple\n")
    assert list(list_sources({}, [configuration])) == []


def test_a_build_sees_all_configurations_of_pip_for_the_whole_machine(tmp_path: Path) -> None:
    listed = (
        "from pip._internal.configuration import get_configuration_files as files\nprint(*files()['global'])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "XDG_CONFIG_DIRS"}
    read = subprocess.check_output([sys.executable, "-c", listed], text=True, env=environment).split()
    assert sorted(read) == sorted(str(path) for path in CONFIGURATIONS)
    for name in ("first", "second"):
        (tmp_path / name).write_text(f"[global]\nconstraint = {tmp_path}/{name}.txt\n")
        (tmp_path / f"{name}.txt").touch()
    both = [tmp_path / "first", tmp_path / "second"]
    told = [both[0], both[1], tmp_path / "first.txt", tmp_path / "second.txt"]
    assert list(list_sources({}, both)) == told


STARTED = """
import sys
exec(open(sys.argv[1]).read(), {"__name__": "launcher"})
assert "ctypes" in sys.modules
slow = {"contextlib", "json", "pathlib", "re", "socket", "subprocess", "typing"}
print(*sorted(slow & set(sys.modules)))
"""


@pytest.mark.parametrize("started", [mounts.LAUNCHER, REAPER])
def test_what_starts_commands_imports_nothing_that_is_slow(started: Path) -> None:
    """Each command in a box waits for three of its starts."""
    command = [sys.executable, "-I", "-S", "-c", STARTED, str(started)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
