"""Control groups: limits on the memory and the number of processes of a whole tree, where they may be made.

Both versions of the kernel's interface are used as they are mounted, also one controller of each. Which
folders are writable is the host's affair: root's are, and those that systemd delegates to an account.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PREFIX = "paceline-box-"
CONTROLLERS = ("memory", "pids")
REMOVAL_SECONDS = 2.0


@dataclass(frozen=True)
class Hierarchy:
    """A mounted tree of groups: its version, its root, and our own group in it."""

    version: int
    root: Path
    own: Path


@dataclass(frozen=True)
class GroupParents:
    """For each controller the hierarchy's version and the folder in which groups can be made."""

    by_controller: Mapping[str, tuple[int, Path]]

    @property
    def limits_memory(self) -> bool:
        return "memory" in self.by_controller


@dataclass(frozen=True)
class ControlGroup:
    """The groups of one tree; `members` are the files that a process id is written into to join."""

    folders: Sequence[Path]

    @property
    def members(self) -> list[str]:
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def out_of_memory(self) -> bool:
        """Whether the kernel has ended a process of the tree because it had reached its memory limit."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                counts = read_table(folder / name)
                if int(counts.get("oom_kill", "0")) > 0:
                    return True
        return False


def read_table(file: Path) -> dict[str, str]:
    """The lines `name value` of a file; empty where there is none."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    return {name: value for name, _, value in (line.partition(" ") for line in lines)}


def list_hierarchies(process: Path = Path("/proc/self")) -> dict[str, Hierarchy]:
    """The hierarchy of each controller; of version 2, under the name of the empty string, there is one."""
    own: dict[str, str] = {}
    for line in (process / "cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        own.update(dict.fromkeys(names.split(","), path))
    found: dict[str, Hierarchy] = {}
    for line in (process / "mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        top, folder = before.split()[3:5]
        kind, options = after.split()[0], after.split()[-1]
        controllers = {"cgroup2": [""], "cgroup": options.split(",")}.get(kind, [])
        for name in set(controllers) & set(own):
            # A container mounts its own part of the tree.
            inside = os.path.relpath(own[name], top)
            group = Path(folder) if inside.startswith("..") else Path(folder, inside)
            found.setdefault(name, Hierarchy(2 if kind == "cgroup2" else 1, Path(folder), group))
    return found


def find_parents(process: Path = Path("/proc/self")) -> GroupParents:
    """Where a group can be made for each controller, tried by making one."""
    with contextlib.suppress(OSError, ValueError):
        hierarchies = list_hierarchies(process)
        parents: dict[str, tuple[int, Path]] = {}
        for name in CONTROLLERS:
            hierarchy = hierarchies.get(name) or hierarchies.get("")
            parent = find_parent(hierarchy, name) if hierarchy else None
            if hierarchy and parent:
                parents[name] = (hierarchy.version, parent)
        return GroupParents(parents)
    return GroupParents({})


def find_parent(hierarchy: Hierarchy, controller: str) -> Path | None:
    """The nearest folder, from our own group up to the root, that takes a new group with this controller."""
    for folder in (hierarchy.own, *hierarchy.own.parents):
        if not folder.is_relative_to(hierarchy.root):
            return None
        if hierarchy.version == 2 and not enable_controller(folder, controller):
            continue
        with contextlib.suppress(OSError):
            tried = folder / f"{PREFIX}{os.getpid()}-try"
            tried.mkdir()
            limited = any(tried.glob(f"{controller}.*max*")) or any(tried.glob(f"{controller}.limit*"))
            tried.rmdir()
            if limited:
                return folder
    return None


def enable_controller(folder: Path, controller: str) -> bool:
    """Give the controller to the groups below; refused by the kernel where processes are in this one."""
    control = folder / "cgroup.subtree_control"
    try:
        if controller in control.read_text().split():
            return True
        control.write_text(f"+{controller}")
    except OSError:
        return False
    return True


@contextlib.contextmanager
def limited_group(parents: GroupParents, name: str, memory: int, processes: int) -> Iterator[ControlGroup]:
    """Groups for one tree, removed afterwards; `memory` in bytes, swap included where that is accounted."""
    folders: dict[Path, int] = {}
    for controller, (version, parent) in parents.by_controller.items():
        remove_leftovers(parent)
        folder = parent / f"{PREFIX}{os.getpid()}-{name}"
        if folder not in folders:
            folder.mkdir()
            folders[folder] = version
        for file, value in limit_files(controller, version, memory, processes):
            write_limit(folder / file, value)
    try:
        yield ControlGroup(list(folders))
    finally:
        for folder in folders:
            remove_group(folder)


def limit_files(controller: str, version: int, memory: int, processes: int) -> list[tuple[str, str]]:
    """The files that hold a controller's limits, in the order in which they are written."""
    if controller == "pids":
        return [("pids.max", str(processes))]
    if version == 1:
        return [("memory.limit_in_bytes", str(memory)), ("memory.memsw.limit_in_bytes", str(memory))]
    # Where one process is ended, the measurement is worth nothing any more: all of them are.
    return [("memory.max", str(memory)), ("memory.swap.max", "0"), ("memory.oom.group", "1")]


def write_limit(file: Path, value: str) -> None:
    """Set a limit; kernels without accounting of swap have no file for it."""
    if file.exists():
        file.write_text(value)


def remove_leftovers(parent: Path) -> None:
    """Remove the groups of workers that are gone."""
    for folder in parent.glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()


def remove_group(folder: Path) -> None:
    """Remove a group, whose last process may still be ending."""
    until = time.monotonic() + REMOVAL_SECONDS
    while time.monotonic() < until:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
        else:
            return
