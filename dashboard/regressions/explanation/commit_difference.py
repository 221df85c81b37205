"""The difference that a commit range makes: which files, which functions, and whether what is installed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from dashboard import repositories
from dashboard.models import Project
from dashboard.regressions.explanation.changed_functions import TouchedFunctions, compare_texts
from dashboard.repositories import RepositoryError

logger = logging.getLogger(__name__)

MOST_FILES = 200
# Characters of both sides: what a worker reads within a minute, whatever stands there.
MOST_COMPARED = 4_000_000

# A commit that touches one of these may change the environment that it is measured in.
ENVIRONMENT_FILES = (
    "requirements",
    "constraints",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "environment.y",
    "poetry.lock",
    "uv.lock",
    "conda-lock",
    "pdm.lock",
    "Pipfile",
    "paceline.toml",
    ".python-version",
)


def touched_functions(project: Project, old: str, new: str) -> TouchedFunctions:
    """What the commits after one hash up to another changed; empty where the repository can't say."""
    if not project.repository:
        return TouchedFunctions()
    try:
        mirror = project.mirror
        files = repositories.changed_files(mirror, old, new)
        python = [file for file in files if file.new.endswith(".py")][:MOST_FILES]
        before = repositories.file_texts(mirror, (f"{old}:{file.old}" for file in python if file.old))
        after = repositories.file_texts(mirror, (f"{new}:{file.new}" for file in python))
    except RepositoryError as error:
        logger.warning("Suspects of %s in %s are ranked without the diff: %s", new, project, error)
        return TouchedFunctions()
    texts = {
        file.new: (before.get(f"{old}:{file.old}", ""), text)
        for file in python
        if (text := after.get(f"{new}:{file.new}")) is not None
    }
    functions = [
        function for path, both in choose_compared(texts).items() for function in compare_texts(path, *both)
    ]
    return TouchedFunctions(
        paths=frozenset(path for file in files for path in (file.old, file.new) if path),
        functions=tuple(functions),
        moved={file.new: file.old for file in files if file.old and file.new and file.old != file.new},
    )


def choose_compared(texts: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """The files that are compared, in their order: the smallest ones, where all are too much."""
    left, chosen = MOST_COMPARED, set()
    for path in sorted(texts, key=lambda path: sum(map(len, texts[path]))):
        left -= sum(map(len, texts[path]))
        if left < 0:
            break
        chosen.add(path)
    return {path: both for path, both in texts.items() if path in chosen}


def asks_for_other_environment(project: Project, old: str, new: str) -> bool:
    """True where a commit range touches a file that says what is installed; False where git can't tell."""
    if not project.repository:
        return False
    try:
        files = repositories.changed_files(project.mirror, old, new)
    except RepositoryError as error:
        logger.warning("Whether %s..%s asks for another environment can't be determined: %s", old, new, error)
        return False
    return changes_environment(path for file in files for path in (file.old, file.new) if path)


def changes_environment(paths: Iterable[str]) -> bool:
    """True where a commit that touches these paths may be measured in another environment because of it."""
    return any(part.startswith(ENVIRONMENT_FILES) for path in paths for part in path.split("/"))
