"""Files that the site keeps beside a manifest: bounded, versioned, all of a change or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from dashboard.access import AuditAction, command_account
from dashboard.host_protocol import files_version
from dashboard.models import AuditEntry, Project
from dashboard.projects.kept_files import KeptFileError, keep_files, read_folder, read_kept_files
from tests.dashboard.conftest import MANIFEST, Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="theirs", repository="/srv/theirs", manifest=MANIFEST)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A manifest with what it needs beside it, as people write it."""
    for name, text in {
        "paceline.toml": MANIFEST,
        "bench/train.py": "print()\r\n",
        "requirements.txt": "torch\n",
        ".hidden": "x",
        "bench/__pycache__/train.pyc": "x",
    }.items():
        path = tmp_path / "kept" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return tmp_path / "kept"


def test_a_folder_is_kept_with_its_manifest(folder: Path, repository: Repository) -> None:
    where = {"repository": str(repository.folder), "manifest": folder / "paceline.toml", "files": folder}
    call_command("add_project", "theirs", **where)
    project = Project.objects.get()
    files = {"bench/train.py": "print()\n", "requirements.txt": "torch\n"}
    assert read_kept_files(project) == project.files_beside_manifest() == files
    # Adding it again keeps what the folder has now.
    (folder / "requirements.txt").unlink()
    call_command("add_project", "theirs", **where)
    assert list(read_kept_files(project)) == ["bench/train.py"]
    with pytest.raises(CommandError, match="--files needs --manifest"):
        call_command("add_project", "other", repository=str(repository.folder), files=folder)


def test_they_count_with_a_manifest_that_is_kept(project: Project) -> None:
    keep_files(None, project, {"train.py": "print()"})
    assert project.files_beside_manifest() == {"train.py": "print()"}
    project.manifest = ""
    assert project.files_beside_manifest() == {}


def test_a_change_has_a_version_and_is_told(project: Project) -> None:
    first = keep_files(command_account(), project, {"a.py": "1", "b.py": "2"})
    assert first == files_version({"b.py": "2", "a.py": "1"})
    second = keep_files(command_account(), project, {"a.py": "changed", "b.py": None})
    assert second not in ("", first)
    assert read_kept_files(project) == {"a.py": "changed"}
    entries = AuditEntry.objects.filter(action=AuditAction.SETTINGS_CHANGED)
    assert [entry.details["values"]["kept_files"] for entry in entries.order_by("pk")] == [first, second]


REFUSED = {
    "'../x' must be a path inside the repository": {"../x": ""},
    "'/x' must be a path inside": {"/x": ""},
    "'.git/config' must be a path inside": {".git/config": ""},
    "'paceline.toml' is the manifest": {"paceline.toml": ""},
    "'' must be a printable path": {"": ""},
    "x.py is no text": {"x.py": "\0"},
    "x.py is larger than 256 KiB": {"x.py": "x" * (256 * 1024 + 1)},
    "x/y lies below x, which is a file": {"x": "", "x/y": ""},
    "There are 51 files, 50 at most": {f"{number}.py": "" for number in range(50)},
    "larger than 1024 KiB together": {f"{number}.py": "x" * 256 * 1024 for number in range(5)},
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_cannot_be_kept_is_told_and_nothing_is(project: Project, sentence: str) -> None:
    with pytest.raises(KeptFileError, match=sentence):
        keep_files(None, project, {"good.py": "", **REFUSED[sentence]})
    assert read_kept_files(project) == {}


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeptFileError, match="has no file to keep"):
        read_folder(tmp_path)
    (tmp_path / "weights.bin").write_bytes(b"\xff\xfe")
    with pytest.raises(KeptFileError, match=r"weights\.bin is no text in UTF-8"):
        read_folder(tmp_path)
