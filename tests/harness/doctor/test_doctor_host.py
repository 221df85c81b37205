"""What `doctor` finds noisy in a host: planted files of /proc and /sys, planted devices, planted effects."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from paceline.doctor import command, equal_work, gpu_facts, smallest_effect
from paceline.doctor.findings import Finding
from paceline.doctor.host_facts import (
    HostFacts,
    ProcessorTimes,
    parse_processor_list,
    read_host,
    read_processor_times,
)
from paceline.doctor.host_part import describe_spread
from paceline.doctor.host_rules import UNREADABLE, judge_disk, judge_host, judge_processes
from paceline.doctor.workbench import Workbench
from paceline.watching import nvml

from dashboard.detection import pairs as engine
from dashboard.host_protocol.free_disk import LEAST_FREE_BYTES
from tests import prepared_python
from tests.harness.fake_nvml import Device, FakeNvml

CPU = "sys/devices/system/cpu"
HUGE = "sys/kernel/mm/transparent_hugepage/enabled"
CLOCK = "sys/devices/system/clocksource/clocksource0"
# A host with nothing to complain of: four processors, two cores.
CALM = {
    **{f"{CPU}/cpu{number}/cpufreq/scaling_governor": "performance" for number in range(4)},
    f"{CPU}/intel_pstate/no_turbo": "1",
    **{f"{CPU}/cpu{number}/topology/thread_siblings_list": str(number) for number in range(4)},
    "proc/meminfo": "MemTotal: 100 kB\nSwapTotal: 2048 kB\nSwapFree: 2048 kB\n",
    "proc/sys/vm/swappiness": "1",
    "proc/loadavg": "0.10 0.2 0.3 1/200 99",
    "proc/cpuinfo": "flags\t\t: fpu sse\n",
    "sys/devices/system/node/node0/cpulist": "0-3",
    "proc/self/cgroup": "0::/user/box\n",
    "sys/fs/cgroup/user/box/cpu.max": "max 100000",
    "sys/fs/cgroup/user/box/memory.max": "max",
    **{f"proc/pressure/{name}": "some avg10=0.00 avg60=0.50 avg300=0" for name in ("cpu", "memory", "io")},
    "sys/class/thermal/thermal_zone0/temp": "45000",
    "sys/class/thermal/thermal_zone0/type": "x86_pkg_temp",
    f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "0",
    HUGE: "always [madvise] never",
    "proc/sys/kernel/randomize_va_space": "2",
    f"{CLOCK}/current_clocksource": "tsc",
    f"{CLOCK}/available_clocksource": "tsc hpet",
}


def plant_host(root: Path, changes: Mapping[str, str] | None = None) -> HostFacts:
    for name, text in {**CALM, **(changes or {})}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return read_host(root, (0, 1, 2, 3))


def noisy_rows(findings: Sequence[Finding]) -> dict[str, Finding]:
    return {row.what: row for row in findings if row.matters}


def test_a_calm_host_has_nothing_to_change(tmp_path: Path) -> None:
    findings = judge_host(plant_host(tmp_path))
    assert len(findings) == 16
    assert {row.what: row.matters for row in findings} == {row.what: False for row in findings}
    assert not any(row.command or row.value == UNREADABLE for row in findings)


@pytest.mark.parametrize(("less", "matters"), [(0, False), (1, True)])
def test_a_disk_is_full_where_a_host_takes_no_work(tmp_path: Path, less: int, matters: bool) -> None:
    row = judge_disk(tmp_path, LEAST_FREE_BYTES - less)
    assert (row.value, row.matters) == (f"{64 - less} MiB left at {tmp_path}", matters)
    assert row.command.startswith(f"du -xh --max-depth=2 {tmp_path}") == matters


def test_limits_that_lie_in_no_sys_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text("0::/user/box\n")
    for mounted in (False, True):
        rows = {row.what: row for row in judge_host(read_host(tmp_path, (0, 1)))}
        assert [rows[what].value for what in ("CPU quota", "memory limit")] == [UNREADABLE, UNREADABLE]
        (tmp_path / "sys" / "fs" / "cgroup").mkdir(parents=True, exist_ok=mounted)


def test_what_cannot_be_read_is_neither_calm_nor_noisy(tmp_path: Path) -> None:
    findings = judge_host(read_host(tmp_path, (0, 1)))
    assert {row.matters for row in findings} == {None}
    assert {row.value for row in findings} == {UNREADABLE}


@pytest.mark.parametrize(
    ("changes", "what", "value", "command"),
    [
        (
            {f"{CPU}/cpu3/cpufreq/scaling_governor": "powersave"},
            "CPU governor",
            "performance, powersave",
            "sudo cpupower frequency-set --governor performance",
        ),
        (
            {f"{CPU}/intel_pstate/no_turbo": "0"},
            "turbo",
            "on",
            f"echo 1 | sudo tee /{CPU}/intel_pstate/no_turbo",
        ),
        (
            {
                f"{CPU}/cpu{number}/topology/thread_siblings_list": f"{number % 2},{number % 2 + 2}"
                for number in range(4)
            },
            "SMT",
            "2 cores with two threads",
            f"echo off | sudo tee /{CPU}/smt/control  # or affinity = [0, 1]",
        ),
        (
            {"proc/meminfo": "SwapTotal: 2000 kB\nSwapFree: 1000 kB\n"},
            "swap",
            "1.02 MB of 2.05 MB used, swappiness 1",
            "sudo swapoff -a",
        ),
        (
            {"proc/sys/vm/swappiness": "60"},
            "swap",
            "0 B of 2.1 MB used, swappiness 60",
            "sudo sysctl vm.swappiness=1",
        ),
        (
            {"proc/loadavg": "2.5 1 1 3/200 9"},
            "load",
            "2.5 on 4 processors",
            "ps -eo pid,pcpu,comm --sort=-pcpu | head  # then end or pause them",
        ),
        (
            {"proc/cpuinfo": "flags : fpu hypervisor\n", "sys/class/dmi/id/product_name": "KVM"},
            "virtual machine",
            "KVM",
            "",
        ),
        (
            {
                "sys/devices/system/node/node0/cpulist": "0-1",
                "sys/devices/system/node/node1/cpulist": "2-3",
                "proc/sys/kernel/numa_balancing": "1",
            },
            "NUMA",
            "2 nodes, 2 used, balancing on",
            "sudo sysctl kernel.numa_balancing=0; "
            "numactl --cpunodebind=0 --membind=0 python -m paceline run NAME",
        ),
        (
            {
                "sys/fs/cgroup/user/box/cpu.max": "150000 100000",
                "sys/fs/cgroup/user/box/cpu.stat": "nr_throttled 7\n",
            },
            "CPU quota",
            "1.5 processors, held up 7 times",
            "echo max | sudo tee /sys/fs/cgroup/user/box/cpu.max",
        ),
        (
            {
                "sys/fs/cgroup/user/cpu.max": "200000 100000",
                "sys/fs/cgroup/user/box/cpu.max": "300000 100000",
            },
            "CPU quota",
            "2 processors",
            "echo max | sudo tee /sys/fs/cgroup/user/cpu.max",
        ),
        (
            {
                "sys/fs/cgroup/user/memory.max": "1000000000",
                "sys/fs/cgroup/user/memory.current": "950000000",
            },
            "memory limit",
            "950 MB of 1 GB used",
            "echo max | sudo tee /sys/fs/cgroup/user/memory.max",
        ),
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/box\n4:memory:/box\n0::/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            "CPU quota",
            "2 processors",
            "echo -1 | sudo tee /sys/fs/cgroup/cpu/cpu.cfs_quota_us",
        ),
        (
            {
                "sys/fs/cgroup/user/box/memory.max": "1000000000",
                "sys/fs/cgroup/user/box/memory.current": "900000000",
            },
            "memory limit",
            "900 MB of 1 GB used",
            "echo max | sudo tee /sys/fs/cgroup/user/box/memory.max",
        ),
        (
            {"proc/pressure/cpu": "some avg10=9 avg60=12.50 avg300=1"},
            "pressure on cpu",
            "12.5 % of the last minute",
            "",
        ),
        (
            {"sys/class/thermal/thermal_zone1/temp": "91000", "sys/class/thermal/thermal_zone1/type": "core"},
            "heat",
            "91 °C at core",
            "sudo cpupower frequency-set --max 2GHz  # a clock that it can keep",
        ),
        (
            {HUGE: "[always] madvise never"},
            "transparent huge pages",
            "always",
            f"echo madvise | sudo tee /{HUGE}",
        ),
        (
            {"proc/sys/kernel/randomize_va_space": "0"},
            "address randomization",
            "off",
            "sudo sysctl kernel.randomize_va_space=2",
        ),
        (
            {f"{CLOCK}/current_clocksource": "hpet"},
            "clock source",
            "hpet",
            f"echo tsc | sudo tee /{CLOCK}/current_clocksource",
        ),
    ],
)
def test_each_planted_noise_is_found_with_its_command(
    tmp_path: Path, changes: dict[str, str], what: str, value: str, command: str
) -> None:
    noisy = noisy_rows(judge_host(plant_host(tmp_path, changes)))
    assert list(noisy) == [what]
    assert (noisy[what].value, noisy[what].command) == (value, command)
    assert noisy[what].wanted


def test_what_counts_up_while_it_is_looked_at_happens_now(tmp_path: Path) -> None:
    quota = {"sys/fs/cgroup/user/box/cpu.max": "400000 100000"}
    stat, heat = "sys/fs/cgroup/user/box/cpu.stat", f"{CPU}/cpu0/thermal_throttle/core_throttle_count"
    before = plant_host(tmp_path, {**quota, stat: "nr_throttled 3\n", heat: "5"})
    assert noisy_rows(judge_host(before)) == {}
    after = plant_host(tmp_path, {**quota, stat: "nr_throttled 4\n", heat: "6"})
    noisy = noisy_rows(judge_host(before, after))
    assert noisy["CPU quota"].value == "4 processors, held up 4 times, also now"
    assert noisy["heat"].value.endswith("clock held down 6 times since the start, also now")


def test_neighbours_and_stolen_time_are_told_from_two_readings(tmp_path: Path) -> None:
    def plant_times(total: int, stolen: int, used: int) -> ProcessorTimes | None:
        (tmp_path / "proc/77").mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc/stat").write_text(f"cpu {total - stolen} 0 0 0 0 0 0 {stolen} 5 0\n")
        (tmp_path / "proc/77/stat").write_text(f"77 (a (b) c) S 1 {'0 ' * 9}{used} {'0 ' * 38}\n")
        return read_processor_times(tmp_path)

    before, after = plant_times(1000, 0, 10), plant_times(1400, 40, 60)
    neighbours, steal = judge_processes(before, after, frozenset(), 4)
    assert (neighbours.value, neighbours.command) == ("a (b) c 50%", "kill -STOP 77  # -CONT later")
    assert (steal.value, steal.matters) == ("10.0%", True)
    own, _ = judge_processes(before, after, frozenset({77}), 4)
    assert own.matters is False
    assert {row.value for row in judge_processes(None, after, frozenset(), 4)} == {UNREADABLE}


def test_lists_of_processors_are_read() -> None:
    assert parse_processor_list("0-2,8,10-11\n") == (0, 1, 2, 8, 10, 11)


def judge_device(monkeypatch: pytest.MonkeyPatch, device: Device) -> Iterator[Finding]:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml([device]))
    devices = nvml.probe_devices({})
    return gpu_facts.judge_gpu(gpu_facts.read_gpus(devices)[0])


@pytest.mark.parametrize(
    ("changes", "what", "value", "command"),
    [
        ({"persistence": 0}, "GPU 0 persistence mode", "off", "sudo nvidia-smi --id=0 --persistence-mode=1"),
        (
            {"power_cap": 450_000},
            "GPU 0 power cap",
            "450 W, 700 W by default",
            "sudo nvidia-smi --id=0 --power-limit=700",
        ),
        (
            {"uncorrected_errors": 2},
            "GPU 0 ECC",
            "on, 2 uncorrected errors since the start",
            "sudo nvidia-smi --id=0 --gpu-reset",
        ),
        (
            {"processes": [41, 42]},
            "GPU 0 processes",
            "41, 42",
            "kill 41 42  # or CUDA_VISIBLE_DEVICES of another device",
        ),
    ],
)
def test_each_planted_noise_of_a_device_is_found(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], what: str, value: str, command: str
) -> None:
    noisy = noisy_rows(list(judge_device(monkeypatch, Device(**changes))))
    # Whether clocks are locked can't be read.
    assert list(noisy) in ([what, "GPU 0 clocks"], ["GPU 0 clocks", what])
    assert (noisy[what].value, noisy[what].command) == (value, command)


def test_clocks_and_unknown_readings_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {row.what: row for row in judge_device(monkeypatch, Device(reasons=4))}
    assert rows["GPU 0 clocks"].value == (
        "1700 of 1980 MHz now, of applications 1755 MHz, held down by power cap"
    )
    assert rows["GPU 0 clocks"].command.startswith("sudo nvidia-smi --id=0 --lock-gpu-clocks=1755")
    unknown = {"persistence", "clock", "power cap", "error correction", "processes"}
    rows = {row.what: row for row in judge_device(monkeypatch, Device(unsupported=unknown))}
    assert [row.value for row in rows.values()].count(UNREADABLE) == 5


def test_the_interval_is_that_of_the_engine() -> None:
    assert (smallest_effect.ERROR, smallest_effect.PRIOR, smallest_effect.FEWEST_PAIRS) == (
        engine.ERROR,
        engine.PRIOR_SCALE,
        engine.FEWEST_PAIRS,
    )
    for pairs in (1, 3, 4, 5, 8, 30, 200):
        assert smallest_effect.interval_half_width(pairs, 0.02) == engine.interval_half_width(pairs, 0.02)


@pytest.mark.parametrize(("pairs", "deviation"), [(8, 0.03), (30, 0.005)])
def test_an_effect_of_the_size_that_is_told_is_proven(pairs: int, deviation: float) -> None:
    effect = math.log1p(smallest_effect.smallest_effect(deviation, pairs))
    random = np.random.default_rng(7)
    runs = 400

    def proven_share(shift: float) -> float:
        ratios = random.normal(shift, deviation, (runs, pairs))
        zeros = np.zeros(pairs)
        lows = [engine.estimate_share(zeros, row, noise=0.0).low or -1.0 for row in ratios]
        return sum(low > 0 for low in lows) / runs

    assert 0.7 <= proven_share(effect) <= 0.92
    assert proven_share(effect / 2) < 0.3
    assert proven_share(0.0) <= 0.02


def test_the_deviation_of_few_pairs_is_bounded() -> None:
    random = np.random.default_rng(3)
    ones = [1.0] * 6
    spreads = [
        smallest_effect.measure_spread(ones, np.exp(random.normal(0, 0.02, 6)).tolist()) for _ in range(600)
    ]
    assert 0.86 < np.mean([spread.deviation_bound > 0.02 for spread in spreads]) < 0.94


def test_too_few_pairs_prove_nothing() -> None:
    assert math.isinf(smallest_effect.smallest_effect(0.01, 3))
    assert smallest_effect.smallest_effect(0.0, 30) == 0
    assert smallest_effect.pairs_within(600, 10) == 30


def test_equal_work_is_timed_in_alternating_order() -> None:
    # A B, B A; then, begun by the other side, B A, A B.
    batches = iter([[1.0, 1.01, 1.02, 1.0], [1.01, 1.0, 1.0, 1.02]])
    spread = equal_work.time_in_pairs("loop", 0.0, 60.0, lambda _script, _number, _limit: next(batches))
    # The second side took 1 % and 2 % longer.
    assert spread.pairs == 4
    assert spread.bias == pytest.approx(0.0149, abs=1e-4)
    provable = list(describe_spread("a loop", spread))[1]
    assert provable.value.startswith("slower by 0.56%, or by 1.27% at worst")
    assert "30 pairs of repetitions of 10 s" in provable.wanted


def test_work_that_takes_too_long_is_not_told() -> None:
    with pytest.raises(equal_work.EqualWorkError, match="not known: 0 pairs took 0 s, 4 are needed"):
        equal_work.time_in_pairs("loop", 0.0, -1.0, lambda _script, number, _limit: [1.0] * number)


def test_work_that_fails_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_work, "WORKLOADS", tmp_path)
    for text, sentence in (
        ("print('ready', flush=True); input(); print('no number')", "could not convert"),
        ("import no_such_module", "No module named 'no_such_module'"),
    ):
        (tmp_path / "broken.py").write_text(text + "\n")
        with pytest.raises(equal_work.EqualWorkError, match=f"broken.py failed: .*{sentence}"):
            equal_work.time_processes("broken.py", 2, 60)


def test_processes_that_take_too_long_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_work, "WORKLOADS", tmp_path)
    (tmp_path / "work.py").write_text("input()\n")
    with pytest.raises(equal_work.EqualWorkError, match=r"2 processes of work.py took longer than 1 s"):
        equal_work.time_processes("work.py", 2, 1)


def test_processes_are_ready_together_and_work_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equal_work, "WORKLOADS", tmp_path)
    (tmp_path / "work.py").write_text(
        "import os, time; from pathlib import Path\n"
        "Path(__file__).with_name(f'ready-{os.getpid()}').write_text(str(time.monotonic()))\n"
        "print('ready', flush=True); input(); began = time.monotonic(); time.sleep(0.05); print(began)\n"
    )
    began = equal_work.time_processes("work.py", 3, 60)
    ready = [float(path.read_text()) for path in tmp_path.glob("ready-*")]
    assert len(ready) == 3
    assert max(ready) < began[0]
    assert all(later - earlier >= 0.05 for earlier, later in pairwise(began))


def test_doctor_tells_of_this_host_and_keeps_it(tmp_path: Path) -> None:
    # Eight processes at least, each of which would import torch; none of them has to wait for that.
    prepared_python.run_prepared([sys.executable, "-c", ""])
    bench = Workbench(perf_counter() + 12, tmp_path)
    with prepared_python.prepared_starts():
        result = command.run_part("host", command.HOST_PARTS["host"], bench)
    command.write_report([result], tmp_path / "doctor.json")
    (part,) = json.loads((tmp_path / "doctor.json").read_text())["parts"]
    rows = {row["what"]: row for row in part["findings"]}
    assert {"CPU governor", "neighbours", "steal time", "clock source"} <= set(rows)
    assert rows["address randomization"]["matters"] in (True, False)
    # On a busy machine four pairs of processes take longer than they may.
    for work in ("a small loop, twice the same", "a small torch step, twice the same"):
        assert any(word in rows[work]["value"] for word in ("pairs differ by", "4 are needed", "took longer"))
    assert "facts matter here" in command.format_result(result)


def test_the_host_is_the_first_part_and_can_be_the_only_one(tmp_path: Path) -> None:
    bench = Workbench(1e12, tmp_path)
    assert command.chosen_parts(bench, [])[0][0] == "host"
    assert [name for name, _ in command.chosen_parts(bench, ["host"])] == ["host"]
