"""The files that a site keeps beside a project's manifest: the script of a benchmark, its requirements.

They count with a manifest that is kept here, and lie in the checkout of each commit that is measured. Their
version, a hash of all of them, is stated in every document.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from django.db import transaction
from paceline.manifest import FILE_NAME

from dashboard.access import Actor, AuditAction, record_action
from dashboard.host_protocol import files_problem, files_version
from dashboard.host_protocol.kept_files import LARGEST_FILE, MOST_FILES
from dashboard.models import KeptFile, Project

# What lies beside files on a disk and is none of them.
LEFT_OUT = ("__pycache__", "node_modules")


class KeptFileError(Exception):
    """Files can't be kept; the message is one sentence for people."""


class FileOvertakenError(KeptFileError):
    """Somebody else has changed the file that was to be changed."""


def read_kept_files(project: Project) -> dict[str, str]:
    """By their paths the texts of all that is kept for the project."""
    return dict(project.kept_files.values_list("path", "text"))


def keep_files(
    actor: Actor | None,
    project: Project,
    changed: Mapping[str, str | None],
    check: Callable[[Mapping[str, str]], None] | None = None,
) -> str:
    """Keep these texts under their paths, remove those that are None, leave the others; the new version.

    All of it or nothing: KeptFileError says in one sentence what can't be kept. `check` may raise it too, of
    the texts that are kept until then.
    """
    with transaction.atomic():
        # One change at a time: the bounds are of all files together.
        row = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        before = read_kept_files(row)
        if check is not None:
            check(before)
        after = {path: text for path, text in {**before, **changed}.items() if text is not None}
        if problem := files_problem(after):
            raise KeptFileError(problem)
        if after != before:
            row.kept_files.filter(path__in=[path for path, text in changed.items() if text is None]).delete()
            for path, text in changed.items():
                if text is not None and before.get(path) != text:
                    KeptFile.objects.update_or_create(project=row, path=path, defaults={"text": text})
            if actor is not None:
                about = {"fields": ["kept_files"], "values": {"kept_files": files_version(after) or "none"}}
                record_action(actor, AuditAction.SETTINGS_CHANGED, row, row, **about)
    return files_version(after)


def decode_file(path: str, data: bytes) -> str:
    """The text of a file's bytes. Raises KeptFileError."""
    if len(data) > LARGEST_FILE:
        raise KeptFileError(f"{path} is larger than {LARGEST_FILE // 1024} KiB.")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise KeptFileError(f"{path} is no text in UTF-8.") from None


def read_folder(folder: Path) -> dict[str, str]:
    """The text files of a folder by their paths from it, without the manifest and hidden ones."""
    if not folder.is_dir():
        raise KeptFileError(f"{folder} is no folder.")
    files: dict[str, str] = {}
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT and not name.startswith("."))
        for name in sorted(names):
            path = Path(top, name)
            relative = path.relative_to(folder).as_posix()
            if name.startswith(".") or relative == FILE_NAME or not path.is_file():
                continue
            if len(files) >= MOST_FILES:
                raise KeptFileError(f"{folder} has more than {MOST_FILES} files.")
            with path.open("rb") as file:
                files[relative] = decode_file(relative, file.read(LARGEST_FILE + 1))
    if not files:
        raise KeptFileError(f"{folder} has no file to keep.")
    if problem := files_problem(files):
        raise KeptFileError(problem)
    return files
