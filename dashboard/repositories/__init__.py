"""The repositories of projects, read through bare mirrors: for the site and for hosts, so without Django.

Each failure is a RepositoryError of one sentence.
"""

from dashboard.repositories.credentials import join_credentials, split_credentials
from dashboard.repositories.errors import (
    FetchTimeout,
    GitError,
    RepositoryBusy,
    RepositoryError,
    Stopped,
    Unreachable,
)
from dashboard.repositories.failures import FailureKind, classify_failure
from dashboard.repositories.file_changes import changed_files, changed_paths, file_texts
from dashboard.repositories.git import (
    OPTIONS,
    WITHOUT_REDIRECTS,
    Git,
    environment_without_account,
    git_without_account,
    hide_password,
)
from dashboard.repositories.hashes import ABBREVIATED_HASH, FULL_HASH
from dashboard.repositories.history import (
    DETACHED,
    LONGEST_BRANCH,
    MOST_COMMITS,
    CommitFacts,
    check_revision,
    commits_between,
    commits_on_branch,
    commits_since_fork,
    find_commits,
    is_same_tree,
    locate_commits,
    merge_base,
    merged_commits,
    newest_commits,
    parse_range,
    reachable_between,
    read_commits,
    read_message,
    read_tags,
    resolve_revision,
    select_commits,
)
from dashboard.repositories.locks import hold_lock, try_lock
from dashboard.repositories.manifest_files import read_manifests
from dashboard.repositories.merged_heads import MergedBy, MergedHead, ProposedBranch, find_merges
from dashboard.repositories.mirror import Mirror, RemoteHeads, locate_mirror, safe_name

__all__ = [
    "ABBREVIATED_HASH",
    "DETACHED",
    "FULL_HASH",
    "LONGEST_BRANCH",
    "MOST_COMMITS",
    "OPTIONS",
    "WITHOUT_REDIRECTS",
    "CommitFacts",
    "FailureKind",
    "FetchTimeout",
    "Git",
    "GitError",
    "MergedBy",
    "MergedHead",
    "Mirror",
    "ProposedBranch",
    "RemoteHeads",
    "RepositoryBusy",
    "RepositoryError",
    "Stopped",
    "Unreachable",
    "changed_files",
    "changed_paths",
    "check_revision",
    "classify_failure",
    "commits_between",
    "commits_on_branch",
    "commits_since_fork",
    "environment_without_account",
    "file_texts",
    "find_commits",
    "find_merges",
    "git_without_account",
    "hide_password",
    "hold_lock",
    "is_same_tree",
    "join_credentials",
    "locate_commits",
    "locate_mirror",
    "merge_base",
    "merged_commits",
    "newest_commits",
    "parse_range",
    "reachable_between",
    "read_commits",
    "read_manifests",
    "read_message",
    "read_tags",
    "resolve_revision",
    "safe_name",
    "select_commits",
    "split_credentials",
    "try_lock",
]
