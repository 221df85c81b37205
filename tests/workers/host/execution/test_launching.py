"""What a launch passes on, and how its untrusted files are read; test_run_executor runs the harness."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from workers.host.errors import BadDocumentError, NoDocumentError
from workers.host.execution import launching
from workers.host.execution.launching import Measurement, Progress

SECRETS = {"DATABASE_URL": "a", "BROKER_URL": "b", "SECRET_KEY": "c", "EMAIL_URL": "d", "GITHUB_TOKEN": "e"}


def test_the_measured_processes_see_a_built_environment(tmp_path: Path) -> None:
    seen = launching.harness_environment(
        Path("/env/bin/python"), tmp_path, {**SECRETS, "CUDA_VISIBLE_DEVICES": "1"}
    )
    assert set(seen) == {"PATH", "HOME", "TMPDIR", "LANG", "PYTHONPATH", "CUDA_VISIBLE_DEVICES"}
    assert seen["PATH"].startswith("/env/bin:")
    assert Path(seen["TMPDIR"]).is_dir()


def test_the_harness_is_imported_from_a_folder_with_nothing_else_of_ours(tmp_path: Path) -> None:
    packages = [path.parent.name for path in launching.harness_folder(tmp_path).glob("*/__init__.py")]
    assert packages == ["paceline"]


def test_parameters_are_passed_as_json(tmp_path: Path) -> None:
    params = {"variant": "1", "size": 2, "fast": True}
    what = Measurement("snake", params, 3, True, 60, tmp_path, Path("/env/bin/python"))
    words = what.command(tmp_path)
    assert words[:6] == ["/env/bin/python", "-P", "-m", "paceline", "run", "snake"]
    assert words[6:9] == ['--set=variant="1"', "--set=size=2", "--set=fast=true"]
    # What is measured is what the site names, also where a case of the manifest has these and others.
    assert {"--exact", "--quick"} <= set(words)


@pytest.mark.parametrize("without", ["", launching.NO_COUNTING, launching.TIMED_ONLY])
def test_what_nobody_wants_is_left_out(tmp_path: Path, without: str) -> None:
    what = Measurement("snake", {}, 1, False, 60, tmp_path, Path("/env/bin/python"), without=without)
    left_out = {launching.NO_COUNTING, launching.TIMED_ONLY} & set(what.command(tmp_path))
    assert left_out == ({without} if without else set())


def test_a_crash_of_the_benchmark_is_told_in_the_harnesss_words() -> None:
    lines = ["--- the last lines of its output", "ValueError: x", "---", "paceline: train.py crashed"]
    assert launching.crash_reason(1, lines) == "train.py crashed: ValueError: x"


def test_a_refusal_of_the_harness_is_told_as_it_stands() -> None:
    assert launching.crash_reason(1, ["paceline: a.toml: no such key"]) == "a.toml: no such key."


def test_a_crash_of_the_harness_is_told_with_its_last_line() -> None:
    assert launching.crash_reason(1, ["MemoryError"]) == "The benchmark ended with exit status 1: MemoryError"
    assert launching.crash_reason(137, []) == "The benchmark was ended by signal 9 (SIGKILL)."


@pytest.mark.parametrize(
    ("status", "words"),
    [(1, "ended with exit status 1"), (139, "was ended by signal 11 (SIGSEGV)"), (255, "ended with exit st")],
)
def test_the_way_of_ending_is_a_few_words(status: int, words: str) -> None:
    assert launching.describe_exit_status(status).startswith(words)


def test_a_missing_document_is_a_failure_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(NoDocumentError):
        launching.read_document(tmp_path)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "huge"])
def test_a_document_that_is_no_plain_file_of_sensible_size_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "document.json"
    if kind == "link":
        path.symlink_to("/etc/hostname")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(launching.LARGEST_DOCUMENT + 1)
    with pytest.raises(BadDocumentError, match="The document can't be read"):
        launching.read_document(tmp_path)


def test_progress_is_read(tmp_path: Path) -> None:
    (tmp_path / "progress.json").write_text('{"fraction": 0.4, "text": "repetition 2 of 5"}')
    assert launching.read_progress(tmp_path) == Progress(0.4, "repetition 2 of 5")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", '{"fraction": NaN, "text": ""}', '{"fraction": null, "text": ""}', "[" * 999],
)
def test_progress_that_makes_no_sense_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "progress.json").write_text(text)
    assert launching.read_progress(tmp_path) is None


def test_progress_is_kept_within_bounds(tmp_path: Path) -> None:
    (tmp_path / "progress.json").write_text('{"fraction": 7, "text": "' + "x" * 999 + '"}')
    read = launching.read_progress(tmp_path)
    assert read is not None
    assert (read.fraction, len(read.text)) == (1.0, 200)


def test_what_dead_runs_left_is_removed(tmp_path: Path) -> None:
    with launching.scratch_folder(tmp_path, "gpu-1") as scratch:
        left = scratch.parent / "left"
        left.mkdir()
        with launching.scratch_folder(tmp_path, "gpu-1") as second:
            assert stat.S_IMODE(second.stat().st_mode) == 0o700
            assert list(second.parent.iterdir()) == [second]
    assert not scratch.parent.exists()


def test_a_scratch_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    with launching.scratch_folder(tmp_path, "gpu-1") as scratch:
        top = scratch.parent
    top.symlink_to(tmp_path)
    with pytest.raises(PermissionError), launching.scratch_folder(tmp_path, "gpu-1"):
        pass
    top.unlink()


def test_how_the_harness_ended_tells_the_kind_of_a_failure() -> None:
    ends = {"--- it ended without an error": "no document", "--- its time limit was over": "timeout"}
    for end, kind in {**ends, "---": "crash", "": "crash"}.items():
        assert launching.failure_kind(["done", end, "paceline: it failed"]).kind == kind
