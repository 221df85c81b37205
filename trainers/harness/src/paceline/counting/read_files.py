"""Which files a counting process reads, so that a later commit that changes none of them needn't count.

An audit hook sees what Python opens, `sys.modules` what was imported. What can't be seen is a doubt, and with
a doubt every commit is counted: another process, a connection, a package that no record describes.
"""

from __future__ import annotations

import hashlib
import os
import re
import site
import stat
import sys
import sysconfig
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

# Doubts: what the process did whose inputs aren't among the files that it was seen to read.
PROCESSES, NETWORK, DATABASE = "processes", "network", "database"
UNRECORDED, TOO_MUCH = "unrecorded packages", "too many files"
DOUBTFUL_EVENTS = {
    **dict.fromkeys(("os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.spawn"), PROCESSES),
    **dict.fromkeys(("os.system", "subprocess.Popen"), PROCESSES),
    **dict.fromkeys(("socket.connect", "socket.bind"), NETWORK),
    "sqlite3.connect": DATABASE,
}
# It tells which libraries the system has: `ctypes.util.find_library` asks it, as imports of CUDA do.
LINKER_QUESTION = ("/sbin/ldconfig", ["/sbin/ldconfig", "-p"])
# These start processes without an event; multiprocessing imports them at the first start.
SPAWNING_MODULES = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver")
# Of the system, which the document's environment describes.
SYSTEM_FOLDERS = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/lib/", "/lib64/", "/bin/")
ABSENT = 64 * "0"
# Files whose digests a document holds; a counting that read more isn't shared.
READ_FILES_LIMIT = 2_000
BYTES_LIMIT = 512 * 2**20
# What each line of a package's record begins with.
TOPS = re.compile(rb"^[^/,\r\n]+", re.MULTILINE)
PACKAGE = str(Path(__file__).resolve().parent.parent)


class ReadFiles:
    """Notes what this process reads from now on; a hook can't be removed, so there is one in a process."""

    def __init__(self) -> None:
        # Before what is measured can change the path of imports.
        package_folders()
        self._read: set[str] = set()
        self._written: set[str] = set()
        self._doubts: set[str] = set()
        sys.addaudithook(self._note_event)

    def _note_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._note_opened(*arguments[:3])
        elif event in DOUBTFUL_EVENTS and arguments[:2] != LINKER_QUESTION:
            self._doubts.add(DOUBTFUL_EVENTS[event])

    def _note_opened(self, path: object, mode: object, flags: object) -> None:
        if isinstance(path, int) or not isinstance(path, str | bytes | os.PathLike):
            return
        name = _absolute_path(os.fsdecode(path))
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes or (isinstance(mode, str) and set(mode) & set("wax+")):
            # What it wrote before it read it, it made itself.
            if name not in self._read:
                self._written.add(name)
        else:
            self._read.add(name)

    def result(self, folder: Path) -> dict[str, Any]:
        """Return `files`, a digest by path (within `folder`, or absolute), and `doubts`, in order."""
        doubts = set(self._doubts)
        if any(name in sys.modules for name in SPAWNING_MODULES):
            doubts.add(PROCESSES)
        modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        loaded = {_absolute_path(name) for name in modules if isinstance(name, str)}
        files: dict[str, str] = {}
        size = 0
        for name in sorted((self._read | loaded) - self._written):
            kind = _classify_file(name, folder)
            if kind == "environment":
                continue
            there = Path(name).is_file()
            if kind == "unrecorded" and there:
                doubts.add(UNRECORDED)
            elif kind == "input" and (there or not _lies_in(name, folder)):
                size += Path(name).stat().st_size if there else 0
                if len(files) >= READ_FILES_LIMIT or size > BYTES_LIMIT or not _is_storable_path(name):
                    doubts.add(TOO_MUCH)
                    break
                files[os.path.relpath(name, folder) if _lies_in(name, folder) else name] = hash_file(name)
        return {"files": {} if doubts else files, "doubts": sorted(doubts)}


def _classify_file(name: str, folder: Path) -> str:
    """Whether a file is an `input`, or one that the environment stands for, or `unrecorded` in it."""
    if name.startswith(SYSTEM_FOLDERS):
        return "environment"
    real = _real_path(name)
    if real.startswith(PACKAGE + os.sep) or "__pycache__" in real:
        return "environment"
    if _lies_in(name, folder):
        return "input"
    for packages in package_folders():
        if name.startswith(packages + os.sep):
            within = os.fsencode(name[len(packages) + 1 :])
            is_recorded = within in recorded_files(packages, within.partition(b"/")[0])
            return "environment" if is_recorded else "unrecorded"
    if real.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep, sysconfig.get_path("stdlib"))):
        return "environment"
    return "input"


def _absolute_path(name: str) -> str:
    """As `open` finds it now, its links not followed."""
    return os.path.normpath(name if name.startswith(os.sep) else Path(name).absolute())


def _real_path(name: str) -> str:
    """As `os.path.realpath`, which asks about every folder again for each of a thousand files in it."""
    folder, _, last = name.rpartition(os.sep)
    try:
        # In the root there is no folder to ask about.
        is_joined = folder != "" and not stat.S_ISLNK(os.lstat(name).st_mode)
    except OSError:
        is_joined = False
    return f"{_real_folder(folder)}{os.sep}{last}" if is_joined else os.path.realpath(name)


@cache
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def _is_storable_path(name: str) -> bool:
    """Whether a document can hold the path."""
    return len(name) <= 2000 and all(character.isprintable() for character in name)


def _lies_in(name: str, folder: Path) -> bool:
    return name.startswith(f"{folder}{os.sep}")


@cache
def package_folders() -> tuple[str, ...]:
    """The folders of this interpreter's packages, those of an environment below its own included."""
    found = [*site.getsitepackages(), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    # A host puts a commit's own packages over an environment that commits share, by a .pth file.
    found += [name for name in sys.path if Path(name).name in ("site-packages", "dist-packages")]
    return tuple(dict.fromkeys(_absolute_path(name) for name in found))


@cache
def _package_records(packages: str) -> dict[str, bytes]:
    """What is recorded of each package of a folder, by the name of its `.dist-info`."""
    records = sorted(Path(packages).glob("*.dist-info/RECORD"))
    return {record.parent.name: record.read_bytes() for record in records}


@cache
def _records_by_top(packages: str) -> dict[bytes, list[bytes]]:
    """The records that name something in each folder or file of a folder of packages."""
    found: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for record in _package_records(packages).values():
        for top in set(TOPS.findall(record)):
            found[top].append(record)
    return found


@cache
def recorded_files(packages: str, top: bytes) -> frozenset[bytes]:
    """The files of `top`, a folder or a file in a folder of packages, whose contents their records name.

    Not those of all packages at once: there may be a hundred thousand, and few are read.
    """
    records = _records_by_top(packages).get(top, [])
    lines = (line for record in records for line in record.splitlines() if line.startswith(top))
    return frozenset(line.partition(b",")[0] for line in lines)


def digest_environment() -> str:
    """A digest of the interpreter, of what its packages' records say, and of the harness itself."""
    digest = hashlib.sha256(sys.version.encode())
    for packages in package_folders():
        for name, record in _package_records(packages).items():
            digest.update(name.encode())
            digest.update(record)
    for source in sorted(Path(PACKAGE).rglob("*.py")):
        digest.update(source.relative_to(PACKAGE).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()


def hash_file(name: str | Path) -> str:
    """The file's SHA-256; ABSENT where there is none, which was looked for."""
    try:
        with Path(name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ABSENT
