"""A host with several GPUs is several machines: each slot measures by itself, on its device and its cores."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.host.configuration import (
    HOW_TO_JOIN,
    ConfigurationError,
    HostIdentity,
    identity_folder,
    read_identity,
    write_identity,
)
from workers.host.errors import SiteAway, TokenRefused
from workers.host.machine import list_near_cores
from workers.host.site_api.client import SiteClient
from workers.host.site_api.outages import StopRequested, ending_signals, try_until_answered

logger = logging.getLogger(__name__)

PARENT = "PACELINE_SLOTS_PID"
MOST_SLOTS = 64
LOOK_SECONDS = 0.5
RESTART_SECONDS = 15.0
STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Slot:
    """One part of a host: its machine's name, its GPU as the driver counts, its cores as the kernel does."""

    name: str
    device: int | None
    cores: tuple[int, ...]


def plan_slots(name: str, wanted: int | None) -> list[Slot]:
    """So many slots, or one for each GPU; what this process may use of the host is split among them.

    A GPU's slot gets cores that are near to it, as NVML says; where several share these, each gets a part.
    ConfigurationError where there are too few cores.
    """
    usable = tuple(sorted(os.sched_getaffinity(0)))
    near = list_near_cores()
    count = max(1, len(near)) if wanted is None else wanted
    if count > len(usable):
        raise ConfigurationError(f"{count} slots need as many cores, and this host gives {len(usable)}.")
    if count == 1:
        return [Slot(name, 0 if len(near) == 1 else None, usable)]
    shares = split_cores(usable, [near[index] if index < len(near) else usable for index in range(count)])
    return [
        Slot(f"{name}-{index}", index if index < len(near) else None, cores)
        for index, cores in enumerate(shares)
    ]


def split_cores(usable: Sequence[int], near: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """For each slot a part of the cores near to it, none of them in two parts."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for slot, cores in enumerate(near):
        usable_cores = tuple(sorted(set(cores) & set(usable))) or tuple(usable)
        groups.setdefault(usable_cores, []).append(slot)
    taken: set[int] = set()
    shares: list[tuple[int, ...]] = [()] * len(near)
    for cores, slots in sorted(groups.items(), key=lambda group: len(group[0])):
        free = [core for core in cores if core not in taken] or list(cores)
        # Neighbours, so that a slot's cores share their caches.
        size, rest = divmod(len(free), len(slots))
        start = 0
        for place, slot in enumerate(slots):
            end = start + size + (place < rest)
            shares[slot] = tuple(free[start:end])
            start = end
        taken.update(free)
    return shares


def pin_process(slot: Slot, variables: dict[str, str]) -> None:
    """Keep this process, and all that it starts, on the slot's cores and device. It ends with the process."""
    os.sched_setaffinity(0, slot.cores)
    if slot.device is not None:
        # CUDA counts devices by their speed unless it is set otherwise.
        variables.update(CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES=str(slot.device))


def run_slots(home: Path, slots: Sequence[Slot], site: str, code: str) -> str:
    """An agent for each slot, until all have ended; why, in one sentence."""
    join_missing_slots(home, slots, site, code)
    agents: dict[str, subprocess.Popen[bytes]] = {}
    try:
        with ending_signals():
            for slot in slots:
                agents[slot.name] = start_agent(home, slot, os.environ)
            while any(agent.poll() != 0 for agent in agents.values()):
                time.sleep(LOOK_SECONDS)
                for slot in slots:
                    if agents[slot.name].poll() not in (None, 0):
                        logger.warning("The agent of %s has failed; it is started again", slot.name)
                        time.sleep(RESTART_SECONDS)
                        agents[slot.name] = start_agent(home, slot, os.environ)
            return "The agents of all slots have ended."
    except StopRequested:
        return "Ended."
    finally:
        end_agents(list(agents.values()))


def join_missing_slots(home: Path, slots: Sequence[Slot], site: str, code: str) -> None:
    """Have each slot an identity; one code is good for all that have none."""
    missing = [slot for slot in slots if needs_identity(home, slot, code)]
    if not missing:
        return
    if not (site and code):
        names = ", ".join(slot.name for slot in missing)
        raise ConfigurationError(f"{names} haven't joined a site: {HOW_TO_JOIN}")
    client = SiteClient(site)
    for identity in try_until_answered(lambda: client.join(code, [slot.name for slot in missing])):
        keep_identity(home, identity)


def needs_identity(home: Path, slot: Slot, code: str) -> bool:
    """Whether it has none, or one that the site has revoked while there is a code for a new one."""
    known = read_identity(identity_folder(home, slot.name))
    if known is None or not code:
        return known is None
    try:
        SiteClient.of_identity(known).heartbeat()
    except TokenRefused:
        return True
    except SiteAway:
        return False
    return False


def keep_identity(home: Path, identity: HostIdentity) -> None:
    folder = identity_folder(home, identity.machine)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_identity(folder, identity)
    logger.info("Joined %s as %s", identity.site, identity.machine)


def start_agent(home: Path, slot: Slot, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "workers.host", "run", "--home", str(home), "--slot", slot.name]
    command += ["--cores", ",".join(map(str, slot.cores))]
    if slot.device is not None:
        command += ["--device", str(slot.device)]
    # The code has served: with it a slot would join as another machine.
    variables = {name: value for name, value in environ.items() if name != "PACELINE_JOIN_CODE"}
    return subprocess.Popen(command, env={**variables, PARENT: str(os.getpid())}, start_new_session=True)


def end_agents(agents: Sequence[subprocess.Popen[bytes]]) -> None:
    for agent in agents:
        if agent.poll() is None:
            agent.send_signal(signal.SIGTERM)
    until = time.monotonic() + STOP_SECONDS
    for agent in agents:
        try:
            agent.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            agent.kill()
            agent.wait()
