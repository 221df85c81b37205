"""Text files that a site keeps beside a project's manifest: their bounds, and the version that they have."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath

MOST_FILES = 50
LARGEST_FILE = 256 * 1024
LARGEST_SUM = 1024 * 1024
LONGEST_PATH = 200
# Of the hash that is shown.
VERSION_DIGITS = 12
MANIFEST = "paceline.toml"


def path_problem(path: str) -> str:
    """What is wrong with the path of a kept file; empty where nothing is."""
    parts = PurePosixPath(path).parts
    if not path or not path.isprintable() or len(path) > LONGEST_PATH:
        return f"must be a printable path of at most {LONGEST_PATH} characters"
    if (
        not parts
        or path.startswith("/")
        or "\\" in path
        or ".." in parts
        or ".git" in parts
        or str(PurePosixPath(path)) != path
    ):
        return "must be a path inside the repository, such as data/prepare.py"
    if parts[0] == MANIFEST:
        return "is the manifest, which is kept by itself"
    return ""


def files_problem(files: Mapping[str, str]) -> str:
    """What is wrong with kept files, in one sentence that names the file; empty where nothing is."""
    for path, text in files.items():
        if problem := path_problem(path):
            return f"{path[:LONGEST_PATH]!r} {problem}."
        if "\0" in text:
            return f"{path} is no text."
        if len(text.encode()) > LARGEST_FILE:
            return f"{path} is larger than {LARGEST_FILE // 1024} KiB."
    for path in files:
        if folder := next((str(above) for above in PurePosixPath(path).parents if str(above) in files), ""):
            return f"{path} lies below {folder}, which is a file."
    if len(files) > MOST_FILES:
        return f"There are {len(files)} files, {MOST_FILES} at most can be kept."
    if sum(len(text.encode()) for text in files.values()) > LARGEST_SUM:
        return f"The files are larger than {LARGEST_SUM // 1024} KiB together."
    return ""


def files_version(files: Mapping[str, str]) -> str:
    """A short hash of the files' paths and contents; empty where there are none."""
    if not files:
        return ""
    digest = hashlib.sha256()
    for path in sorted(files):
        for part in (path.encode(), files[path].encode()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:VERSION_DIGITS]
