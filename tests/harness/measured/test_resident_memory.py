"""Resident memory is this process's, whatever a script does to the file that it is read from."""

import os
from pathlib import Path

import pytest
from paceline.measured.resident_memory import ResidentMemory


@pytest.mark.parametrize("text", ["5 0 0 12\n0 1 0 7\n", "", "words"])
def test_another_file_by_its_number_is_not_read(tmp_path: Path, text: str) -> None:
    memory = ResidentMemory()
    (tmp_path / "own.txt").write_text(text)
    with (tmp_path / "own.txt").open() as own:
        os.dup2(own.fileno(), memory._file)
    assert memory.read() > 10**6
