"""Data that a benchmark needs before its first step: the commands that make it, and what they have written.

A host keeps what a command has written by the content of what it reads. By hand it is written where it
stands, once; a mark in the account's cache says what was made, and of what.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from .environment_table import check_command, refuse_outside
from .toml_table import ManifestError, TomlTable

COMMANDS_LIMIT = 20
PATTERNS_LIMIT = 50
# What Python and git leave beside code is no data.
_LEFT_OUT = frozenset({"__pycache__", ".git"})
SHELL = "/bin/sh"

FileStates = Mapping[str, tuple[int, int]]


class PreparationError(ManifestError):
    """The data can't be made; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """A command that writes data into the checkout. Paths and patterns are relative to it.

    `reads` is None where it isn't declared: then all of the commit counts. `writes` is empty where it isn't:
    then every new file counts. `network` is None for what the host allows, True where it is needed.
    """

    run: str
    reads: tuple[str, ...] | None = None
    writes: tuple[str, ...] = ()
    network: bool | None = None

    def __str__(self) -> str:
        reads = "" if self.reads is None else f", reads {' '.join(self.reads)}"
        writes = f", writes {' '.join(self.writes)}" if self.writes else ""
        network = {None: "", True: ", with the network", False: ", without a network"}[self.network]
        return f"{self.run}{reads}{writes}{network}"


def parse_preparations(table: TomlTable) -> tuple[Preparation, ...]:
    """Read the key `prepare` of a benchmark's table, a list of commands or tables; raises ManifestError."""
    listed = table.strings_or_tables("prepare")
    if listed is None:
        return ()
    if not listed:
        raise table.error("prepare", "is empty, leave it out or name at least one command")
    if len(listed) > COMMANDS_LIMIT:
        raise table.error("prepare", f"has {len(listed)} commands, at most {COMMANDS_LIMIT} are allowed")
    return tuple(
        _parse_preparation(item)
        if isinstance(item, TomlTable)
        else Preparation(check_command(table, "prepare", item))
        for item in listed
    )


def _parse_preparation(table: TomlTable) -> Preparation:
    preparation = Preparation(
        run=check_command(table, "run", table.required_string("run")),
        reads=_parse_patterns(table, "reads") if table.has_key("reads") else None,
        writes=_parse_patterns(table, "writes"),
        network=table.boolean("network", default=False) if table.has_key("network") else None,
    )
    table.refuse_unread_keys()
    return preparation


def _parse_patterns(table: TomlTable, key: str) -> tuple[str, ...]:
    patterns = table.strings(key) or []
    if len(patterns) > PATTERNS_LIMIT:
        raise table.error(key, f"has {len(patterns)} members, at most {PATTERNS_LIMIT} are allowed")
    for pattern in patterns:
        check_command(table, key, pattern)
        refuse_outside(table, key, pattern)
    return tuple(str(PurePosixPath(pattern)) for pattern in patterns)


def is_chosen(path: str, patterns: Iterable[str]) -> bool:
    """Whether a file's path is one of the patterns' (`*` stops at no slash), or lies in a folder that is."""
    parents = [str(parent) for parent in PurePosixPath(path).parents]
    return any(
        fnmatch.fnmatchcase(candidate, pattern) for pattern in patterns for candidate in (path, *parents)
    )


def read_file_states(folder: Path) -> dict[str, tuple[int, int]]:
    """By its path from the folder the size and the time of change of each file and link."""
    states = {}
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        links = [name for name in folders if os.path.islink(os.path.join(top, name))]  # noqa: PTH114, PTH118
        for name in (*files, *links):
            path = os.path.join(top, name)  # noqa: PTH118 - a walk over many files
            if name not in _LEFT_OUT:
                state = os.lstat(path)
                states[os.path.relpath(path, folder)] = (state.st_size, state.st_mtime_ns)
    return states


def written_files(before: FileStates, after: FileStates) -> list[str]:
    """The files that are new or have changed."""
    return sorted(path for path, state in after.items() if before.get(path) != state)


def content_digest(folder: Path, paths: Iterable[str]) -> str:
    """A hash of these files' paths and contents; of a link, of where it leads."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        place = folder / path
        content = os.fsencode(place.readlink()) if place.is_symlink() else _read_content(place)
        for part in (os.fsencode(path), content):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _read_content(place: Path) -> bytes:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def read_files(preparation: Preparation, files: Iterable[str]) -> list[str]:
    """Of these files those that the command reads, as the manifest says; all where it says nothing."""
    return [path for path in files if preparation.reads is None or is_chosen(path, preparation.reads)]


def kept_files(preparation: Preparation, files: Iterable[str]) -> list[str]:
    """Of the files that the command has written those that are data, as the manifest says."""
    return [path for path in files if not preparation.writes or is_chosen(path, preparation.writes)]


def prepare_by_hand(
    preparations: Sequence[Preparation],
    folder: Path,
    python_path: Sequence[str],
    print_message: Callable[[str], None],
    time_limit: float | None = None,
) -> None:
    """Run the commands whose data isn't there yet, in the folder; raises PreparationError.

    `time_limit` is in seconds, for each of them.
    """
    for preparation in preparations:
        mark = _mark_file(preparation, folder)
        if not _is_there(preparation, folder, mark):
            print_message(f"preparing the data: {preparation.run}")
            before = read_file_states(folder)
            _run_command(preparation, folder, python_path, time_limit)
            made = kept_files(preparation, written_files(before, read_file_states(folder)))
            if not made and not preparation.writes:
                print_message("the command has written no file into the folder")
            _write_mark(mark, preparation, folder, made)


def _is_there(preparation: Preparation, folder: Path, mark: Path) -> bool:
    """Whether the data was made of what stands in the folder now, or lies there since somebody made it."""
    try:
        kept = json.loads(mark.read_text())
        made: list[str] = kept["made"]
    except (OSError, ValueError, KeyError, TypeError):
        patterns = preparation.writes
        return bool(patterns) and all(
            any(path.is_file() for path in folder.glob(pattern)) for pattern in patterns
        )
    if not all((folder / path).exists() for path in made):
        return False
    # Where nothing is declared, every change of the code would make it anew.
    return preparation.reads is None or kept.get("reads") == _reads_digest(preparation, folder, made)


def _reads_digest(preparation: Preparation, folder: Path, made: Sequence[str]) -> str:
    files = [path for path in read_file_states(folder) if path not in set(made)]
    return content_digest(folder, read_files(preparation, files))


def _mark_file(preparation: Preparation, folder: Path) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    text = json.dumps([str(folder.resolve()), asdict(preparation)], sort_keys=True)
    return cache / "paceline" / "prepared" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def _write_mark(mark: Path, preparation: Preparation, folder: Path, made: Sequence[str]) -> None:
    reads = None if preparation.reads is None else _reads_digest(preparation, folder, made)
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        partial = mark.with_suffix(".partial")
        partial.write_text(json.dumps({"made": list(made), "reads": reads}))
        partial.replace(mark)
    except OSError as error:
        raise PreparationError(f"{mark}: {error.strerror}") from error


def command_path(python: Path, path: str) -> str:
    """The variable PATH under which a command's `python` is this interpreter."""
    return f"{python.parent}{os.pathsep}{path}"


def _run_command(
    preparation: Preparation, folder: Path, python_path: Sequence[str], time_limit: float | None
) -> None:
    added = [str(folder / name) for name in python_path]
    variables = {
        **os.environ,
        "PATH": command_path(Path(sys.executable), os.environ.get("PATH", "")),
        "PYTHONPATH": os.pathsep.join(filter(None, [*added, os.environ.get("PYTHONPATH", "")])),
    }
    with subprocess.Popen(
        [SHELL, "-c", preparation.run],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        # What the shell has started has to end with it.
        start_new_session=time_limit is not None,
    ) as command:
        try:
            status = command.wait(time_limit)
        except subprocess.TimeoutExpired as error:
            os.killpg(command.pid, signal.SIGKILL)
            raise PreparationError(f"{preparation.run!r} took longer than {time_limit:.0f} s") from error
    if status != 0:
        raise PreparationError(f"{preparation.run!r} failed with exit status {status}")
