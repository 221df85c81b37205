"""Both versions of control groups, as folders of files; test_hostile_code meets the kernel's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workers.host.box import cgroup
from workers.host.box.cgroup import GroupParents, Hierarchy


def write_process(folder: Path, groups: str, mounts: str) -> Path:
    """What /proc says of a process."""
    folder.mkdir()
    (folder / "cgroup").write_text(groups)
    (folder / "mountinfo").write_text(mounts)
    return folder


def test_hierarchies_of_both_versions_are_found(tmp_path: Path) -> None:
    process = write_process(
        tmp_path / "self",
        "4:memory:/worker\n3:cpu,cpuacct:/\n0::/worker\n",
        "30 1 0:27 / /cg/memory rw - cgroup cgroup rw,memory\n"
        "31 1 0:28 / /cg/unified rw - cgroup2 cgroup2 rw\n"
        "32 1 0:29 / / rw - ext4 /dev/vda rw\n",
    )
    assert cgroup.list_hierarchies(process) == {
        "memory": Hierarchy(1, Path("/cg/memory"), Path("/cg/memory/worker")),
        "": Hierarchy(2, Path("/cg/unified"), Path("/cg/unified/worker")),
    }


def test_a_container_sees_its_own_part_of_the_tree(tmp_path: Path) -> None:
    mounts = "31 1 0:28 /docker/1 /cg rw - cgroup2 cgroup2 rw\n"
    process = write_process(tmp_path / "self", "0::/docker/1/worker\n", mounts)
    assert cgroup.list_hierarchies(process)[""].own == Path("/cg/worker")


def test_without_any_mount_nothing_is_limited(tmp_path: Path) -> None:
    process = write_process(tmp_path / "self", "0::/\n", "")
    assert cgroup.find_parents(process) == GroupParents({})
    assert cgroup.find_parents(tmp_path / "missing") == GroupParents({})


@pytest.mark.parametrize("given", ["memory pids", ""])
def test_a_controller_is_given_to_groups_below(tmp_path: Path, given: str) -> None:
    (tmp_path / "cgroup.subtree_control").write_text(given)
    assert cgroup.enable_controller(tmp_path, "memory")
    assert "memory" in (tmp_path / "cgroup.subtree_control").read_text()


def test_limits_are_written_and_the_group_is_removed(tmp_path: Path) -> None:
    with cgroup.limited_group(GroupParents({"pids": (1, tmp_path)}), "1", 10**9, 48) as group:
        (folder,) = tmp_path.iterdir()
        assert folder.name == f"paceline-box-{os.getpid()}-1"
        assert group.members == [str(folder / "cgroup.procs")]
    assert list(tmp_path.iterdir()) == []


def test_groups_of_workers_that_are_gone_are_removed(tmp_path: Path) -> None:
    (tmp_path / "paceline-box-4194999-1").mkdir()
    (tmp_path / f"paceline-box-{os.getpid()}-7").mkdir()
    cgroup.remove_leftovers(tmp_path)
    assert [folder.name for folder in tmp_path.iterdir()] == [f"paceline-box-{os.getpid()}-7"]


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("memory.events", "oom 3\noom_kill 1\n", True),
        ("memory.oom_control", "under_oom 0\noom_kill 2\n", True),
        ("memory.events", "oom 0\noom_kill 0\n", False),
        ("other", "", False),
    ],
)
def test_an_end_for_want_of_memory_is_seen(tmp_path: Path, file: str, text: str, found: bool) -> None:
    (tmp_path / file).write_text(text)
    assert cgroup.ControlGroup([tmp_path]).out_of_memory() is found


def test_of_version_two_all_are_ended_at_once_and_nothing_is_swapped() -> None:
    assert cgroup.limit_files("memory", 2, 7, 48) == [
        ("memory.max", "7"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
    ]
