"""Where a branch's head came to another branch: merged, fast-forwarded, squashed or rebased."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dashboard.repositories.errors import RepositoryError
from dashboard.repositories.mirror import Mirror

# A rebased branch is looked for so many commits before and behind the one that is asked about.
MOST_REBASED = 50
# Of longer ones each place would be another difference to compute.
MOST_COMPARED = 10
TIME_LIMIT = 10.0


class MergedBy(StrEnum):
    """What shows that a commit holds a head."""

    MERGE_COMMIT = "merge commit"
    FAST_FORWARD = "fast-forward"
    # The forge has named the commit; whether it is a squash or the last of a rebase shows the patch.
    FORGE = "forge"
    SAME_FILES = "same files"
    SAME_PATCH = "same patch"


@dataclass(frozen=True, slots=True)
class ProposedBranch:
    """A head with its merge base; `merge_hash` is what its forge reported, or empty."""

    head: str
    base: str
    merge_hash: str = ""


@dataclass(frozen=True, slots=True)
class MergedHead:
    """`commit` is the first that holds all of a head, `before` the one that it was put upon."""

    commit: str
    before: str
    by: MergedBy


@dataclass(frozen=True, slots=True)
class LineCommit:
    """A commit on the line of first parents."""

    hash: str
    tree: str
    parents: Sequence[str]


@dataclass(slots=True)
class BranchAround:
    """The line of a branch's first parents around a commit, oldest first, as far as a rebase may reach."""

    mirror: Mirror
    line: Sequence[LineCommit]
    at: int
    patches: dict[tuple[str, str], str] = field(default_factory=dict)

    def find_merge(self, proposed: ProposedBranch) -> MergedHead | None:
        """How the commit, and perhaps others of the line, hold a head. None where nothing shows it.

        What git's history or the forge says is certain. The very same files, and the very same patch, can't
        come about by accident: who has them has the head's changes and no others.
        """
        found = self._by_history(proposed) or self._by_contents(proposed)
        if found is None or not self._holds(found):
            return None
        return found

    def _by_history(self, proposed: ProposedBranch) -> MergedHead | None:
        for index, commit in self._from_commit_on():
            if proposed.head in commit.parents[1:]:
                return MergedHead(commit.hash, commit.parents[0], MergedBy.MERGE_COMMIT)
            if proposed.head == commit.hash:
                return self._put_upon(index, proposed, MergedBy.FAST_FORWARD)
            if proposed.merge_hash == commit.hash:
                return self._put_upon(index, proposed, MergedBy.FORGE)
        return None

    def _by_contents(self, proposed: ProposedBranch) -> MergedHead | None:
        if not self.mirror.has_commit(proposed.head):
            return None
        if not self.patch_of(proposed.base, proposed.head):
            return None  # A branch that changes nothing: whatever restores its files would be its merge.
        (tree,) = self.mirror.lines("rev-parse", f"{proposed.head}^{{tree}}")
        for index, commit in self._from_commit_on():
            if commit.tree == tree and index and self.line[index - 1].tree != tree:
                return self._put_upon(index, proposed, MergedBy.SAME_FILES)
        return self._by_patch(proposed)

    def _by_patch(self, proposed: ProposedBranch) -> MergedHead | None:
        """A squash, or as many commits in a row as the branch has."""
        wanted = self.patch_of(proposed.base, proposed.head)
        own = self._count_commits(proposed)
        ends = {(self.at, self.at - 1)}
        if own <= MOST_COMPARED:
            ends |= {(self.at + index, self.at + index - own) for index in range(own)}
        for last, before in sorted(ends):
            if before < 0 or last >= len(self.line):
                continue
            commit, base = self.line[last].hash, self.line[before].hash
            if self.patch_of(base, commit) == wanted:
                return MergedHead(commit, base, MergedBy.SAME_PATCH)
        return None

    def _put_upon(self, index: int, proposed: ProposedBranch, by: MergedBy) -> MergedHead:
        """The commit that a head was put upon: its merge base, or as many commits back as it has.

        Where the patch between them isn't the head's, the commit alone is known to be of it.
        """
        parent = (self.line[index].parents or [""])[0]
        hashes = [commit.hash for commit in self.line]
        if by == MergedBy.FAST_FORWARD and proposed.base in hashes[:index]:
            return MergedHead(hashes[index], proposed.base, by)
        if by != MergedBy.FAST_FORWARD and self.mirror.has_commit(proposed.head):
            own = self._count_commits(proposed)
            wanted = self.patch_of(proposed.base, proposed.head)
            for back in sorted({1, own}):
                if index >= back and self.patch_of(hashes[index - back], hashes[index]) == wanted:
                    return MergedHead(hashes[index], hashes[index - back], by)
        return MergedHead(hashes[index], parent, by)

    def _holds(self, found: MergedHead) -> bool:
        """Whether the commit that is asked about is one of those that a merge brought to the line."""
        places = {commit.hash: index for index, commit in enumerate(self.line)}
        return places.get(found.before, -1) < self.at <= places[found.commit]

    def _from_commit_on(self) -> Sequence[tuple[int, LineCommit]]:
        return list(enumerate(self.line))[self.at :]

    def _count_commits(self, proposed: ProposedBranch) -> int:
        (count,) = self.mirror.lines(
            "rev-list", "--count", "--no-merges", f"{proposed.base}..{proposed.head}"
        )
        return int(count)

    def patch_of(self, old: str, new: str) -> str:
        """The SHA-256 of what differs between two commits, wherever in the files it stands.

        White space counts, unlike in `git patch-id`.
        """
        if (old, new) not in self.patches:
            diff = self.mirror.run(
                ["diff", "--binary", "--no-ext-diff", "--no-textconv", "--no-renames", old, new, "--"],
                time_limit=TIME_LIMIT,
            )
            lines = (line for line in diff.split(b"\n") if not line.startswith((b"index ", b"@@ ")))
            self.patches[old, new] = hashlib.sha256(b"\n".join(lines)).hexdigest() if diff else ""
        return self.patches[old, new]


def branch_around(mirror: Mirror, commit: str, branch: str) -> BranchAround:
    """Raises RepositoryError."""
    form = ("--first-parent", "--format=%H %T %P")
    until = [_line_commit(line) for line in mirror.lines("log", *form, f"-{MOST_REBASED + 1}", commit)][::-1]
    later: list[LineCommit] = []
    if branch in mirror.branches():
        newer = mirror.lines("rev-list", "--first-parent", f"{commit}..refs/heads/{branch}")
        ends = newer[::-1][:MOST_REBASED]
        if ends:
            rows = mirror.lines("log", *form, f"{commit}..{ends[-1]}")
            later = [_line_commit(line) for line in rows][::-1]
    return BranchAround(mirror, [*until, *later], len(until) - 1)


def find_merges(
    mirror: Mirror, commit: str, branch: str, proposed: Mapping[int, ProposedBranch]
) -> dict[int, MergedHead]:
    """Of the heads that a commit of a branch holds, by their keys, how it came to hold them.

    Raises RepositoryError where the commit can't be read; a head that can't is left out.
    """
    around = branch_around(mirror, commit, branch)
    found: dict[int, MergedHead] = {}
    for key, head in proposed.items():
        try:
            merged = around.find_merge(head)
        except RepositoryError:
            continue
        if merged:
            found[key] = merged
    return found


def _line_commit(line: str) -> LineCommit:
    sha, tree, *parents = line.split()
    return LineCommit(sha, tree, parents)
