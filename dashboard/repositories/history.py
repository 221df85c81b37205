"""Questions to a mirror: which commits, what is known of each, what a file said there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paceline.manifest import FILE_NAME

from dashboard.repositories import git
from dashboard.repositories.errors import RepositoryError
from dashboard.repositories.mirror import Mirror

MOST_COMMITS = 1000
MOST_MANIFEST_BYTES = 1024 * 1024
DETACHED = "(detached)"
FIELDS = ("%H", "%P", "%an", "%cI", "%s")
_REVISION = re.compile(r"[^\s\x00-\x1f\x7f:^~?*\[\\-][^\s\x00-\x1f\x7f:?*\[\\]{0,199}")


@dataclass(frozen=True)
class Facts:
    """What a mirror knows of one commit. `position`: first-parent commits before it on `branch`."""

    hash: str
    parents: list[str]
    author: str
    committed_at: datetime
    subject: str
    branch: str
    position: int


def check_revision(revision: str) -> str:
    """Refuse what can't name a commit before git sees it: it could be an option."""
    if not _REVISION.fullmatch(revision):
        raise RepositoryError(f"{revision!r} isn't a revision: give a branch, a tag or a commit's hash.")
    return revision


def parse_range(text: str) -> tuple[str, str]:
    """`A..B` as its two revisions; `A..` goes up to HEAD, the newest commit of the project's branch."""
    first, dots, last = text.partition("..")
    if not dots or not first or last.startswith(".") or ".." in last:
        raise RepositoryError(f"{text!r} isn't a range: write A..B, the commits after A up to B.")
    return check_revision(first), check_revision(last or "HEAD")


def resolve(mirror: Mirror, revision: str) -> str:
    """The full hash of the commit that a revision names."""
    check_revision(revision)
    try:
        return git.lines(
            mirror.folder,
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            revision + "^{commit}",
        )[0]
    except (RepositoryError, IndexError):
        branches = ", ".join(mirror.branches()[:8]) or "none"
        raise RepositoryError(
            f"The repository of {mirror.slug} has no commit {revision!r}; its branches are: {branches}."
        ) from None


def select(mirror: Mirror, revisions: Mapping[str, Any]) -> list[str]:
    """Hashes, oldest first, of {"commit": REV}, {"range": "A..B"}, {"last": N}, or {}: the newest commit."""
    if "range" in revisions:
        return between(mirror, *parse_range(revisions["range"]))
    if "last" in revisions:
        return last(mirror, int(revisions["last"]))
    return [resolve(mirror, revisions.get("commit", "HEAD"))]


def between(mirror: Mirror, first: str, final: str, most: int = MOST_COMMITS) -> list[str]:
    """The first-parent commits after `first` up to `final`."""
    ends = resolve(mirror, first), resolve(mirror, final)
    found = git.lines(
        mirror.folder,
        "rev-list",
        "--first-parent",
        f"--max-count={most + 1}",
        f"{ends[0]}..{ends[1]}",
    )
    if not found:
        raise RepositoryError(f"The range {first}..{final} holds no commit: is {first} the older one?")
    if len(found) > most:
        raise RepositoryError(f"The range {first}..{final} holds more than {most} commits.")
    return found[::-1]


def leaving(mirror: Mirror, tip: str) -> tuple[list[str], int]:
    """The first-parent commits up to `tip` that aren't on the line of the project's branch, oldest first.

    And the position of the commit at which they left it; -1 where they never were on it.
    """
    line = git.lines(mirror.folder, "rev-list", "--first-parent", f"refs/heads/{mirror.branch}")
    position = {sha: len(line) - 1 - index for index, sha in enumerate(line)}
    own: list[str] = []
    for sha in git.lines(mirror.folder, "rev-list", "--first-parent", resolve(mirror, tip)):
        if sha in position:
            return own[::-1], position[sha]
        own.append(sha)
    return own[::-1], -1


def commits_of(mirror: Mirror, first: str, final: str) -> set[str]:
    """All commits that `final` has and `first` hasn't, merged ones too."""
    return set(git.lines(mirror.folder, "rev-list", f"{resolve(mirror, first)}..{resolve(mirror, final)}"))


def brought(mirror: Mirror, first: str, second: str) -> dict[str, list[str]]:
    """The commits that merging `second` into `first` brings, oldest first, each with its parents.

    Raises RepositoryError where they are more than MOST_COMMITS.
    """
    ends = resolve(mirror, first), resolve(mirror, second)
    found = git.lines(
        mirror.folder,
        *("rev-list", "--topo-order", "--parents", f"--max-count={MOST_COMMITS + 1}"),
        f"{ends[0]}..{ends[1]}",
    )
    if len(found) > MOST_COMMITS:
        raise RepositoryError(f"The merge of {second[:10]} brings more than {MOST_COMMITS} commits.")
    rows = [line.split() for line in reversed(found)]
    return {sha: parents for sha, *parents in rows}


def merge_base(mirror: Mirror, one: str, other: str) -> str | None:
    """The newest commit that both histories hold; None where they are unrelated."""
    ends = resolve(mirror, one), resolve(mirror, other)
    try:
        return git.lines(mirror.folder, "merge-base", *ends)[0]
    except RepositoryError:
        return None  # git says so with its exit status alone.


def is_same_tree(mirror: Mirror, one: str, other: str) -> bool:
    """Do two commits hold the same files?"""
    trees = {
        git.lines(mirror.folder, "rev-parse", f"{resolve(mirror, sha)}^{{tree}}")[0] for sha in (one, other)
    }
    return len(trees) == 1


def last(mirror: Mirror, count: int) -> list[str]:
    if not 1 <= count <= MOST_COMMITS:
        raise RepositoryError(f"The last {count} commits can't be measured: 1 to {MOST_COMMITS} can.")
    tip = resolve(mirror, "HEAD")
    return git.lines(mirror.folder, "rev-list", "--first-parent", f"--max-count={count}", tip)[::-1]


def facts(mirror: Mirror, hashes: list[str]) -> list[Facts]:
    """What is known of each commit, in the order given."""
    out = git.run(
        mirror.folder,
        [
            *("-c", "log.showSignature=false", "log", "--no-walk=unsorted", "--encoding=UTF-8", "-z"),
            *(f"--format={'%x00'.join(FIELDS)}", "--stdin"),
        ],
        stdin="".join(f"{sha}\n" for sha in hashes).encode(),
    )
    # Every field ends with a NUL, the one character that a commit can't hold.
    values = out.decode("utf-8", "replace").split("\x00")[:-1]
    places = _places(mirror, hashes)
    rows = [values[start : start + len(FIELDS)] for start in range(0, len(values), len(FIELDS))]
    return [_facts(row, places) for row in rows]


def manifests(mirror: Mirror, hashes: Iterable[str]) -> dict[str, str]:
    """The text of paceline.toml at each commit that has one of a bearable size."""
    asked = list(hashes)
    out = git.run(
        mirror.folder,
        ["cat-file", "--batch"],
        stdin="".join(f"{sha}:{FILE_NAME}\n" for sha in asked).encode(),
    )
    found = {}
    for sha in asked:
        header, _, rest = out.partition(b"\n")
        kind, _, size = header.rpartition(b" ")
        if not kind.endswith(b" blob"):
            # `missing`, or a tree or link of that name, whose contents follow like a file's.
            out = rest[int(size) + 1 :] if size.isdigit() else rest
            continue
        text, out = rest[: int(size)], rest[int(size) + 1 :]
        if len(text) <= MOST_MANIFEST_BYTES:
            found[sha] = text.decode("utf-8", "replace")
    return found


def _places(mirror: Mirror, hashes: list[str]) -> dict[str, tuple[str, int]]:
    """(branch, position) of each commit: on the project's branch where it is there."""
    try:
        line = git.lines(mirror.folder, "rev-list", "--first-parent", f"refs/heads/{mirror.branch}")
    except RepositoryError:
        line = []
    on_branch = {sha: (mirror.branch, len(line) - 1 - index) for index, sha in enumerate(line)}
    return {sha: on_branch.get(sha) or _place_elsewhere(mirror, sha) for sha in hashes}


def _place_elsewhere(mirror: Mirror, sha: str) -> tuple[str, int]:
    holders = git.lines(
        mirror.folder, "for-each-ref", "--contains", sha, "--format=%(refname:lstrip=2)", "refs/heads"
    )
    others = [name for name in holders if name != mirror.branch] or [DETACHED]
    count = git.lines(mirror.folder, "rev-list", "--first-parent", "--count", sha)[0]
    return others[0], int(count) - 1


def _facts(row: list[str], places: dict[str, tuple[str, int]]) -> Facts:
    sha, parents, author, committed, subject = row
    branch, position = places[sha]
    return Facts(
        sha, parents.split(), author, datetime.fromisoformat(committed), subject[:500], branch, position
    )
