from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.repositories import locate_mirror, try_lock
from tests.workers.host.test_checkout import LocalRepository
from tests.workers.repositories import create_repository, head_commit
from workers.host import disk_budget
from workers.host.checkout.worktree import Checkouts
from workers.host.disk_budget import DiskUse, Kind, enforce_disk_budget, list_cached_folders
from workers.host.environments.shared_environments import COMPLETION_MARK

MEGABYTE = 2**20
DAY = 24 * 3600.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def make_environment(
    home: Path, name: str, *, days: float, complete: bool = True, kind: str = "environments"
) -> Path:
    """A folder like an environment's or of prepared data, last used so many days ago."""
    folder = home / kind / name
    folder.mkdir(parents=True)
    (folder / "library.so").write_bytes(os.urandom(MEGABYTE))
    mark = folder / COMPLETION_MARK if complete else folder
    if complete:
        mark.touch()
    set_age(mark, days)
    return folder


def make_project(home: Path, name: str, *, days: float, machine: str = "gpu-1") -> tuple[Path, Path]:
    """The mirror and the worktree of a small repository, last used so many days ago."""
    source = home.parent / "sources" / name
    if not source.exists():
        create_repository(source, {"train.py": "pass"})
    mirror = replace(locate_mirror(home, name, ""), repository=str(source))
    mirror.fetch()
    worktree = Checkouts(home, machine).worktree(mirror)
    worktree.rebuild(head_commit(source))
    worktree.check_out(head_commit(source))
    for path in (mirror.folder, *mirror.folder.glob("worktrees/*")):
        set_age(path, days)
    return mirror.folder, worktree.folder


def set_age(path: Path, days: float) -> None:
    used_at = time.time() - days * DAY
    os.utime(path, (used_at, used_at))


def enforce_megabytes(home: Path, megabytes: float, **options: object) -> DiskUse:
    return enforce_disk_budget(home, int(megabytes * MEGABYTE), "gpu-1", **options)  # type: ignore[arg-type]


def test_below_the_budget_all_stays(home: Path) -> None:
    folder = make_environment(home, "aa", days=300)
    use = enforce_megabytes(home, 2)
    assert folder.is_dir()
    assert use.removed == ()
    assert MEGABYTE <= use.after == use.before < 1.1 * MEGABYTE


def test_the_longest_unused_environment_goes_first(home: Path) -> None:
    folders = [make_environment(home, name, days=days) for name, days in (("aa", 1), ("bb", 3), ("cc", 2))]
    use = enforce_megabytes(home, 2.5)
    assert [folder.is_dir() for folder in folders] == [True, False, True]
    assert use.removed == (folders[1],)
    assert use.after == use.before // 3 * 2


def test_environments_go_before_projects_and_projects_of_yesterday_stay(home: Path) -> None:
    environment = make_environment(home, "aa", days=0)
    data = make_environment(home, "aa", days=9, kind="prepared")
    half = make_environment(home, "bb", days=1, kind="prepared", complete=False)
    older, newer = make_project(home, "older", days=20), make_project(home, "newer", days=0.5)
    use = enforce_megabytes(home, 0)
    assert use.removed == (half, environment, data, older[1], older[0])
    assert all(folder.is_dir() for folder in newer)


def test_a_removed_project_is_fetched_again(home: Path) -> None:
    mirror, worktree = make_project(home, "demo", days=20)
    enforce_megabytes(home, 0)
    assert not mirror.exists()
    assert not worktree.exists()
    assert (make_project(home, "demo", days=0)[1] / "train.py").is_file()


def test_what_the_job_needs_stays(home: Path) -> None:
    environment = make_environment(home, "aa", days=300)
    python = environment / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    mirror, worktree = make_project(home, "demo", days=300)
    use = enforce_megabytes(home, 0, keep=(worktree, python))
    assert use.removed == ()
    assert mirror.is_dir()


def test_what_is_locked_stays(home: Path) -> None:
    built = make_environment(home, "aa", days=2, complete=False)
    locked, free = make_environment(home, "bb", days=3), make_environment(home, "cc", days=1)
    with try_lock(built.with_suffix(".lock")), try_lock(locked.with_suffix(".lock")):
        assert enforce_megabytes(home, 0).removed == (free,)
    assert set(enforce_megabytes(home, 0).removed) == {built, locked}


def test_while_another_machine_measures_what_it_may_use_stays(home: Path) -> None:
    make_environment(home, "aa", days=2)
    _, own = make_project(home, "own", days=20)
    _, others = make_project(home, "shared", days=20, machine="gpu-2")
    with try_lock(home / "locks" / "gpu-2.lock"):
        assert enforce_megabytes(home, 0).removed == (own,)
    assert others in enforce_megabytes(home, 0).removed


def test_the_lock_of_the_own_machine_is_no_other_one(home: Path) -> None:
    folder = make_environment(home, "aa", days=2)
    with try_lock(home / "locks" / "gpu-1.lock"):
        assert enforce_megabytes(home, 0).removed == (folder,)


def test_what_was_used_since_it_was_listed_stays(home: Path) -> None:
    folder = make_environment(home, "aa", days=2)
    (listed,) = list_cached_folders(home, "gpu-1")
    os.utime(folder / COMPLETION_MARK)
    assert not disk_budget.remove_unused(listed, 10)
    assert folder.is_dir()


def test_pips_downloads_count_and_go_before_environments(home: Path) -> None:
    downloads = make_environment(home, "home", days=0, complete=False)
    environment = make_environment(home, "aa", days=300)
    assert enforce_megabytes(home, 1.5).removed == (downloads,)
    assert environment.is_dir()


def test_what_interrupted_builds_and_removals_left_goes_in_any_case(home: Path) -> None:
    left = [make_environment(home, name, days=0, complete=False) for name in ("aa", "bb.removed")]
    for name in ("mirrors/x-1.git.removed", "worktrees/gpu-1/x-1"):
        left.append(home / name)
        left[-1].mkdir(parents=True)
    assert set(enforce_megabytes(home, 100).removed) == set(left)
    assert list(list_cached_folders(home, "gpu-1")) == []


def test_without_time_nothing_is_lost_and_it_is_told(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = make_environment(home, "aa", days=2)
    use = enforce_megabytes(home, 0, seconds=0.0)
    assert use.removed == ()
    assert not use.complete
    assert folder.is_dir()
    assert "could be measured in time" in caplog.text


def test_a_budget_that_cannot_be_kept_is_told(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_project(home, "demo", days=0)
    assert enforce_megabytes(home, 0).removed == ()
    assert "of a budget of 0 MB: the rest is in use or was used lately" in caplog.text


def test_a_checkout_marks_what_it_uses(home: Path) -> None:
    make_project(home, "demo", days=20)
    source = home.parent / "sources" / "demo"
    Checkouts(home, "gpu-1").prepare(LocalRepository(str(source)), "demo", head_commit(source))
    ages = {kept.kind: time.time() - kept.used_at for kept in list_cached_folders(home, "gpu-1")}
    assert set(ages) == {Kind.WORKTREE, Kind.MIRROR}
    assert max(ages.values()) < 60


def test_an_empty_home_needs_nothing(home: Path) -> None:
    assert enforce_megabytes(home, 0) == DiskUse(0, 0, (), True)
