"""What a box shows: the system's programs, devices, and those files of the worker that it is given."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.host.box import launcher

LAUNCHER = Path(launcher.__file__)
SYSTEM = (
    *("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"),
    *("nix/store", "opt/amdgpu", "opt/cuda", "opt/rocm"),
)
# Of /etc what libraries read: no accounts, no keys, no configuration of services.
CONFIGURATION = (
    *(
        "alternatives",
        "ca-certificates",
        "debian_version",
        "fonts",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
    ),
    *(
        "localtime",
        "mime.types",
        "nsswitch.conf",
        "nvidia",
        "OpenCL",
        "os-release",
        "pki/tls/certs",
        "protocols",
    ),
    *("services", "ssl/certs", "ssl/openssl.cnf", "timezone", "vulkan", "glvnd"),
)
NETWORK_CONFIGURATION = ("gai.conf", "host.conf", "hosts", "resolv.conf")
# No terminals, no disks, no memory. The last ones are those of NVIDIA's and AMD's drivers, and of WSL.
DEVICES = ("null", "zero", "full", "random", "urandom")
ACCELERATORS = ("nvidia*", "kfd", "dri", "dxg")
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}

Mount = list[Any]


@dataclass(frozen=True)
class BoxView:
    """The folders and files of the worker that a command sees, each at its own path.

    `layered` is seen with a writable layer over it, or read-only where the kernel allows none. What is
    written into `writable` stays; `private` are folders within these that are empty and go with the box.
    `placed` are folders by the paths at which they are seen, and can be written, instead of their own.
    """

    read_only: Sequence[Path] = ()
    writable: Sequence[Path] = ()
    private: Sequence[Path] = ()
    layered: Path | None = None
    placed: Mapping[Path, Path] = field(default_factory=dict)
    network: bool = False
    # The TCP ports that may be connected to on a network; None for all.
    ports: Sequence[int] | None = None


def list_mounts(view: BoxView, account: int, environ: Mapping[str, str]) -> list[Mount]:
    """All mounts of a box, in the order in which they are made."""
    return [
        *system_mounts(),
        *configuration_mounts(account, network=view.network),
        *device_mounts(),
        ["tmpfs", "/tmp"],  # noqa: S108 - inside the box
        ["symlink", "../tmp", "/var/tmp"],  # noqa: S108
        *folder_mounts(view, environ),
        ["bind", str(LAUNCHER), launcher.INSIDE, False],
    ]


def system_mounts(root: Path = Path("/")) -> Iterator[Mount]:
    """The programs and libraries of the system, processes of the box alone, and the machine's sensors."""
    for name in SYSTEM:
        path = root / name
        if path.is_symlink() and "/" not in name:
            yield ["symlink", str(path.readlink()), f"/{name}"]
        elif path.is_dir():
            yield ["bind", str(path.resolve()), f"/{name}", False]
    yield ["proc", "/proc"]
    yield ["bind", "/sys", "/sys", False]


def configuration_mounts(account: int, *, network: bool) -> Iterator[Mount]:
    """What of /etc is seen; accounts are those of the box."""
    for name in (*CONFIGURATION, *(NETWORK_CONFIGURATION if network else ())):
        path = Path("/etc", name)
        if path.exists():
            yield ["bind", str(path.resolve()), str(path), False]
    yield ["file", f"measured:x:{account}:{account}::/tmp:/bin/sh\n", "/etc/passwd"]
    yield ["file", f"measured:x:{account}:\n", "/etc/group"]
    if not network:
        yield ["file", "127.0.0.1 localhost\n::1 localhost\n", "/etc/hosts"]


def device_mounts(folder: Path = Path("/dev")) -> Iterator[Mount]:
    """The devices, and shared memory for the workers of data loaders."""
    yield ["dir", "/dev"]
    accelerators = [path.name for pattern in ACCELERATORS for path in folder.glob(pattern)]
    for name in (*DEVICES, *sorted(accelerators)):
        if (folder / name).exists():
            yield ["device", f"/dev/{name}"]
    for name, text in LINKS.items():
        yield ["symlink", text, f"/dev/{name}"]
    yield ["tmpfs", "/dev/shm"]  # noqa: S108


def device_groups(folder: Path = Path("/dev")) -> list[int]:
    """The groups, except root's, that may use accelerators which are closed to others."""
    nodes = [node for pattern in ACCELERATORS for node in folder.glob(pattern)]
    nodes += [inner for node in nodes if node.is_dir() for inner in node.iterdir() if not inner.is_dir()]
    infos = [node.stat() for node in nodes if not node.is_dir()]
    closed = [info for info in infos if info.st_mode & 0o060 and not info.st_mode & 0o006]
    return sorted({info.st_gid for info in closed if info.st_gid})


def folder_mounts(view: BoxView, environ: Mapping[str, str]) -> list[Mount]:
    """The given folders, outer ones first. A writable one inside a read-only one stays writable."""
    libraries = [Path(path) for path in environ.get("LD_LIBRARY_PATH", "").split(":")]
    given = [path for path in libraries if path.is_absolute() and path != Path("/") and path.is_dir()]
    read_only = [*view.read_only, *interpreter_folders(Path(sys.executable)), *given]
    if view.layered:
        read_only.append(view.layered)
    shown = dict.fromkeys(outermost_folders(read_only), False)
    shown.update(dict.fromkeys((*view.writable, *view.placed), True))
    sources = {path: view.placed.get(path, path) for path in sorted(shown)}
    return [["bind", os.path.realpath(source), str(path), shown[path]] for path, source in sources.items()]


def interpreter_folders(python: Path) -> list[Path]:
    """An interpreter's environment, and that of the interpreter which it was made with."""
    return [python.parent.parent, Path(sys.base_prefix)]


def outermost_folders(paths: Iterable[Path]) -> list[Path]:
    """The folders without those inside others of them, or inside the system's."""
    system = [Path("/", name) for name in SYSTEM]
    chosen: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(other) for other in (*system, *chosen)):
            chosen.append(path)
    return chosen
