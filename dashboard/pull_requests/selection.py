"""Which cases a pull request touches, by its changed files and the files that each case runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeVar

# What no training run reads. Everything else may matter: where it isn't known, it is measured.
PROSE = frozenset({".md", ".rst", ".adoc", ".png", ".jpg", ".jpeg", ".svg", ".gif", ".pdf"})
PROSE_FILES = frozenset(
    {"license", "copying", "notice", "authors", "codeowners", ".gitignore", ".gitattributes", ".mailmap"}
)
ASIDE = frozenset({".github", ".gitlab", ".gitea", ".circleci", ".vscode", ".idea"})

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class ProfiledFiles:
    """The files whose functions a case's profile has; whether those are `all` that the case runs.

    A profile is of one process: what DataLoader workers and other processes run isn't in it.
    """

    files: frozenset[str]
    all: bool = True


def touched_cases(
    changed: Iterable[str], files_of_cases: Mapping[Key, ProfiledFiles | None]
) -> dict[Key, str]:
    """Each case that the changed files touch, with the first file that does.

    `files_of_cases`: those of its newest profile; None where it was never measured. A changed file that some
    profile has touches the cases that run it, and those that have other processes too; one that no profile
    has could be read by any: configurations, data, code that is new or is called too seldom to be seen.
    """
    everywhere = frozenset[str]().union(*(known.files for known in files_of_cases.values() if known))
    touched: dict[Key, str] = {}
    for path in changed:
        if is_prose(path):
            continue
        for case, known in files_of_cases.items():
            if known is None or not known.all or path in known.files or path not in everywhere:
                touched.setdefault(case, path)
    return {case: touched[case] for case in files_of_cases if case in touched}


def is_prose(path: str) -> bool:
    """Whether a file is documentation, or about the repository alone."""
    file = PurePosixPath(path)
    return (
        file.suffix.lower() in PROSE
        or file.name.lower() in PROSE_FILES
        or file.stem.lower() in PROSE_FILES
        or file.parts[0] in ASIDE
    )
