"""Commits as `git commit` never writes them, and many of them at once."""

from __future__ import annotations

import subprocess

from tests.dashboard.conftest import Repository

NORMAL = b"Ada <ada@example.org> 1700000000 +0000"


def write_commit(
    repository: Repository,
    *,
    author: bytes | None = NORMAL,
    committer: bytes | None = NORMAL,
    more: bytes = b"",
    message: bytes = b"A subject\n",
) -> str:
    """Put a commit of these lines on top of main, whatever git thinks of them; None leaves a line out."""
    tree, parent = repository.git("rev-parse", "HEAD^{tree}", "HEAD").split()
    lines = [b"tree " + tree.encode(), b"parent " + parent.encode()]
    lines += [] if author is None else [b"author " + author]
    lines += [] if committer is None else [b"committer " + committer]
    lines += [more] if more else []
    command = ["git", "hash-object", "-t", "commit", "--literally", "-w", "--stdin"]
    text = b"\n".join(lines) + b"\n\n" + message
    done = subprocess.run(command, cwd=repository.folder, input=text, capture_output=True, check=True)
    sha = done.stdout.decode().strip()
    repository.git("update-ref", "refs/heads/main", sha)
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
