from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.services.journal import Journal


def test_a_full_disk_is_said_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "web.log").symlink_to("/dev/full")
    shown: list[tuple[str, str]] = []
    journal = Journal(tmp_path, lambda name, line: shown.append((name, line)))
    for number in range(3):
        journal.write("web", f"line {number}")
    sentence = (
        f"{tmp_path / 'web.log'} can't be written: No space left on device. Lines are lost until it can."
    )
    assert shown == [("paceline", sentence), *(("web", f"line {number}") for number in range(3))]
    assert capfd.readouterr().err == ""


def test_one_file_that_fails_is_said_once_whatever_the_others_do(tmp_path: Path) -> None:
    (tmp_path / "web.log").symlink_to("/dev/full")
    shown: list[str] = []
    journal = Journal(tmp_path, lambda name, _: shown.append(name))
    for name in ("web", "beat", "web", "beat"):
        journal.write(name, "line")
    journal.close()
    assert shown.count("paceline") == 1


def test_lines_are_kept_again_once_there_is_room(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.symlink_to("/dev/full")
    journal = Journal(tmp_path, None)
    journal.write("web", "lost")
    log.unlink()
    journal.write("web", "kept")
    journal.close()
    assert log.read_text().splitlines() == ["kept"]
