"""Which cases a pull request touches, by its changed files and the files that each case runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import TypeVar

# What no training run reads. Everything else may matter: where it isn't known, it is measured.
PROSE = frozenset({".md", ".rst", ".adoc", ".png", ".jpg", ".jpeg", ".svg", ".gif", ".pdf"})
PROSE_FILES = frozenset(
    {"license", "copying", "notice", "authors", "codeowners", ".gitignore", ".gitattributes", ".mailmap"}
)
ASIDE = frozenset({".github", ".gitlab", ".gitea", ".circleci", ".vscode", ".idea"})

Key = TypeVar("Key")


def touched_cases(
    changed: Iterable[str], files_of_cases: Mapping[Key, Collection[str] | None]
) -> dict[Key, str]:
    """Each case that the changed files touch, with the first file that does.

    `files_of_cases`: the files whose functions its newest profile has; None where it was never measured. A
    changed file that some profile has touches the cases that run it; one that no profile has could be read
    by any: configurations, data, code that is new or is called too seldom to be seen.
    """
    everywhere = set().union(*(files for files in files_of_cases.values() if files))
    touched: dict[Key, str] = {}
    for path in changed:
        if is_prose(path):
            continue
        for case, files in files_of_cases.items():
            if files is None or path in files or path not in everywhere:
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
