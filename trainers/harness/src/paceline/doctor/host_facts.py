"""What a host is and does right now, as /proc and /sys tell it: facts, without a judgement."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ..measured.fingerprint import processor_flags
from ..system.processes import list_process_stats
from ..system.processor_ticks import read_machine_ticks

CPUS = "sys/devices/system/cpu"
MILLIDEGREES = 1000.0
# No limit of a control group of version 1 is a number near the largest.
V1_UNLIMITED = 2**60


@dataclass(frozen=True, slots=True)
class ProcessorTimes:
    """Ticks since the machine was started: of all processors, those stolen by the host below, by process."""

    total: int = 0
    stolen: int = 0
    by_process: Mapping[int, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The limits that this process has, and where they stand. `quota` is in processors; None is no limit."""

    quota: float | None = None
    quota_path: str = ""
    throttled: int | None = None
    memory_limit: int | None = None
    memory_used: int | None = None
    memory_path: str = ""
    version: int = 2


@dataclass(frozen=True, slots=True)
class HostFacts:
    """None, or empty, is what isn't readable here."""

    processors: tuple[int, ...] = ()  # that this process may use
    governors: frozenset[str] = frozenset()
    boost: bool | None = None
    boost_path: str = ""
    siblings: tuple[tuple[int, ...], ...] = ()  # of each core those of its threads that may be used
    swap_total: int | None = None
    swap_used: int | None = None
    swappiness: int | None = None
    load: float | None = None
    hypervisor: str | None = None  # empty where there is none
    nodes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    numa_balancing: bool | None = None
    group: ControlGroup | None = None
    pressure: Mapping[str, float] = field(default_factory=dict)  # some, of a minute, by resource
    hottest: tuple[str, float] | None = None
    throttle_count: int | None = None
    huge_pages: str | None = None
    address_randomization: int | None = None
    clock_source: str | None = None
    clock_sources: tuple[str, ...] = ()


def read_host(root: Path = Path("/"), processors: tuple[int, ...] | None = None) -> HostFacts:
    """Read the facts below a root; `processors` are those that may be used, None for this process's own."""
    usable = processors if processors is not None else _usable_processors()
    boost, boost_path = _read_boost(root)
    total, free = (_read_memory(root, name) for name in ("SwapTotal", "SwapFree"))
    load = _read_text(root, "proc/loadavg")
    huge = re.search(r"\[(\w+)\]", _read_text(root, "sys/kernel/mm/transparent_hugepage/enabled") or "")
    clocks = "sys/devices/system/clocksource/clocksource0"
    balancing = _read_number(root, "proc/sys/kernel/numa_balancing")
    return HostFacts(
        processors=usable,
        governors=frozenset(_read_all(root, f"{CPUS}/cpu[0-9]*/cpufreq/scaling_governor")),
        boost=boost,
        boost_path=boost_path,
        siblings=_read_siblings(root, usable),
        swap_total=total,
        swap_used=None if total is None or free is None else total - free,
        swappiness=_read_number(root, "proc/sys/vm/swappiness"),
        load=float(load.split()[0]) if load else None,
        hypervisor=_read_hypervisor(root),
        nodes=_read_nodes(root),
        numa_balancing=None if balancing is None else bool(balancing),
        group=_read_group(root),
        pressure=dict(_read_pressure(root)),
        hottest=_read_hottest(root),
        throttle_count=_read_throttle_count(root),
        huge_pages=huge[1] if huge else None,
        address_randomization=_read_number(root, "proc/sys/kernel/randomize_va_space"),
        clock_source=_read_text(root, f"{clocks}/current_clocksource"),
        clock_sources=tuple((_read_text(root, f"{clocks}/available_clocksource") or "").split()),
    )


def read_free_disk() -> tuple[Path, int]:
    """Read how many bytes the disk of a host's home has left; before there is one, of where it will lie."""
    home = Path(os.environ.get("PACELINE_HOST_HOME") or Path.home() / ".paceline-host").absolute()
    folder = next(folder for folder in (home, *home.parents) if folder.is_dir())
    return folder, shutil.disk_usage(folder).free


def read_processor_times(root: Path = Path("/")) -> ProcessorTimes | None:
    """The ticks by now; None without /proc/stat."""
    proc = str(root / "proc")
    ticks = read_machine_ticks(proc)
    if ticks is None:
        return None
    by_process = {
        pid: (stat.command.decode(errors="replace"), stat.ticks) for pid, stat in list_process_stats(proc)
    }
    return ProcessorTimes(ticks.passed, ticks.stolen, by_process)


def parse_processor_list(text: str) -> tuple[int, ...]:
    """The numbers of a list such as 0-3,8."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.strip().isdigit():
            numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def _usable_processors() -> tuple[int, ...]:
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def _read_text(root: Path, place: str) -> str | None:
    try:
        return (root / place).read_text(errors="replace").strip()
    except OSError:
        return None


def _read_number(root: Path, place: str) -> int | None:
    text = _read_text(root, place)
    with contextlib.suppress(ValueError, IndexError):
        return int((text or "").split()[0])
    return None


def _read_all(root: Path, pattern: str) -> Iterator[str]:
    for path in sorted(root.glob(pattern)):
        text = _read_text(root, path.relative_to(root).as_posix())
        if text:
            yield text


def _read_boost(root: Path) -> tuple[bool | None, str]:
    intel, other = f"{CPUS}/intel_pstate/no_turbo", f"{CPUS}/cpufreq/boost"
    off = _read_number(root, intel)
    if off is not None:
        return not off, f"/{intel}"
    on = _read_number(root, other)
    return (None, "") if on is None else (bool(on), f"/{other}")


def _read_siblings(root: Path, usable: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    cores = set()
    for number in usable:
        text = _read_text(root, f"{CPUS}/cpu{number}/topology/thread_siblings_list")
        if text:
            cores.add(tuple(cpu for cpu in parse_processor_list(text) if cpu in usable))
    return tuple(sorted(cores))


def _read_memory(root: Path, name: str) -> int | None:
    found = re.search(rf"^{name}:\s+(\d+) kB", _read_text(root, "proc/meminfo") or "", re.M)
    return int(found[1]) * 1024 if found else None


def _read_hypervisor(root: Path) -> str | None:
    processors = root / "proc/cpuinfo"
    if not processors.is_file():
        return None
    kind = _read_text(root, "sys/hypervisor/type")
    product = _read_text(root, "sys/class/dmi/id/product_name")
    is_guest = "hypervisor" in processor_flags(processors) or kind is not None
    return (kind or product or "unnamed") if is_guest else ""


def _read_nodes(root: Path) -> dict[int, tuple[int, ...]]:
    nodes = {}
    for path in root.glob("sys/devices/system/node/node[0-9]*"):
        text = _read_text(root, f"{path.relative_to(root).as_posix()}/cpulist")
        if text is not None:
            nodes[int(path.name.removeprefix("node"))] = parse_processor_list(text)
    return dict(sorted(nodes.items()))


def _read_group(root: Path) -> ControlGroup | None:
    text, mounted = _read_text(root, "proc/self/cgroup"), root / "sys/fs/cgroup"
    if text is None or not mounted.is_dir() or not any(mounted.iterdir()):
        return None
    places = {}
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        places.update(dict.fromkeys(names.split(","), path))
    if "cpu" in places or "memory" in places:
        return _read_first_version(root, places)
    return _read_second_version(root, places.get("", "/"))


def _find_groups(root: Path, base: str, path: str, name: str) -> list[str]:
    """The folders that have a file, upwards; in a container a group's own root is mounted as the top."""
    folders = (PurePosixPath(path), *PurePosixPath(path).parents)
    places = [f"{base}{'' if str(folder) == '/' else folder}" for folder in folders]
    return [place for place in places if (root / place / name).is_file()] or [base]


def _find_tightest(places: list[str], read_limit: Callable[[str], float | None]) -> tuple[str, float | None]:
    """The group whose limit is the least, since those above bind too; the innermost where none has one."""
    limits = {place: read_limit(place) for place in places}
    tightest = min(places, key=lambda place: math.inf if (found := limits[place]) is None else found)
    return tightest, limits[tightest]


def _read_second_version(root: Path, path: str) -> ControlGroup:
    def read_quota(place: str) -> float | None:
        words = (_read_text(root, f"{place}/cpu.max") or "max").split()
        return int(words[0]) / int(words[1]) if len(words) == 2 and words[0].isdigit() else None

    def read_memory(place: str) -> float | None:
        return _read_number(root, f"{place}/memory.max")

    place, quota = _find_tightest(_find_groups(root, "sys/fs/cgroup", path, "cpu.max"), read_quota)
    memory, limit = _find_tightest(_find_groups(root, "sys/fs/cgroup", path, "memory.max"), read_memory)
    return ControlGroup(
        quota=quota,
        quota_path=f"/{place}/cpu.max",
        throttled=_read_throttled(root, place),
        memory_limit=None if limit is None else int(limit),
        memory_used=_read_number(root, f"{memory}/memory.current"),
        memory_path=f"/{memory}/memory.max",
    )


def _read_first_version(root: Path, places: Mapping[str, str]) -> ControlGroup:
    def read_quota(place: str) -> float | None:
        quota = _read_number(root, f"{place}/cpu.cfs_quota_us")
        period = _read_number(root, f"{place}/cpu.cfs_period_us")
        return quota / period if quota and period and quota > 0 else None

    def read_memory(place: str) -> float | None:
        limit = _read_number(root, f"{place}/memory.limit_in_bytes")
        return limit if limit is not None and limit < V1_UNLIMITED else None

    groups = _find_groups(root, "sys/fs/cgroup/cpu", places.get("cpu", "/"), "cpu.cfs_quota_us")
    place, quota = _find_tightest(groups, read_quota)
    groups = _find_groups(root, "sys/fs/cgroup/memory", places.get("memory", "/"), "memory.limit_in_bytes")
    memory, limit = _find_tightest(groups, read_memory)
    return ControlGroup(
        quota=quota,
        quota_path=f"/{place}/cpu.cfs_quota_us",
        throttled=_read_throttled(root, place),
        memory_limit=None if limit is None else int(limit),
        memory_used=_read_number(root, f"{memory}/memory.usage_in_bytes"),
        memory_path=f"/{memory}/memory.limit_in_bytes",
        version=1,
    )


def _read_throttled(root: Path, place: str) -> int | None:
    found = re.search(r"^nr_throttled (\d+)", _read_text(root, f"{place}/cpu.stat") or "", re.M)
    return int(found[1]) if found else None


def _read_pressure(root: Path) -> Iterator[tuple[str, float]]:
    for name in ("cpu", "memory", "io"):
        found = re.search(r"^some .*avg60=([\d.]+)", _read_text(root, f"proc/pressure/{name}") or "", re.M)
        if found:
            yield name, float(found[1])


def _read_hottest(root: Path) -> tuple[str, float] | None:
    zones = []
    for path in root.glob("sys/class/thermal/thermal_zone*"):
        place = path.relative_to(root).as_posix()
        degrees = _read_number(root, f"{place}/temp")
        if degrees is not None:
            zones.append((_read_text(root, f"{place}/type") or path.name, degrees / MILLIDEGREES))
    return max(zones, key=lambda zone: zone[1], default=None)


def _read_throttle_count(root: Path) -> int | None:
    counts = [int(text) for text in _read_all(root, f"{CPUS}/cpu[0-9]*/thermal_throttle/core_throttle_count")]
    return sum(counts) if counts else None
