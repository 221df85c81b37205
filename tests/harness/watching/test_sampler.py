import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from paceline.system import processes
from paceline.watching import nvml, process_tree, process_usage
from paceline.watching.nvml import Devices
from paceline.watching.process_tree import WALK_EVERY, LabelUsage, ProcessTree, TreeReading
from paceline.watching.process_usage import ProcessUsage
from paceline.watching.sampler import LABELS_LIMIT, VALUES_LIMIT, Sampler

from tests.harness.fake_nvml import Device, FakeNvml


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def probe_fake(*fakes: Device, monkeypatch: pytest.MonkeyPatch) -> Devices:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(list(fakes)))
    return nvml.probe_devices({})


def make_sampler(clock: Clock, devices: Devices | None = None) -> Sampler:
    return Sampler(ProcessTree(os.getpid()), devices or Devices(), clock.now, 0.1, clock)


def take_samples(sampled: Sampler, clock: Clock, *moments: float) -> None:
    for moment in moments:
        clock.now = 100.0 + moment
        sampled.sample()


def channel_row(sampled: Sampler, name: str) -> dict[str, object]:
    return next(row for row in sampled.channels((0.0, 10.0)) if row["channel"] == name)


def test_a_missed_slot_is_none_and_moves_nothing(clock: Clock) -> None:
    sampled = make_sampler(clock)
    take_samples(sampled, clock, 0.1, 0.2, 0.52)
    values = sampled.series["threads", None]
    assert [value is None for value in values] == [True, False, False, True, True, False]


def test_the_next_slot_is_on_the_grid(clock: Clock) -> None:
    sampled = make_sampler(clock)
    clock.now = 100.0 + 0.27
    assert sampled.until_next() == pytest.approx(0.03)


def test_a_device_is_read(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = make_sampler(clock, probe_fake(Device(milliwatts=301_500), monkeypatch=monkeypatch))
    take_samples(sampled, clock, 0.1)
    row = channel_row(sampled, "gpu_power")
    assert (row["device"], row["unit"], row["mean"]) == (0, "W", 301.5)


def test_an_unsupported_reading_is_none_and_not_zero(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = make_sampler(clock, probe_fake(Device(unsupported={"power"}), monkeypatch=monkeypatch))
    take_samples(sampled, clock, 0.1)
    assert channel_row(sampled, "gpu_power")["values"] == [None, None]
    assert channel_row(sampled, "gpu_power")["mean"] is None
    assert channel_row(sampled, "gpu_temperature")["mean"] == 61


def test_a_device_that_is_lost_leaves_a_gap(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(temperature=50)
    sampled = make_sampler(clock, probe_fake(device, monkeypatch=monkeypatch))
    take_samples(sampled, clock, 0.1)
    device.lost = True
    take_samples(sampled, clock, 0.2)
    row = channel_row(sampled, "gpu_temperature")
    assert (row["values"], row["mean"]) == ([None, 50.0, None], 50.0)


def test_the_idle_share_is_told(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(gpu=100)
    sampled = make_sampler(clock, probe_fake(device, monkeypatch=monkeypatch))
    take_samples(sampled, clock, 0.4, 0.5, 0.6)
    device.gpu = 0
    take_samples(sampled, clock, 0.7)
    row = channel_row(sampled, "gpu_utilization")
    assert (row["mean"], row["peak"], row["idle_share"]) == (75.0, 100.0, 0.25)


def test_what_a_device_did_before_the_window_isnt_the_windows(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(gpu=0, tensor_percent=0.0)
    devices = probe_fake(device, monkeypatch=monkeypatch)
    devices.counters.clock = clock
    sampled = make_sampler(clock, devices)
    take_samples(sampled, clock, 0.0, 0.2, 0.4)
    # The first readings of the busy window tell of what was before it, too.
    device.gpu, device.tensor_percent = 30, 20.0
    take_samples(sampled, clock, 0.6)
    device.gpu, device.tensor_percent = 99, 80.0
    take_samples(sampled, clock, 0.8, 1.0)
    rows = {row["channel"]: row for row in sampled.channels((0.45, 1.02))}
    assert (rows["gpu_utilization"]["mean"], rows["gpu_tensor_utilization"]["mean"]) == (99.0, 80.0)
    short = {row["channel"]: row["mean"] for row in sampled.channels((0.45, 0.7))}
    assert (short["gpu_utilization"], short["gpu_tensor_utilization"]) == (None, None)


def test_a_reading_that_is_no_number_is_one_that_was_missed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(bandwidth_percent=70.0)
    devices = probe_fake(device, monkeypatch=monkeypatch)
    devices.counters.clock = clock
    sampled = make_sampler(clock, devices)
    take_samples(sampled, clock, 0.0, 0.2, 0.4)
    device.bandwidth_percent = math.nan
    take_samples(sampled, clock, 0.6)
    device.bandwidth_percent = 50.0
    take_samples(sampled, clock, 0.8)
    rows = {row["channel"]: row for row in sampled.channels((0.0, 0.8))}
    row = rows["gpu_memory_bandwidth"]
    assert [value for value in row["values"] if value is not None] == [70.0, 70.0, 50.0]
    assert rows["gpu_tensor_utilization"]["values"][-3] == 40.0


def test_throttling_and_co_tenants_are_remembered(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(reasons=0x20 | 0x01, processes=[os.getpid(), 4_000_000])
    sampled = make_sampler(clock, probe_fake(device, monkeypatch=monkeypatch))
    take_samples(sampled, clock, 0.1)
    device.reasons, device.processes = 0, []
    take_samples(sampled, clock, 0.2)
    assert sampled.throttling((0.0, 0.3)) == {(0, "temperature")}
    assert sampled.foreign_processes((0.0, 0.3)) == {(0, 4_000_000)}
    # What was over before the window, or came after it, disturbed nothing.
    assert sampled.throttling((0.15, 0.3)) == set()
    assert sampled.foreign_processes((1.5, 2.0)) == set()


def test_a_lost_device_is_remembered(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = make_sampler(clock, probe_fake(Device(lost=True), monkeypatch=monkeypatch))
    take_samples(sampled, clock, 0.1)
    assert sampled.lost == {0}


def test_proportional_memory_has_a_slower_grid(clock: Clock) -> None:
    sampled = make_sampler(clock)
    take_samples(sampled, clock, 0.1, 0.5, 1.0, 1.1, 2.9, 3.0)
    values = sampled.series["memory_pss", None]
    assert [value is None for value in values] == [False, False, True, False]
    row = channel_row(sampled, "memory_pss")
    assert row["interval"] == 1.0
    assert 2**20 < sampled.proportional_peak((0, 10)) <= sampled.peak(10)  # type: ignore[operator]
    assert sampled.proportional_peak((0.2, 0.9)) is None


def test_proportional_memory_is_read_late_in_the_window(clock: Clock) -> None:
    sampled = make_sampler(clock)
    for moment in (0.1, 0.2, 0.3, 0.4):
        clock.now = 100.0 + moment
        sampled.sample(late=moment > 0.25)
    assert [round(moment, 1) for moment, _ in sampled._proportional] == [0.1, 0.3]


def test_a_costly_reading_is_asked_for_less_often(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def costly(_tree: ProcessTree) -> int:
        clock.now += 0.02
        return 7

    sampled = make_sampler(clock)
    monkeypatch.setattr(ProcessTree, "proportional_memory", costly)
    take_samples(sampled, clock, *(tenth / 10 for tenth in range(1, 120)))
    assert sampled.series["memory_pss", None] == [7, *[None] * 8, 7]


def scripted_readings(*shares: dict[str, LabelUsage]) -> list[TreeReading]:
    """Return readings of a tree; the first tells no processor time."""
    readings: list[TreeReading] = []
    for usages in shares:
        resident = sum(usage.resident for usage in usages.values())
        cpu = sum(usage.cpu for usage in usages.values()) if readings else None
        readings.append(TreeReading(cpu, resident, 1, 0, 0, usages))
    return readings


def test_a_service_beside_the_trainer_is_seen_apart(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"main": LabelUsage(0.08, 100, 1), "service.py": LabelUsage(0.04, 30, 2)}
    readings = iter(scripted_readings(both, both, both, {"main": LabelUsage(0.1, 90, 1)}))
    monkeypatch.setattr(ProcessTree, "read", lambda _tree: next(readings))
    sampled = make_sampler(clock)
    take_samples(sampled, clock, 0.1, 0.2, 0.3, 0.4)
    main, service = sampled.processes((0.2, 0.4))
    assert (main["name"], main["count"], main["peak_memory"]) == ("main", 1, 100)
    assert main["cpu_utilization"] == pytest.approx(260 / 3)
    assert (service["name"], service["count"], service["peak_memory"]) == ("service.py", 2, 30)
    # It was gone in the last of the window's three slots: the labels sum to the tree's utilization.
    assert service["cpu_utilization"] == pytest.approx(80 / 3)


def test_too_many_labels_are_summed(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"worker{number}": LabelUsage(0.0, 1, 1) for number in range(80)}
    readings = iter(scripted_readings(many, many))
    monkeypatch.setattr(ProcessTree, "read", lambda _tree: next(readings))
    sampled = make_sampler(clock)
    take_samples(sampled, clock, 0.1, 0.2)
    rows = sampled.processes((0.0, 0.2))
    assert len(rows) == LABELS_LIMIT
    assert rows[-1] == {"name": "(others)", "count": 31, "peak_memory": 31, "cpu_utilization": 0.0}


def test_a_long_series_is_thinned(clock: Clock) -> None:
    sampled = make_sampler(clock)
    sampled.series["memory", None] = [1.0, 3.0, None, None] * VALUES_LIMIT
    row = channel_row(sampled, "memory")
    assert row["interval"] == pytest.approx(0.4)
    assert row["values"] == [2.0] * VALUES_LIMIT


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for a child of its own, which burns processor time."""
    burn = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", burn], start_new_session=True) as process:
        yield process
        process_tree.kill_tree(process.pid)


def wait_for_program(pid: int, name: str) -> None:
    """Wait until a process runs its program: who started it goes on a moment before that."""
    deadline = time.monotonic() + 60
    while process_usage.command_line(pid)[:1] != [name]:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def wait_for_child(pid: int, *, copy: bool = False) -> None:
    """Wait for a child that runs its own command, or, as a copy, still its parent's."""
    deadline = time.monotonic() + 60
    command = process_usage.command_line
    while not any((command(child) == command(pid)) == copy for child in process_tree.descendant_pids(pid)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_tree_counts_its_children(busy: subprocess.Popen[bytes]) -> None:
    wait_for_child(busy.pid)
    read = ProcessTree(busy.pid)
    first = read.read()
    assert first is not None
    assert first.cpu is None
    deadline = time.monotonic() + 60
    # A busy machine may give it no processor for a while.
    while (second := read.read()) is None or second.cpu is None or second.cpu <= 0.01:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert second.threads == 2


def test_each_label_of_the_tree_is_told(busy: subprocess.Popen[bytes]) -> None:
    wait_for_child(busy.pid)
    reading = ProcessTree(busy.pid).read()
    assert reading is not None
    assert {name: share.count for name, share in reading.shares.items()} == {"main": 1, "python -c": 1}
    assert sum(share.resident for share in reading.shares.values()) == reading.resident


def test_ranks_of_a_service_belong_to_the_tree(busy: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """As Slurm starts them: who launched them is none of their ancestors."""
    wait_for_child(busy.pid)
    launcher = process_tree.descendant_pids(busy.pid)[0]
    (tmp_path / f"presence-{busy.pid}").touch()
    assert busy.pid not in ProcessTree(launcher).pids()
    assert busy.pid in ProcessTree(launcher, tmp_path).pids()


def test_ranks_of_a_service_end_with_the_measurement(tmp_path: Path) -> None:
    code = [sys.executable, "-c", "input()"]
    plans = (tmp_path / "plan.json", tmp_path / "other" / "plan.json")
    with ExitStack() as ended:
        rank, other = (
            ended.enter_context(subprocess.Popen([*code, str(plan)], stdin=subprocess.PIPE)) for plan in plans
        )
        for started in (rank, other):
            (tmp_path / f"presence-{started.pid}").touch()
        process_tree.kill_ranks(tmp_path)
        assert rank.wait(60) == -signal.SIGKILL
        assert other.poll() is None


def test_what_was_written_to_disk_is_told(tmp_path: Path) -> None:
    read = ProcessTree(os.getpid())
    first = read.read()
    with (tmp_path / "written").open("wb") as file:
        file.write(os.urandom(2**20))
        file.flush()
        os.fsync(file.fileno())
    second = read.read()
    assert first is not None
    assert second is not None
    assert first.written is None
    assert second.written is None or second.written >= 0


def process_use(cpu: float = 0.0, written: int = 0, started_at: float = 0.0, parent: int = 0) -> ProcessUsage:
    return ProcessUsage(cpu, 1, 1, started_at, 0, written, parent)


def read_scripted(
    monkeypatch: pytest.MonkeyPatch, *readings: dict[int, ProcessUsage]
) -> list[TreeReading | None]:
    """Read the tree of process 1, whose processes use what is given, every tenth of a second from 10 on."""
    moments = iter(number / 10 for number in range(100, 200))
    monkeypatch.setattr(process_usage, "process_clock", lambda: next(moments))
    monkeypatch.setattr(process_usage, "command_line", lambda pid: [f"/bin/program{pid}"])
    monkeypatch.setattr(process_tree, "orphaned_pids", lambda _pid: [])
    monkeypatch.setattr(process_tree, "WALK_EVERY", 1)
    tree, read = ProcessTree(1), []
    for usages in readings:
        monkeypatch.setattr(process_usage, "process_usage", usages.get)
        found = {pid: [] for pid in usages} | {1: [pid for pid in usages if pid != 1]}
        monkeypatch.setattr(
            process_tree, "cheap_descendant_pids", lambda pid, found=found: [*found.get(pid, [])]
        )
        read.append(tree.read())
    return read


def test_what_an_ended_process_wrote_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {2: process_use(written=700, parent=1), 3: process_use(written=40, parent=2)}
    # The kernel adds what a child wrote to its parent's bytes once that has waited for it.
    waited_for = process_use(written=760)
    told = read_scripted(
        monkeypatch, {1: process_use()}, {1: process_use(), **both}, {1: process_use()}, {1: waited_for}
    )
    assert [reading.written for reading in told if reading] == [None, 740, 0, 20]


def test_a_process_that_is_found_late_uses_no_more_than_there_was(monkeypatch: pytest.MonkeyPatch) -> None:
    # It used a whole processor for half a second, of which a tenth lies between the readings.
    late = process_use(cpu=0.5, started_at=9.6)
    later = replace(late, cpu=0.6)
    told = read_scripted(
        monkeypatch, {1: process_use()}, {1: process_use(), 2: late}, {1: process_use(), 2: later}
    )
    assert [reading.cpu for reading in told[1:] if reading] == pytest.approx([0.1, 0.1])


def test_a_newborn_process_is_ours_before_it_is_told() -> None:
    # What gives memory back takes a moment to end.
    fork = "import os, time\nheld = b'x' * 10**8\nif os.fork() == 0: time.sleep(60)\nos.wait()"
    with subprocess.Popen([sys.executable, "-c", fork], start_new_session=True) as process:
        tree = ProcessTree(process.pid)
        tree.read()
        wait_for_child(process.pid, copy=True)
        ours, children = tree.pids(), process_tree.descendant_pids(process.pid)
        process_tree.kill_tree(process.pid)
        assert not any(map(process_usage.process_usage, children))
    assert ours == {process.pid, *children}


def test_a_process_whose_parent_has_ended_still_counts() -> None:
    daemon = "import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=-3).pid, flush=True)"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {daemon!r}]); print(flush=True)"
    command = [sys.executable, "-c", start + "; input()"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, start_new_session=True) as process:
        assert process.stdout
        wait_for_program(int(process.stdout.readline()), "sleep")
        process.stdout.readline()
        tree = ProcessTree(process.pid)
        reading = tree.read()
        assert reading is not None
        assert set(reading.shares) == {"main", "sleep"}
        assert len(tree.pids()) == 2
        process_tree.kill_tree(process.pid)


def test_a_forked_process_is_told_from_its_parent() -> None:
    fork = "import os, time\nif os.fork() == 0: time.sleep(60)\nos.wait()"
    with subprocess.Popen([sys.executable, "-c", fork], start_new_session=True) as process:
        wait_for_child(process.pid, copy=True)
        read = ProcessTree(process.pid)
        readings = [read.read() for _ in range(WALK_EVERY + 1)]
        process_tree.kill_tree(process.pid)
    first, last = readings[0], readings[-1]
    assert first is not None
    assert last is not None
    # At first sight it may be a process that is about to run something else.
    assert (set(first.shares), set(last.shares)) == ({"main"}, {"main", "main (forked)"})


def test_all_ways_to_find_and_read_processes_agree(busy: subprocess.Popen[bytes]) -> None:
    wait_for_child(busy.pid)
    ways = (process_usage._proc_descendants, process_usage._psutil_descendants, processes.descendant_pids)
    assert len({tuple(find_descendants(busy.pid)) for find_descendants in ways}) == 1
    ours, theirs = process_usage._proc_usage(os.getpid()), process_usage._psutil_usage(os.getpid())
    assert ours is not None
    assert theirs is not None
    assert ours.threads == theirs.threads
    assert ours.resident == pytest.approx(theirs.resident, rel=0.05)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["/usr/bin/python3.11", "-u", "-X", "dev", "serve/service.py", "--port", "80"], "service.py"),
        (["python", "-P", "-m", "queue.server", "x.py"], "queue.server"),
        (["python", "-m", "paceline.measured.child", "plan.json"], "rank"),
        (["python", "/lib/paceline/measured/child.py", "plan.json"], "rank"),
        (
            ["python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()"],
            "multiprocessing.spawn",
        ),
        (["python", "/lib/torch/_inductor/compile_worker/__main__.py", "--workers"], "compile_worker"),
        (["python", "__main__.py"], "__main__.py"),
        (["python3"], "python3"),
        (["/opt/redis-server *:6379"], "redis-server"),
        (["ray::Worker.run (idle)"], "ray::Worker.run"),
        (["bad\x1bname"], "badname"),
        ([" "], "process"),
        (["sleeping/"], "process"),
        (["python", "\x1b/ "], "process"),
        ([], ""),
    ],
)
def test_a_process_is_named_by_its_command(words: list[str], name: str) -> None:
    assert process_usage.process_label(words) == name


def test_a_process_that_is_gone_reads_none() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert ProcessTree(process.pid).read() is None


def test_a_process_without_memory_is_gone(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = make_sampler(clock)
    take_samples(sampled, clock, 0.1)
    empty = process_usage.ProcessUsage(cpu=1.0, resident=0, threads=1, started_at=0.0)
    monkeypatch.setattr(process_usage, "_proc_usage", lambda _pid: empty)
    take_samples(sampled, clock, 0.2)
    assert ProcessTree(os.getpid()).read() is None
    assert len(sampled.series["memory", None]) == 2


def test_a_zombie_reads_none() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert ProcessTree(process.pid).read() is None
        assert process_usage._proc_usage(process.pid) is None
