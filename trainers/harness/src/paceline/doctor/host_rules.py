"""Which facts of a host make it noisy, and the command that would change each. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..units import format_amount
from .findings import Finding
from .host_facts import HostFacts, ProcessorTimes

UNREADABLE = "not readable here"
# Shares above which a fact matters.
STEAL, BUSY_NEIGHBOUR, LOADED, FULL_MEMORY = 0.01, 0.05, 0.5, 0.8
# Per cent of a minute in which somebody waited.
PRESSURES = {"cpu": 5.0, "memory": 1.0, "io": 5.0}
HOT = 85.0  # degrees Celsius
LARGEST_SWAPPINESS = 10
MIB = 2**20
# Bytes on its disk without which a host takes no work.
FULL_DISK = 64 * MIB
# The others are read by a call into the kernel or the device.
FAST_CLOCKS = frozenset({"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"})
MOST_NAMED = 4


def judge_host(facts: HostFacts, others: HostFacts | None = None) -> list[Finding]:
    """What was found, a row for each fact; `others` are the facts some seconds later, for what counts up."""
    later = others or facts
    return [
        _judge_governor(facts),
        _judge_boost(facts),
        _judge_siblings(facts),
        _judge_swap(facts),
        _judge_load(facts),
        _judge_hypervisor(facts),
        _judge_nodes(facts),
        _judge_quota(facts, later),
        _judge_group_memory(facts),
        *_judge_pressure(facts),
        _judge_heat(facts, later),
        _judge_huge_pages(facts),
        _judge_addresses(facts),
        _judge_clock(facts),
    ]


def judge_processes(
    before: ProcessorTimes | None, after: ProcessorTimes | None, own: frozenset[int], processors: int
) -> list[Finding]:
    """What other processes and the host below took between two readings; `own` are this one's tree."""
    if before is None or after is None or after.total <= before.total:
        return [_unreadable_fact("neighbours"), _unreadable_fact("steal time")]
    # All processors' ticks, of which one has its share.
    ticks = (after.total - before.total) / max(1, processors)
    used = {
        pid: (name, (now - before.by_process.get(pid, (name, now))[1]) / ticks)
        for pid, (name, now) in after.by_process.items()
        if pid not in own
    }
    busy = sorted(
        ((share, pid, name) for pid, (name, share) in used.items() if share >= BUSY_NEIGHBOUR), reverse=True
    )
    stolen = (after.stolen - before.stolen) / (after.total - before.total)
    return [
        Finding(
            "neighbours",
            ", ".join(f"{name} {share:.0%}" for share, _, name in busy[:MOST_NAMED]) or "none that work now",
            "they take processors, caches and memory" if busy else "",
            matters=bool(busy),
            command=f"kill -STOP {' '.join(str(pid) for _, pid, _ in busy[:MOST_NAMED])}  # -CONT later"
            if busy
            else "",
        ),
        Finding(
            "steal time",
            f"{stolen:.1%}",
            "the host below gives its processors to others: ask for processors of your own"
            if stolen > STEAL
            else "",
            matters=stolen > STEAL,
        ),
    ]


def judge_disk(folder: Path, free: int) -> Finding:
    """Whether a host whose home lies in this folder would take work."""
    is_full = free < FULL_DISK
    return Finding(
        "disk",
        f"{free // MIB:,} MiB left at {folder}",
        f"a host takes no work with less than {FULL_DISK // MIB} MiB" if is_full else "",
        matters=is_full,
        command=f"du -xh --max-depth=2 {folder} | sort -h | tail  # then remove some" if is_full else "",
    )


def _unreadable_fact(what: str) -> Finding:
    return Finding(what, UNREADABLE)


def _judge_governor(facts: HostFacts) -> Finding:
    if not facts.governors:
        return _unreadable_fact("CPU governor")
    is_performance = facts.governors == {"performance"}
    return Finding(
        "CPU governor",
        ", ".join(sorted(facts.governors)),
        "" if is_performance else "the clock follows the load",
        matters=not is_performance,
        command="" if is_performance else "sudo cpupower frequency-set --governor performance",
    )


def _judge_boost(facts: HostFacts) -> Finding:
    if facts.boost is None:
        return _unreadable_fact("turbo")
    value = "1" if facts.boost_path.endswith("no_turbo") else "0"
    return Finding(
        "turbo",
        "on" if facts.boost else "off",
        "the clock depends on the heat and on how many cores work" if facts.boost else "",
        matters=facts.boost,
        command=f"echo {value} | sudo tee {facts.boost_path}" if facts.boost else "",
    )


def _judge_siblings(facts: HostFacts) -> Finding:
    if not facts.siblings:
        return _unreadable_fact("SMT")
    shared = [core for core in facts.siblings if len(core) > 1]
    first = ", ".join(str(core[0]) for core in facts.siblings if core)
    return Finding(
        "SMT",
        f"{len(shared)} cores with two threads" if shared else "no two processors share a core",
        "what runs on the other thread of a core slows this one" if shared else "",
        matters=bool(shared),
        command=f"echo off | sudo tee /sys/devices/system/cpu/smt/control  # or affinity = [{first}]"
        if shared
        else "",
    )


def _judge_swap(facts: HostFacts) -> Finding:
    if facts.swap_total is None or facts.swap_used is None:
        return _unreadable_fact("swap")
    if not facts.swap_total:
        return Finding("swap", "none", matters=False)
    value = f"{format_amount(facts.swap_used, 'bytes')} of {format_amount(facts.swap_total, 'bytes')} used"
    if facts.swappiness is not None:
        value += f", swappiness {facts.swappiness}"
    if facts.swap_used:
        why, command = "what was swapped out comes back in the middle of a step", "sudo swapoff -a"
    elif (facts.swappiness or 0) > LARGEST_SWAPPINESS:
        why, command = "memory is swapped out before it is short", "sudo sysctl vm.swappiness=1"
    else:
        why, command = "", ""
    return Finding("swap", value, why, matters=bool(why), command=command)


def _judge_load(facts: HostFacts) -> Finding:
    if facts.load is None:
        return _unreadable_fact("load")
    number = max(1, len(facts.processors))
    loaded = facts.load > LOADED * number
    return Finding(
        "load",
        f"{facts.load:.1f} on {number} processors",
        "others want them too" if loaded else "",
        matters=loaded,
        command="ps -eo pid,pcpu,comm --sort=-pcpu | head  # then end or pause them" if loaded else "",
    )


def _judge_hypervisor(facts: HostFacts) -> Finding:
    if facts.hypervisor is None:
        return _unreadable_fact("virtual machine")
    guest = bool(facts.hypervisor)
    return Finding(
        "virtual machine",
        facts.hypervisor or "no",
        "its neighbours share caches and memory and can't be seen from here" if guest else "",
        matters=guest,
    )


def _judge_nodes(facts: HostFacts) -> Finding:
    if not facts.nodes:
        return _unreadable_fact("NUMA")
    used = [node for node, cpus in facts.nodes.items() if set(cpus) & set(facts.processors)]
    spread = len(used) > 1
    value = f"{len(facts.nodes)} nodes, {len(used)} used" if len(facts.nodes) > 1 else "1 node"
    pin = f"numactl --cpunodebind={used[0]} --membind={used[0]} python -m paceline run NAME" if spread else ""
    if spread and facts.numa_balancing:
        value += ", balancing on"
        pin = f"sudo sysctl kernel.numa_balancing=0; {pin}"
    return Finding(
        "NUMA",
        value,
        "memory of the other node is further away, and where it lies differs by process" if spread else "",
        matters=spread,
        command=pin,
    )


def _judge_quota(facts: HostFacts, later: HostFacts) -> Finding:
    group = facts.group
    if group is None:
        return _unreadable_fact("CPU quota")
    if group.quota is None:
        return Finding("CPU quota", "none", matters=False)
    now = later.group.throttled if later.group else None
    grown = now is not None and group.throttled is not None and now > group.throttled
    short = grown or group.quota < len(facts.processors)
    value = f"{group.quota:.3g} processors"
    value += f", held up {now} times{', also now' if grown else ''}" if now else ""
    unlimited = "-1" if group.version == 1 else "max"
    return Finding(
        "CPU quota",
        value,
        "who has used it up waits for the next period, tens of milliseconds" if short else "",
        matters=short,
        command=f"echo {unlimited} | sudo tee {group.quota_path}" if short else "",
    )


def _judge_group_memory(facts: HostFacts) -> Finding:
    group = facts.group
    if group is None:
        return _unreadable_fact("memory limit")
    if group.memory_limit is None:
        return Finding("memory limit", "none", matters=False)
    used = group.memory_used or 0
    full = used > FULL_MEMORY * group.memory_limit
    unlimited = "-1" if group.version == 1 else "max"
    return Finding(
        "memory limit",
        f"{format_amount(used, 'bytes')} of {format_amount(group.memory_limit, 'bytes')} used",
        "the kernel takes pages back while steps run" if full else "",
        matters=full,
        command=f"echo {unlimited} | sudo tee {group.memory_path}" if full else "",
    )


def _judge_pressure(facts: HostFacts) -> Iterator[Finding]:
    for name, most in PRESSURES.items():
        share = facts.pressure.get(name)
        if share is None:
            yield _unreadable_fact(f"pressure on {name}")
            continue
        high = share > most
        yield Finding(
            f"pressure on {name}",
            f"{share:.1f} % of the last minute",
            "somebody waited for it: see neighbours" if high else "",
            matters=high,
        )


def _judge_heat(facts: HostFacts, later: HostFacts) -> Finding:
    count, now = facts.throttle_count, later.throttle_count
    if facts.hottest is None and count is None:
        return _unreadable_fact("heat")
    parts = [f"{facts.hottest[1]:.0f} °C at {facts.hottest[0]}"] if facts.hottest else []
    grown = count is not None and now is not None and now > count
    parts += [f"clock held down {now} times since the start{', also now' if grown else ''}"] if now else []
    hot = grown or (facts.hottest is not None and facts.hottest[1] >= HOT)
    return Finding(
        "heat",
        ", ".join(parts) or "the clock was never held down",
        "the clock is held down, or soon will be: look at the cooling" if hot else "",
        matters=hot,
        command="sudo cpupower frequency-set --max 2GHz  # a clock that it can keep" if hot else "",
    )


def _judge_huge_pages(facts: HostFacts) -> Finding:
    if facts.huge_pages is None:
        return _unreadable_fact("transparent huge pages")
    always = facts.huge_pages == "always"
    return Finding(
        "transparent huge pages",
        facts.huge_pages,
        "which memory gets them, and when it is merged, differs by process" if always else "",
        matters=always,
        command="echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled" if always else "",
    )


def _judge_addresses(facts: HostFacts) -> Finding:
    if facts.address_randomization is None:
        return _unreadable_fact("address randomization")
    on = facts.address_randomization > 0
    return Finding(
        "address randomization",
        "on" if on else "off",
        "fresh processes average over it; off, one layout decides" if on else "every process has one layout",
        matters=not on,
        command="" if on else "sudo sysctl kernel.randomize_va_space=2",
    )


def _judge_clock(facts: HostFacts) -> Finding:
    if facts.clock_source is None:
        return _unreadable_fact("clock source")
    slow = facts.clock_source not in FAST_CLOCKS
    better = next((name for name in facts.clock_sources if name in FAST_CLOCKS), "")
    place = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    return Finding(
        "clock source",
        facts.clock_source,
        "reading the time may cost a microsecond, and each phase reads it twice" if slow else "",
        matters=slow,
        command=f"echo {better} | sudo tee {place}" if slow and better else "",
    )
