"""Data that a benchmark's `prepare` commands make, kept below the home by the content of what they read.

A run finds each file where the command wrote it, as a link to what is kept, which it can't change.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from paceline.manifest.preparation import (
    Preparation,
    content_digest,
    kept_files,
    read_file_states,
    read_files,
)

from workers.host.checkout.commit_code import CommitCode
from workers.host.checkout.placing import place_link
from workers.host.checkout.working_copy import WorkingCopy, is_file_or_link, working_copy
from workers.host.environments.build_runner import BUILD_FOLDER, BuildRunner, BuildStep
from workers.host.environments.requirements import environment_key
from workers.host.environments.shared_environments import (
    COMPLETION_MARK,
    BuiltEnvironment,
    build_once,
    write_mark,
)
from workers.host.errors import BuildError, CheckoutError
from workers.host.folders import remove_tree

PREPARED = "prepared"
FILES = "files"
MOST_FILES = 100_000
MADE = "the data was prepared"


@dataclass(frozen=True)
class DataStep:
    """One command at one commit, with the keys and folders of the commands before it."""

    preparation: Preparation
    code: CommitCode
    environment: BuiltEnvironment
    earlier: tuple[str, ...]
    folders: tuple[Path, ...]

    def shared_key(self) -> str:
        """Of all that the data may depend on. No project finds what the code of another has made."""
        return environment_key(self.inputs())

    def own_key(self) -> str:
        """Of the same, for this commit alone."""
        return environment_key({**self.inputs(), "commit": self.code.commit})

    def inputs(self) -> dict[str, str]:
        preparation = self.preparation
        return {
            "project": self.code.project,
            "environment": self.environment.base_key,
            "command": preparation.run,
            "writes": json.dumps(preparation.writes),
            "reads": self.code.tree if preparation.reads is None else self.reads_digest(),
            "network": str(preparation.network),
            "earlier": json.dumps(self.earlier),
        }

    def reads_digest(self) -> str:
        """The content of the files that it reads; BuildError where the commit has none of them."""
        checkout = self.code.folder
        chosen = read_files(self.preparation, read_file_states(checkout))
        if not chosen:
            names = ", ".join(self.preparation.reads or ())
            raise BuildError(f"prepare: the commit has none of the files that it reads: {names}.")
        return content_digest(checkout, chosen)


def prepare_data(code: CommitCode, environment: BuiltEnvironment, runner: BuildRunner) -> tuple[Path, ...]:
    """Have the data of a commit's benchmark in its checkout; the folders in which it is kept.

    Raises BuildError with the reason, Stopped where the run is no longer ours.
    """
    keys: list[str] = []
    folders: list[Path] = []
    for preparation in code.benchmark.prepare:
        step = DataStep(preparation, code, environment, tuple(keys), tuple(folders))
        key = choose_key(step, runner.home)
        folder = data_folder(runner.home, key)
        notice = f"preparing the data: {preparation.run}"
        if preparation.reads is None:
            notice += " (for this commit alone, since the manifest doesn't say what it reads)"
        elif not code.on_branch:
            notice += " (for this commit alone, since it is on no branch of the project)"
        build_once(folder, notice, runner, partial(make_data, folder, step, runner), MADE)
        place_data(folder, code.folder)
        keys.append(key)
        folders.append(folder)
    return tuple(folders)


def choose_key(step: DataStep, home: Path) -> str:
    """Under which key a step's data is looked for, and made where there is none.

    The command of a commit on no branch, as a fork's, may depend on code that `reads` doesn't name. It
    may find what the project's branches have made, and they never find what it has made.
    """
    shared = step.shared_key()
    return shared if step.code.on_branch or mark_as_used(data_folder(home, shared)) else step.own_key()


def mark_as_used(folder: Path) -> bool:
    """Whether it is complete. As just used it isn't removed before the run takes it."""
    try:
        os.utime(folder / COMPLETION_MARK)
    except FileNotFoundError:
        return False
    return True


def data_folder(home: Path, key: str) -> Path:
    return home / PREPARED / key[:32]


def make_data(folder: Path, step: DataStep, runner: BuildRunner) -> None:
    """Run the command, and keep what it has written; marked once it is complete."""
    checkout, environment, manifest = step.code.folder, step.environment, step.code.manifest
    runner.make_folders(BuildStep(folder, checkout))
    python_path = manifest.environment.python_path if manifest.environment else ()
    with working_copy(checkout, folder.with_suffix(".checkout"), runner.box) as copy:
        build = BuildStep(
            folder,
            checkout,
            copy.copy,
            seen=(*environment.folders, *step.folders),
            programs=(environment.python.parent, *(below / "bin" for below in environment.folders)),
            variables={"PYTHONPATH": ":".join(str(checkout / name) for name in python_path)},
            network=step.preparation.network,
            subject="data",
            made="prepared",
        )
        runner.run_shell(step.preparation.run, build)
        names = keep_data(folder, step.preparation, copy)
    remove_tree(folder / BUILD_FOLDER)
    mark = {"command": step.preparation.run, "files": names, "built_at": time.time()}
    write_mark(folder / COMPLETION_MARK, json.dumps(mark))


def keep_data(folder: Path, preparation: Preparation, copy: WorkingCopy) -> list[str]:
    """Move what the command has written out of the checkout; its paths."""
    written = copy.written()
    changed = [name for name in written if name in copy.before]
    if changed:
        raise BuildError(
            f"{preparation.run!r} has changed {changed[0]}, a file of the commit: data has to lie in "
            "files of its own."
        )
    names = [name for name in kept_files(preparation, written) if is_file_or_link(copy.folder / name)]
    if not names:
        wanted = f"none of {', '.join(preparation.writes)}" if preparation.writes else "no file"
        raise BuildError(
            f"{preparation.run!r} has written {wanted} into the checkout, and what it writes elsewhere "
            "isn't kept."
        )
    if len(names) > MOST_FILES:
        raise BuildError(
            f"{preparation.run!r} has written {len(names)} files, at most {MOST_FILES} are kept."
        )
    kept = folder / FILES
    remove_tree(kept)
    # The command may have put a link there.
    kept.unlink(missing_ok=True)
    for name in names:
        source, target = copy.folder / name, kept / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        if not target.is_symlink():
            target.chmod(0o555 if target.stat().st_mode & 0o100 else 0o444)
    for name in set(written) - set(names):
        # Without a box it would stay in the checkout, for this run alone.
        (copy.folder / name).unlink()
    return names


def place_data(folder: Path, checkout: Path) -> None:
    """Let the data be found in the checkout where the command wrote it."""
    try:
        for name in json.loads((folder / COMPLETION_MARK).read_text())["files"]:
            place_link(folder / FILES / name, checkout, name, "The prepared file")
    except CheckoutError as error:
        raise BuildError(str(error)) from error
