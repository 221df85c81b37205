"""The repositories of projects, read through bare mirrors; each failure is a RepositoryError of one line."""

from dashboard.repositories.errors import RepositoryBusy, RepositoryError, Unreachable
from dashboard.repositories.history import (
    MOST_COMMITS,
    Facts,
    between,
    brought,
    check_revision,
    commits_of,
    facts,
    is_same_tree,
    leaving,
    manifests,
    merge_base,
    parse_range,
    resolve,
    select,
)
from dashboard.repositories.mirror import Mirror, mirror_of

__all__ = [
    "MOST_COMMITS",
    "Facts",
    "Mirror",
    "RepositoryBusy",
    "RepositoryError",
    "Unreachable",
    "between",
    "brought",
    "check_revision",
    "commits_of",
    "facts",
    "is_same_tree",
    "leaving",
    "manifests",
    "merge_base",
    "mirror_of",
    "parse_range",
    "resolve",
    "select",
]
