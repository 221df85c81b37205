"""Where the files really lie that a counting process reads, and which of them stand for themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from paceline.counting.read_files import _classify_file, _real_path


@pytest.mark.parametrize(
    "name", ["folder/file", "folder/link", "linked/file", "linked/link", "folder/none", "no/file"]
)
def test_a_file_lies_behind_all_links_on_its_way(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    (tmp_path / "folder" / "link").symlink_to("file")
    (tmp_path / "linked").symlink_to("folder")
    assert _real_path(str(tmp_path / name)) == str((tmp_path / name).resolve())


def test_what_lies_in_the_root_lies_in_no_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "__pycache__").mkdir()
    monkeypatch.chdir(tmp_path / "__pycache__")
    assert _real_path("/usr") == "/usr"
    assert _classify_file("/usr", tmp_path) == "input"
