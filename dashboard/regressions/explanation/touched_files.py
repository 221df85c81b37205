"""What a commit range changed beside code: what is installed, and what the benchmark measures."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import fields
from pathlib import PurePosixPath

from paceline import manifest as manifests
from paceline.manifest import FILE_NAME, Manifest, ManifestError

from dashboard import repositories
from dashboard.models import Configuration, Project
from dashboard.regressions.decision.cause_class import Difference, TouchedFiles
from dashboard.regressions.explanation.commit_difference import changes_environment
from dashboard.repositories import RepositoryError

logger = logging.getLogger(__name__)

# Of a benchmark: what decides the values that it measures. Limits, guards and time limits only judge them.
DEFINING = (
    "script",
    "module",
    "working_directory",
    "processes",
    "step",
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
    "arguments",
    "python_path",
    "prepare",
)
# Files that no process reads.
PROSE = frozenset({".md", ".rst", ".txt", ".adoc"})


def read_touched_files(project: Project, configuration: Configuration, old: str, new: str) -> TouchedFiles:
    """Read from the project's mirror; nothing is fetched. `old` and `new` are hashes."""
    if not project.repository:
        return TouchedFiles()
    try:
        mirror = project.mirror
        files = repositories.changed_files(mirror, old, new)
        texts = {} if project.manifest else repositories.read_manifests(mirror, [old, new])
    except RepositoryError as error:
        logger.warning("What %s..%s of %s changed can't be determined: %s", old, new, project, error)
        return TouchedFiles()
    paths = sorted({path for file in files for path in (file.old, file.new) if path})
    before, after = parsed_manifest(texts.get(old)), parsed_manifest(texts.get(new))
    environment = (before and before.environment) != (after and after.environment)
    install = [
        path
        for path in paths
        if says_installed(path) and (PurePosixPath(path).name != FILE_NAME or environment)
    ]
    return TouchedFiles(
        known=True,
        code=tuple(
            path for path in paths if not says_installed(path) and PurePosixPath(path).suffix not in PROSE
        ),
        install=tuple(install),
        definition=tuple(definition_differences(configuration, before, after)),
    )


def says_installed(path: str) -> bool:
    return changes_environment([path])


def parsed_manifest(text: str | ManifestError | None) -> Manifest | None:
    try:
        return manifests.parse_manifest(text, FILE_NAME) if isinstance(text, str) else None
    except ManifestError:
        return None


def definition_differences(
    configuration: Configuration, old: Manifest | None, new: Manifest | None
) -> list[Difference]:
    """How the benchmark of a configuration is measured otherwise; empty where one side doesn't know it."""
    name = configuration.case.benchmark
    before = old.benchmarks.get(name) if old else None
    after = new.benchmarks.get(name) if new else None
    if before is None or after is None:
        return []
    if configuration.quick:
        before, after = before.as_quick(), after.as_quick()
    known = {field.name for field in fields(before)}
    return [
        (key, value_words(getattr(before, key)), value_words(getattr(after, key)))
        for key in DEFINING
        if key in known and getattr(before, key) != getattr(after, key)
    ]


def value_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items()) or "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(item) for item in value) or "none"
    return "none" if value is None else str(value)
