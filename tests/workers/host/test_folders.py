from __future__ import annotations

from pathlib import Path

from workers.host.folders import measure_folder, remove_tree


def test_files_are_counted_with_the_space_that_they_take(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(bytes(100_000))
    (tmp_path / "link").symlink_to("/")
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(10**12)
    size, files = measure_folder(tmp_path, 100)
    assert 100_000 <= size < 200_000
    assert files == 4


def test_counting_ends_where_there_are_too_many(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).touch()
    assert measure_folder(tmp_path, 10)[1] == 11


def test_a_folder_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    assert measure_folder(tmp_path / "missing", 10) == (0, 0)
    remove_tree(tmp_path / "missing")


def test_what_may_not_be_entered_is_removed(tmp_path: Path) -> None:
    closed = tmp_path / "top" / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0)
    remove_tree(tmp_path / "top")
    assert not (tmp_path / "top").exists()


def test_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    remove_tree(tmp_path / "link")
    assert (tmp_path / "kept").is_dir()
