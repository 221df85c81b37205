"""The history in a mirror: which commits there are, what is known of each, what stood in a file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboard.repositories.commits import MOST_MESSAGE_BYTES, CommitContents, parse_commit
from dashboard.repositories.errors import GitError, RepositoryError
from dashboard.repositories.mirror import Mirror
from dashboard.repositories.objects import GitObject, read_objects

MOST_COMMITS = 1000
# Of a commit: its parents and what it is signed with come before its message.
MOST_COMMIT_BYTES = 1024 * 1024
DETACHED = "(detached)"
LONGEST_BRANCH = 500  # characters of a name that is kept as it is
_REVISION = re.compile(r"[^\s\x00-\x1f\x7f:^~?*\[\\-][^\s\x00-\x1f\x7f:?*\[\\]{0,1023}")


@dataclass(frozen=True)
class CommitFacts:
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


def resolve_revision(mirror: Mirror, revision: str) -> str:
    """The full hash of the commit that a revision names."""
    check_revision(revision)
    try:
        return mirror.lines("rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")[0]
    except (GitError, IndexError):
        branches = ", ".join(mirror.branches()[:8]) or "none"
        raise RepositoryError(
            f"The repository of {mirror.project} has no commit {revision!r}; its branches are: {branches}."
        ) from None


def select_commits(mirror: Mirror, revisions: Mapping[str, Any], most: int = MOST_COMMITS) -> list[str]:
    """Hashes, oldest first, of {"commit": REV}, {"range": "A..B"}, {"last": N}, or {}: the newest commit.

    `most` bounds a range.
    """
    if "range" in revisions:
        return commits_between(mirror, *parse_range(revisions["range"]), most)
    if "last" in revisions:
        return newest_commits(mirror, int(revisions["last"]))
    return [resolve_revision(mirror, revisions.get("commit", "HEAD"))]


def commits_between(mirror: Mirror, first: str, final: str, most: int = MOST_COMMITS) -> list[str]:
    """The first-parent commits after `first` up to `final`, oldest first."""
    ends = resolve_revision(mirror, first), resolve_revision(mirror, final)
    hashes = mirror.lines("rev-list", "--first-parent", f"--max-count={most + 1}", f"{ends[0]}..{ends[1]}")
    if not hashes:
        raise RepositoryError(f"The range {first}..{final} holds no commit: is {first} the older one?")
    if len(hashes) > most:
        raise RepositoryError(f"The range {first}..{final} holds more than {most} commits.")
    return hashes[::-1]


def newest_commits(mirror: Mirror, count: int) -> list[str]:
    """The last first-parent commits of the project's branch, oldest first."""
    if not 1 <= count <= MOST_COMMITS:
        raise RepositoryError(f"The last {count} commits can't be measured: 1 to {MOST_COMMITS} can.")
    tip = resolve_revision(mirror, "HEAD")
    return mirror.lines("rev-list", "--first-parent", f"--max-count={count}", tip)[::-1]


def commits_since_fork(mirror: Mirror, tip: str) -> tuple[list[str], int]:
    """The first-parent commits up to `tip` that aren't on the line of the project's branch, oldest first.

    And the position of the commit at which they left it; -1 where they never were on it.
    """
    position = _branch_positions(mirror)
    own: list[str] = []
    for sha in mirror.lines("rev-list", "--first-parent", resolve_revision(mirror, tip)):
        if sha in position:
            return own[::-1], position[sha]
        own.append(sha)
    return own[::-1], -1


def reachable_between(mirror: Mirror, first: str, final: str) -> set[str]:
    """All commits that `final` has and `first` hasn't, merged ones too."""
    return set(
        mirror.lines("rev-list", f"{resolve_revision(mirror, first)}..{resolve_revision(mirror, final)}")
    )


def merged_commits(mirror: Mirror, first: str, second: str) -> dict[str, list[str]]:
    """The commits that merging `second` into `first` brings, oldest first, each with its parents.

    Raises RepositoryError where they are more than MOST_COMMITS.
    """
    ends = resolve_revision(mirror, first), resolve_revision(mirror, second)
    lines = mirror.lines(
        *("rev-list", "--topo-order", "--parents", f"--max-count={MOST_COMMITS + 1}"), f"{ends[0]}..{ends[1]}"
    )
    if len(lines) > MOST_COMMITS:
        raise RepositoryError(f"The merge of {second[:10]} brings more than {MOST_COMMITS} commits.")
    rows = [line.split() for line in reversed(lines)]
    return {sha: parents for sha, *parents in rows}


def merge_base(mirror: Mirror, commit: str, other: str) -> str | None:
    """The newest commit that both histories hold; None where they are unrelated."""
    ends = resolve_revision(mirror, commit), resolve_revision(mirror, other)
    try:
        return mirror.lines("merge-base", *ends)[0]
    except GitError as error:
        if error.status == 1:  # git says so with its exit status alone.
            return None
        raise


def is_same_tree(mirror: Mirror, commit: str, other: str) -> bool:
    """Whether two commits hold the same files."""
    ends = [resolve_revision(mirror, sha) for sha in (commit, other)]
    return len(set(mirror.lines("rev-parse", *(f"{sha}^{{tree}}" for sha in ends)))) == 1


def read_tags(mirror: Mirror) -> dict[str, list[str]]:
    """By commit the names of its tags, sorted; those of other objects name no commit."""
    form = "%(objecttype)%(*objecttype) %(objectname) %(*objectname) %(refname:lstrip=2)"
    named: dict[str, list[str]] = {}
    for line in mirror.lines("for-each-ref", f"--format={form}", "refs/tags"):
        kind, own, peeled, name = line.split(" ", 3)
        if kind in ("commit", "tagcommit"):
            named.setdefault(peeled or own, []).append(name)
    return {sha: sorted(names) for sha, names in named.items()}


def find_commits(mirror: Mirror, names: Iterable[str]) -> dict[str, str]:
    """Name -> full hash of those that the mirror has; a name may be a hash, or the beginning of one."""
    hashes: dict[str, str] = {}
    asked = [name for name in names if _REVISION.fullmatch(name)]

    def collect(answer: GitObject) -> None:
        if answer.kind == "commit":
            hashes[answer.name.removesuffix("^{commit}")] = answer.hash

    read_objects(mirror, [f"{name}^{{commit}}" for name in asked], collect, most_bytes=0)
    return hashes


def read_commits(mirror: Mirror, hashes: Sequence[str]) -> list[CommitFacts]:
    """What is known of each commit, in the order given. One that is odd costs the others nothing."""
    contents: dict[str, CommitContents] = {}

    def collect(answer: GitObject) -> None:
        if answer.kind != "commit":
            raise RepositoryError(f"The repository of {mirror.project} has no commit {answer.name[:10]}.")
        contents[answer.name] = parse_commit(answer.data)

    read_objects(mirror, hashes, collect, most_bytes=MOST_COMMIT_BYTES)
    locations = locate_commits(mirror, contents)
    return [_describe_commit(sha, contents[sha], *locations[sha]) for sha in hashes]


def read_message(mirror: Mirror, commit: str) -> str:
    """The message of a commit, as much of it as anybody reads."""
    found: list[str] = []

    def collect(answer: GitObject) -> None:
        found.append(answer.data.partition(b"\n\n")[2][:MOST_MESSAGE_BYTES].decode("utf-8", "replace"))

    read_objects(mirror, [commit], collect, most_bytes=MOST_COMMIT_BYTES)
    return "".join(found)


def _describe_commit(sha: str, contents: CommitContents, branch: str, position: int) -> CommitFacts:
    return CommitFacts(
        hash=sha,
        parents=contents.parents,
        author=contents.author,
        committed_at=contents.committed_at,
        subject=contents.subject,
        branch=branch,
        position=position,
    )


def _branch_positions(mirror: Mirror) -> dict[str, int]:
    """The position of each commit on the line of the project's branch."""
    line = mirror.lines("rev-list", "--first-parent", f"refs/heads/{mirror.branch}", "--")
    return {sha: len(line) - 1 - index for index, sha in enumerate(line)}


def commits_on_branch(mirror: Mirror, branch: str, hashes: Collection[str]) -> set[str] | None:
    """Those of these commits that a branch holds; None where there is no such branch.

    The project's branch is the line of its first parents, another one all that it can reach.
    """
    if branch not in mirror.branches():
        return None
    if branch == mirror.branch:
        return set(hashes) & _branch_positions(mirror).keys()
    stored = set(find_commits(mirror, hashes).values())
    ends = "".join(f"{sha}\n" for sha in [*sorted(stored), f"^refs/heads/{branch}"]).encode()
    return stored.difference(mirror.lines("rev-list", "--stdin", stdin=ends)) if stored else set()


def locate_commits(mirror: Mirror, hashes: Collection[str]) -> dict[str, tuple[str, int]]:
    """(branch, position) of each commit: on the project's branch where it is there."""
    try:
        on_branch = _branch_positions(mirror)
    except GitError:  # There is no such branch any more.
        on_branch = {}
    others = {sha for sha in hashes if sha not in on_branch}
    branches = _other_branches(mirror, others) if others else {}
    depths = _first_parent_depths(mirror, others) if others else {}
    return {
        sha: (mirror.branch, on_branch[sha])
        if sha in on_branch
        else (branches.get(sha, DETACHED), depths[sha])
        for sha in hashes
    }


def _other_branches(mirror: Mirror, hashes: set[str]) -> dict[str, str]:
    """Of each commit the first branch by name, beside the project's, that holds it."""
    form = "--format=%(objecttype) %(objectname) %(refname:lstrip=2)"
    refs = mirror.lines("for-each-ref", form, "refs/heads")
    rows = [line.split(" ", 2) for line in refs]
    heads: dict[str, str] = {}
    for kind, sha, name in rows:
        if kind == "commit" and name != mirror.branch:
            heads[sha] = min(name, heads.get(sha, name))
    # What lies before a single commit tells nothing of it; of several, one may lie before the other.
    before = [f"^{sha}^@" for sha in hashes] if len(hashes) == 1 else []
    names: dict[str, str] = dict(heads)
    for line in _walk_graph(mirror, [*heads, *before], "--topo-order"):
        # Children come before their parents, and hand on which branch holds them.
        sha, *parents = line.split()
        for parent in parents:
            names[parent] = min(names[sha], names.get(parent, names[sha]))
    return {sha: names[sha] for sha in hashes if sha in names}


def _first_parent_depths(mirror: Mirror, hashes: set[str]) -> dict[str, int]:
    """How many first-parent commits come before each commit."""
    first_parent = {}
    for line in _walk_graph(mirror, hashes, "--first-parent"):
        sha, *parents = line.split()
        first_parent[sha] = parents[0] if parents else ""
    depths = {"": -1}
    for commit in hashes:
        chain: list[str] = []
        sha = commit
        while sha not in depths:
            chain.append(sha)
            sha = first_parent[sha]
        depths.update(zip(reversed(chain), itertools.count(depths[sha] + 1), strict=False))
    return depths


def _walk_graph(mirror: Mirror, ends: Iterable[str], order: str) -> list[str]:
    """`HASH PARENT...` of each commit up to the ends."""
    question = "".join(f"{end}\n" for end in ends).encode()
    return mirror.lines("rev-list", order, "--parents", "--stdin", stdin=question) if question else []
