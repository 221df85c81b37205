"""Commits as `git commit` never writes them, and many of them at once."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.dashboard.conftest import Repository

NORMAL = b"Ada <ada@example.org> 1700000000 +0000"


def commit_object(
    tree: str,
    parent: str,
    *,
    author: bytes | None = NORMAL,
    committer: bytes | None = NORMAL,
    more: bytes = b"",
    message: bytes = b"A subject\n",
) -> bytes:
    """What git stores of a commit of these lines; None leaves a line out."""
    lines = [b"tree " + tree.encode(), b"parent " + parent.encode()]
    lines += [] if author is None else [b"author " + author]
    lines += [] if committer is None else [b"committer " + committer]
    lines += [more] if more else []
    return b"\n".join(lines) + b"\n\n" + message


def write_commits(repository: Repository, *parts: dict[str, Any]) -> list[str]:
    """Put commits on top of main, whatever git thinks of them; `parts`: of each, as for `commit_object`."""
    tree, parent = repository.git("rev-parse", "HEAD^{tree}", "HEAD").split()
    hashes, files = [], []
    with TemporaryDirectory() as folder:
        for number, part in enumerate(parts):
            stored = commit_object(tree, parent, **part)
            parent = hashlib.sha1(b"commit %d\0" % len(stored) + stored).hexdigest()  # noqa: S324  # as git does
            files.append(Path(folder) / str(number))
            files[-1].write_bytes(stored)
            hashes.append(parent)
        command = ("hash-object", "-t", "commit", "--literally", "-w", "--stdin-paths")
        written = repository.git(*command, stdin="\n".join(map(str, files)) + "\n")
    assert written.split() == hashes
    repository.git("update-ref", "refs/heads/main", parent)
    return hashes


def write_commit(repository: Repository, **parts: Any) -> str:
    """One such commit."""
    (sha,) = write_commits(repository, parts)
    return sha


def import_history(repository: Repository, count: int, *, odd: int) -> None:
    """Put so many commits on top of main; each `odd`-th has a date and a message of its own kind."""
    parts = [b"reset refs/heads/main\nfrom refs/heads/main^0\n\n"]
    for number in range(count):
        date = b"99999999999 +0000" if number % odd == 0 else b"1700000000 +0000"
        message = b"\xff\xfe" if number % odd == 0 else b"number %d" % number
        parts.append(
            b"commit refs/heads/main\ncommitter Ada <a@b> %s\ndata %d\n%s\n" % (date, len(message), message)
        )
    subprocess.run(
        ["git", "fast-import", "--quiet", "--date-format=raw-permissive"],
        cwd=repository.folder,
        input=b"".join(parts),
        check=True,
    )
