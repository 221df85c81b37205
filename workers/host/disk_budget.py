"""What a host keeps on disk, held below a budget: environments, data, mirrors, worktrees; oldest use first.

Nothing of it is the only copy: what is removed is built or fetched again when a job needs it.
"""

from __future__ import annotations

import enum
import logging
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from dashboard.repositories import safe_name, try_lock
from workers.host.environments.prepared_data import PREPARED
from workers.host.environments.shared_environments import COMPLETION_MARK, list_environments

logger = logging.getLogger(__name__)

TIME_LIMIT = 60.0
# A mirror or worktree that was used since then is kept: a budget that is too small would fetch for every job.
RECENT_SECONDS = 24 * 3600
# Renamed first, so that an interrupted removal leaves no half folder under a name that counts.
REMOVED = ".removed"
# pip's downloads, below the environments.
DOWNLOADS = "home"


class Kind(enum.IntEnum):
    """What a folder holds, in the order of removal."""

    LEFTOVER = 0
    DOWNLOADS = 1
    ENVIRONMENT = 2
    DATA = 3
    WORKTREE = 4
    MIRROR = 5


# Used by all machines that share a home.
SHARED = (Kind.DOWNLOADS, Kind.ENVIRONMENT, Kind.DATA, Kind.MIRROR)


@dataclass(frozen=True)
class CachedFolder:
    """A folder that may be removed; `used_at` is a Unix time, `lock` the file that its users hold."""

    folder: Path
    kind: Kind
    used_at: float
    lock: Path | None = None

    @property
    def removal_order(self) -> tuple[Kind, float]:
        return self.kind, self.used_at


@dataclass(frozen=True)
class DiskUse:
    """What one enforcement did, in bytes; `complete` is False where not all was measured in time."""

    before: int
    after: int
    removed: tuple[Path, ...]
    complete: bool


def enforce_disk_budget(
    home: Path, budget: int, machine: str, *, keep: Collection[Path] = (), seconds: float = TIME_LIMIT
) -> DiskUse:
    """Remove what is longest unused under `home` until it takes at most `budget` bytes.

    Call it while you hold the lock of `machine`, so that no job of it uses what goes. Kept in any case:
    folders that hold a path of `keep`, those whose lock is held, what another machine that measures now may
    use, and projects used within RECENT_SECONDS. What isn't done within `seconds` is left to the next call.
    A folder that can't be removed is reported in the log; OSError only where one can't be listed.
    """
    until = time.monotonic() + seconds
    cached = sorted(list_cached_folders(home, machine), key=lambda folder: folder.removal_order)
    # Asked after the listing: a machine that begins later marks what it uses, and is found by that.
    shared = other_machine_measures(home, machine)
    # Half of the time, so that some is left for removing.
    sizes = measure_folders([each.folder for each in cached], seconds / 2)
    before = total = sum(sizes.values())
    removed = []
    for candidate in cached:
        if time.monotonic() > until or (total <= budget and candidate.kind is not Kind.LEFTOVER):
            break
        if is_needed(candidate, keep) or (shared and candidate.kind in SHARED):
            continue
        if remove_unused(candidate, until - time.monotonic()):
            total -= sizes.get(candidate.folder, 0)
            removed.append(candidate.folder)
    use = DiskUse(before, total, tuple(removed), len(sizes) == len(cached))
    log_disk_use(home, budget, use)
    return use


def list_cached_folders(home: Path, machine: str) -> Iterator[CachedFolder]:
    """All that may be removed under `home` by who holds the lock of `machine`, in no order."""
    for name, kind in (("environments", Kind.ENVIRONMENT), (PREPARED, Kind.DATA)):
        for built in list_environments(home, name):
            lock = None if is_removed(built.folder) else built.folder.with_suffix(".lock")
            yield CachedFolder(built.folder, kind if built.complete else Kind.LEFTOVER, built.used_at, lock)
    downloads = home / "environments" / DOWNLOADS
    if downloads.is_dir():
        yield CachedFolder(downloads, Kind.DOWNLOADS, downloads.stat().st_mtime)
    records = worktree_records(home)
    for folder in (home / "worktrees").glob("*/*"):
        owner = folder.parent.name
        lock = None if owner == safe_name(machine) else home / "locks" / f"{owner}.lock"
        record = records.get(folder.resolve() / ".git")
        if record is None or is_removed(folder):
            yield CachedFolder(folder, Kind.LEFTOVER, folder.lstat().st_mtime, lock)
        else:
            # The record's time, not the folder's: what was measured in there may have set that one.
            yield CachedFolder(folder, Kind.WORKTREE, record.stat().st_mtime, lock)
    for folder in (home / "mirrors").glob("*.git*"):
        if is_removed(folder):
            yield CachedFolder(folder, Kind.LEFTOVER, folder.stat().st_mtime)
        else:
            used_at = max(path.stat().st_mtime for path in (folder, *folder.glob("worktrees/*")))
            yield CachedFolder(folder, Kind.MIRROR, used_at, folder.with_suffix(".lock"))


def is_removed(folder: Path) -> bool:
    """Whether a removal of the folder has begun."""
    return folder.name.endswith(REMOVED)


def worktree_records(home: Path) -> dict[Path, Path]:
    """The `.git` file of each worktree that a mirror knows -> where the mirror keeps its state."""
    return {
        Path(link.read_text(errors="surrogateescape").strip()): link.parent
        for link in (home / "mirrors").resolve().glob("*.git/worktrees/*/gitdir")
    }


def other_machine_measures(home: Path, machine: str) -> bool:
    """Whether a job of another machine that shares this home runs now."""
    for lock in (home / "locks").glob("*.lock"):
        if lock.stem == safe_name(machine):
            continue
        with try_lock(lock) as descriptor:
            if descriptor is None:
                return True
    return False


def is_needed(candidate: CachedFolder, keep: Collection[Path]) -> bool:
    """Whether the current job, a worktree of the mirror or a recent use speaks against the removal."""
    folder = candidate.folder.resolve()
    # Not the path's own link: an environment's interpreter leads to the system's.
    if any((path.parent.resolve() / path.name).is_relative_to(folder) for path in keep):
        return True
    if candidate.kind < Kind.WORKTREE:
        return False
    if candidate.kind is Kind.MIRROR and any(
        Path(link.read_text(errors="surrogateescape").strip()).parent.is_dir()
        for link in folder.glob("worktrees/*/gitdir")
    ):
        return True
    return time.time() - candidate.used_at < RECENT_SECONDS


def remove_unused(candidate: CachedFolder, seconds: float) -> bool:
    """Remove the folder unless it is locked or was used since it was listed. True: it is gone by its name."""
    with nullcontext(0) if candidate.lock is None else try_lock(candidate.lock) as descriptor:
        if descriptor is None or was_used_since(candidate):
            return False
        target = candidate.folder
        if not is_removed(target):
            target = target.with_name(target.name + REMOVED)
            # Of an earlier removal that did not end.
            delete_tree(target, seconds)
            try:
                candidate.folder.rename(target)
            except OSError as error:
                logger.warning("%s can't be removed: %s", candidate.folder, error.strerror)
                return False
    if delete_tree(target, seconds):
        return True
    logger.warning("%s is not removed yet; the next job goes on with it", target)
    return False


def was_used_since(candidate: CachedFolder) -> bool:
    """Whether an environment, data or a mirror was used after it was listed. Ask under its lock."""
    built = candidate.folder / COMPLETION_MARK
    marks = {Kind.ENVIRONMENT: built, Kind.DATA: built, Kind.MIRROR: candidate.folder}
    mark = marks.get(candidate.kind)
    try:
        return mark is not None and mark.stat().st_mtime > candidate.used_at
    except FileNotFoundError:
        return True


def delete_tree(folder: Path, seconds: float) -> bool:
    """Delete the folder within the time, by rm: trees of any depth. False: some of it is left."""
    with suppress(subprocess.TimeoutExpired):
        command = ["rm", "-rf", "--", str(folder)]
        subprocess.run(command, timeout=max(seconds, 0.1), capture_output=True, check=False)
    return not folder.exists()


def measure_folders(folders: Sequence[Path], seconds: float) -> dict[Path, int]:
    """The bytes that folders take on disk, of those that could be measured within the time."""
    if not folders:
        return {}
    # A file with several names counts once.
    command = ["du", "--summarize", "--block-size=1", "--null", "--", *map(str, folders)]
    try:
        printed = subprocess.run(command, timeout=seconds, capture_output=True, check=False).stdout
    except subprocess.TimeoutExpired as error:
        printed = error.stdout or b""
    lines = [line.partition(b"\t") for line in printed.split(b"\0")[:-1]]
    return {Path(name.decode(errors="surrogateescape")): int(size) for size, _, name in lines}


def log_disk_use(home: Path, budget: int, use: DiskUse) -> None:
    """Say what was removed, and where the budget is still exceeded."""
    if use.removed:
        names = ", ".join(str(folder.relative_to(home)) for folder in use.removed)
        logger.info("%d MB were freed: %s", (use.before - use.after) // 10**6, names)
    if use.after > budget:
        text = "%d MB are in use below %s, of a budget of %d MB: the rest is in use or was used lately"
        logger.warning(text, use.after // 10**6, home, budget // 10**6)
    if not use.complete:
        logger.warning("Not all of %s could be measured in time; it goes on with the next job", home)
