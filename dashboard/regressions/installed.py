"""What a commit range changed beside code: what is installed, and what the benchmark measures."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath

from paceline import manifest as manifests
from paceline.manifest import FILE_NAME, Manifest, ManifestError

from dashboard import repositories
from dashboard.models import Commit, Project, Series
from dashboard.regressions import diffs
from dashboard.repositories import RepositoryError

logger = logging.getLogger(__name__)

# Of a benchmark: what decides the values that it measures. Limits, guards and time limits only judge them.
DEFINING = (
    "script",
    "params",
    "warmup_steps",
    "steps",
    "counting_steps",
    "counting_warmup_steps",
    "seed",
    "threads",
    "auto",
    "affinity",
    "gc",
    "variables",
)
# Files that no process reads.
PROSE = frozenset({".md", ".rst", ".txt", ".adoc"})


@dataclass(frozen=True, slots=True)
class Touched:
    """The files of a commit range by what they can change; `known` is False where git can't tell."""

    known: bool = False
    code: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    # How the benchmark is defined otherwise than before, as `steps 100 -> 200`.
    definition: tuple[str, ...] = field(default=())


def touched(project: Project, series: Series, good: Commit, bad: Commit) -> Touched:
    """Read from the project's mirror; nothing is fetched."""
    if not project.repository:
        return Touched()
    mirror = repositories.mirror_of(project)
    try:
        pairs = diffs.changed(mirror, good.hash, bad.hash)
        texts = {} if project.manifest else repositories.manifests(mirror, [good.hash, bad.hash])
    except RepositoryError as error:
        logger.warning("What %s..%s of %s changed can't be told: %s", good, bad, project, error)
        return Touched()
    paths = sorted({path for one in pairs for path in (one.old, one.new) if path})
    old, new = (parsed(texts.get(one.hash)) for one in (good, bad))
    definition = redefined(series, old, new)
    environment = (old and old.environment) != (new and new.environment)
    install = [
        path for path in paths if installs(path) and (PurePosixPath(path).name != FILE_NAME or environment)
    ]
    return Touched(
        known=True,
        code=tuple(path for path in paths if not installs(path) and PurePosixPath(path).suffix not in PROSE),
        install=tuple(install),
        definition=tuple(definition),
    )


def installs(path: str) -> bool:
    return diffs.changes_environment([path])


def parsed(text: str | None) -> Manifest | None:
    try:
        return manifests.parse_manifest(text, FILE_NAME) if text else None
    except ManifestError:
        return None


def redefined(series: Series, old: Manifest | None, new: Manifest | None) -> list[str]:
    """How the benchmark of a series is measured otherwise; empty where one side doesn't know it."""
    name = series.case.benchmark
    before = old.benchmarks.get(name) if old else None
    after = new.benchmarks.get(name) if new else None
    if before is None or after is None:
        return []
    if series.quick:
        before, after = before.quickened(), after.quickened()
    known = {one.name for one in fields(before)}
    return [
        f"{key} {words(getattr(before, key))} -> {words(getattr(after, key))}"
        for key in DEFINING
        if key in known and getattr(before, key) != getattr(after, key)
    ]


def words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={one}" for key, one in value.items()) or "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(one) for one in value) or "none"
    return "none" if value is None else str(value)
