"""The box: the namespaces and limits in which code runs that somebody pushed.

What is measured, and what builds its environment, sees its own folders, processes, network and temporary
files, and nothing else of the machine. The end of the box is the end of every process in it. What a machine
can do is found out by doing it, once; what is in force is described as data.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from workers.host.box import cgroup, launcher, mounts
from workers.host.box.mounts import BoxView

__all__ = ["NO_BOX", "Box", "BoxError", "BoxView", "BoxedCommand", "Sandbox", "open_box", "read_sandbox"]

Mode = Literal["strict", "available", "off"]
Network = Literal["none", "builds", "all"]
GIB = 1024**3
# Debian keeps this number for itself and gives it to nobody, nor does systemd: no file of the machine is its.
ACCOUNT = 65530
KINDS = ("bubblewrap", "namespaces")
PROBE_SECONDS = 20
# Of the machine's memory, where its owner says nothing: the rest is the worker's and the kernel's.
MEMORY_SHARE = 0.9
MACHINE_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
_SIZE = re.compile(r"([0-9]+)([KMGT]?)")
_numbers = itertools.count(1)


class BoxError(Exception):
    """This machine can't give the box that its owner asks for; one sentence."""


@dataclass(frozen=True)
class Sandbox:
    """What a host's owner asks for: one box's limits. Sizes are in bytes.

    `strict` refuses where a part can't be had, `available` takes the best that can be had, `off` takes none.
    """

    mode: Mode = "available"
    # Who reaches the network of the host, its loopback included: nobody, builds of environments, or all.
    network: Network = "builds"
    # Of all processes together, their files in memory (`disk`, `shared_memory`) included.
    memory: int = int(MEMORY_SHARE * MACHINE_MEMORY)
    # Threads count as processes do.
    processes: int = 4096
    # HOME, TMPDIR, /tmp and what is written beside the code: kept in memory.
    disk: int = min(8 * GIB, MACHINE_MEMORY // 4)
    # As many files, folders and links each of these and /dev/shm may hold.
    files: int = 500_000
    shared_memory: int = min(8 * GIB, MACHINE_MEMORY // 2)
    # What is written into the folders that stay: a document, an environment that is built.
    kept_disk: int = GIB
    build_disk: int = 40 * GIB
    # What the whole tree may print.
    output: int = 256 * 1024**2


def read_sandbox(variables: Mapping[str, str]) -> Sandbox:
    """The settings PACELINE_SANDBOX and PACELINE_SANDBOX_...; ValueError names the variable that is wrong."""
    given: dict[str, Any] = {}
    for name, choices in (("mode", get_args(Mode)), ("network", get_args(Network))):
        variable = "PACELINE_SANDBOX" if name == "mode" else "PACELINE_SANDBOX_NETWORK"
        if word := variables.get(variable):
            if word not in choices:
                raise ValueError(f"{variable} must be one of {', '.join(choices)}, not {word!r}.")
            given[name] = word
    for name in ("memory", "processes", "disk", "files", "shared_memory", "build_disk"):
        variable = f"PACELINE_SANDBOX_{name.upper()}"
        if word := variables.get(variable):
            given[name] = read_size(variable, word)
    return Sandbox(**given)


def read_size(variable: str, word: str) -> int:
    """A positive number, with K, M, G or T for powers of 1024."""
    matched = _SIZE.fullmatch(word)
    size = int(matched[1]) * 1024 ** " KMGT".index(matched[2] or " ") if matched else 0
    if size <= 0:
        raise ValueError(f"{variable} must be a number such as 4096 or 8G, not {word!r}.")
    return size


@dataclass(frozen=True)
class BoxedCommand:
    """A command as it is started, and its control groups."""

    command: list[str]
    group: cgroup.ControlGroup = field(default_factory=lambda: cgroup.ControlGroup(()))


@dataclass(frozen=True)
class Box:
    """What this machine gives. `kind` is a word for people, such as "bubblewrap 0.8.0"; "none" is no box."""

    sandbox: Sandbox
    kind: str = "none"
    program: str = ""
    layers: bool = False
    groups: cgroup.GroupParents = field(default_factory=lambda: cgroup.GroupParents({}))

    @property
    def encloses(self) -> bool:
        """Whether there is a box at all."""
        return self.kind != "none"

    @property
    def limits_ports(self) -> bool:
        """Whether a build can be kept from the services of this host while it reaches an index."""
        return launcher.landlock_version() >= launcher.PORTS_VERSION

    @property
    def account(self) -> int | None:
        """The user id that commands have where root starts them; None where they keep the worker's."""
        return ACCOUNT if self.encloses and os.geteuid() == 0 else None

    def missing(self) -> list[str]:
        """What of a whole box this machine doesn't give, as phrases."""
        if not self.encloses:
            return ["namespaces"]
        if not self.groups.limits_memory:
            return ["a limit on the memory of all processes together, which needs a writable cgroup"]
        return []

    def describe(self) -> dict[str, Any]:
        """What is in force, as JSON; sizes in bytes, None for what has no limit."""
        if not self.encloses:
            return {"kind": "none", "network": "host", "account": os.geteuid()}
        wanted = self.sandbox
        return {
            "kind": self.kind,
            "network": "host" if wanted.network == "all" else "none",
            "build_network": self.build_network(),
            "account": os.geteuid() if self.account is None else self.account,
            "own_account": self.account is not None,
            "memory": wanted.memory,
            # "process": each process has this limit to itself, and what it maps and shares isn't counted.
            "memory_of": "tree" if self.groups.limits_memory else "process",
            "processes": wanted.processes,
            "disk": wanted.disk,
            "files": wanted.files,
            "shared_memory": wanted.shared_memory,
            "output": wanted.output,
            "checkout": "layer" if self.layers else "read-only",
        }

    def build_network(self) -> str:
        """What a build reaches: "none", "index" (the ports of its package index), or all of the "host"."""
        if self.sandbox.network == "none":
            return "none"
        return "index" if self.limits_ports else "host"

    @contextlib.contextmanager
    def wrap_command(
        self, command: Sequence[str], folder: Path, view: BoxView, environ: Mapping[str, str]
    ) -> Iterator[BoxedCommand]:
        """The command as it is started in the box, within `folder`; unchanged where there is none.

        `environ` are the variables that the command gets. Enter it for as long as the command runs: its
        control groups are made and removed here. OSError where that fails.
        """
        if not self.encloses:
            yield BoxedCommand(list(command))
            return
        for path in view.writable:
            self.hand_over(path)
        name = str(next(_numbers))
        with cgroup.limited_group(self.groups, name, self.sandbox.memory, self.sandbox.processes) as group:
            settings = self.launcher_settings(folder, view, environ, group)
            started = [sys.executable, "-I", "-S", str(mounts.LAUNCHER), "enter"]
            yield BoxedCommand([*started, launcher.write_settings(settings), *command], group)

    def hand_over(self, path: Path) -> None:
        """Give a folder or pipe, which the worker has just made, to the box's account."""
        if self.account is None:
            return
        try:
            os.chown(path, self.account, self.account)
        except OSError as error:
            # In a container that maps only some ids to the host's.
            raise OSError(error.errno, f"user {self.account} can't be given files", str(path)) from error

    def let_read(self, folder: Path, *, renewed: bool = False) -> None:
        """Let the box's account read a folder that root made under a strict umask, but not those above it.

        `renewed` says that files came into it since the last time, which its own mode doesn't tell.
        """
        if self.account is None or folder.stat().st_uid != 0 or not mounts.outermost_folders([folder]):
            return
        if folder.stat().st_mode & 0o005 != 0o005 or (renewed and current_umask() & 0o005):
            subprocess.run(["chmod", "-R", "a+rX", "--", str(folder)], check=False, capture_output=True)

    def launcher_settings(
        self, folder: Path, view: BoxView, environ: Mapping[str, str], group: cgroup.ControlGroup
    ) -> launcher.Settings:
        """The settings of launcher.py."""
        wanted = self.sandbox
        owner = os.geteuid() if self.account is None else self.account
        # Above what its own files may take: who fills those is to see that the disk is full.
        largest = wanted.disk + wanted.kept_disk if view.layered else wanted.build_disk
        limits = {"RLIMIT_NPROC": wanted.processes, "RLIMIT_FSIZE": largest}
        if not self.groups.limits_memory:
            limits["RLIMIT_DATA"] = wanted.memory
        return {
            "kind": self.kind.partition(" ")[0],
            "program": self.program,
            "python": os.path.realpath(sys.executable),
            "account": self.account,
            "device_groups": mounts.device_groups(),
            "network": view.network,
            "ports": sorted(view.ports) if view.ports is not None and self.limits_ports else None,
            "groups": group.members,
            "mounts": mounts.list_mounts(view, owner, environ),
            "private": [str(path) for path in view.private],
            "layered": str(view.layered) if view.layered and self.layers else None,
            "disk": wanted.disk,
            "files": wanted.files,
            "shared_memory": wanted.shared_memory,
            "limits": limits,
            "folder": str(folder),
        }


NO_BOX = Box(Sandbox(mode="off"))


@functools.cache
def open_box(sandbox: Sandbox, home: Path, kinds: tuple[str, ...] = KINDS) -> Box:
    """The best box that this machine gives, tried once by starting a command in each kind; BoxError.

    `home` is a folder on the file system that checkouts lie on.
    """
    if sandbox.mode == "off":
        return Box(sandbox)
    reasons: list[str] = []
    found = next(filter(None, (try_kind(kind, sandbox, home, reasons) for kind in kinds)), Box(sandbox))
    if sandbox.mode == "strict" and (missing := found.missing()):
        why = f" ({'; '.join(reasons)})" if reasons and not found.encloses else ""
        raise BoxError(
            f"This machine can't give the box that PACELINE_SANDBOX=strict asks for: {missing[0]}{why}."
        )
    if not found.encloses and os.geteuid() == 0:
        raise BoxError(
            "As root nothing is measured without a box, and this machine gives none "
            f"({'; '.join(reasons)}): use another account, or set PACELINE_SANDBOX=off."
        )
    return found


def try_kind(kind: str, sandbox: Sandbox, home: Path, reasons: list[str]) -> Box | None:
    """A box of this kind, with layers over checkouts if they can be had; None adds the reason."""
    program = shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin") or ""
    if kind == "bubblewrap" and not program:
        reasons.append("bubblewrap: not installed")
        return None
    name = f"{kind} {bubblewrap_version(program)}" if kind == "bubblewrap" else kind
    groups = cgroup.find_parents()
    reason = ""
    for layers in (True, False):
        box = Box(sandbox, name, program if kind == "bubblewrap" else "", layers, groups)
        reason = probe_box(box, home)
        if not reason:
            return box
    reasons.append(f"{kind}: {reason}")
    return None


def current_umask() -> int:
    """This process's umask. Setting it to read it would meet other threads."""
    found = re.search(r"^Umask:\s*([0-7]+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1], 8) if found else 0


def bubblewrap_version(program: str) -> str:
    """As it prints it; "unknown" where it doesn't."""
    asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return asked.stdout.strip().rpartition(" ")[2] or "unknown"


def probe_box(box: Box, home: Path) -> str:
    """Start a command that writes into its checkout's layer and its home; why that fails, or nothing."""
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix="box-") as name:
        checkout, own = Path(name, "checkout"), Path(name, "own")
        checkout.mkdir()
        (own / "home").mkdir(parents=True)
        box.let_read(checkout)
        view = BoxView(writable=[own], private=[own / "home"], layered=checkout)
        written = [
            str(own / "file"),
            str(own / "home" / "file"),
            *([str(checkout / "file")] if box.layers else []),
        ]
        command = ["/usr/bin/touch", *written]
        try:
            with box.wrap_command(command, checkout, view, {}) as boxed:
                started = subprocess.run(
                    boxed.command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    timeout=PROBE_SECONDS,
                    check=False,
                    env={"PATH": "/usr/bin:/bin"},
                )
        except subprocess.TimeoutExpired:
            return f"it did not start within {PROBE_SECONDS} s"
        except OSError as error:
            return f"{error.strerror or error} ({error.filename})"
        if started.returncode == 0:
            return ""
        lines = started.stdout.decode(errors="replace").strip().splitlines()
        return (lines or [f"it ended with exit status {started.returncode}"])[-1].removeprefix("paceline: ")
