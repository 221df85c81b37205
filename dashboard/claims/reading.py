"""The claims of a project's benchmarks as one commit has them, read from its fetched mirror."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.claims.claim import Claim as ClaimText
from paceline.claims.claims_file import claims_paths, find_claims_file, parse_claims_table, read_claims_table
from paceline.manifest import Benchmark, ManifestError

from dashboard import repositories, runs
from dashboard.claims.errors import ClaimsError
from dashboard.models import Project
from dashboard.repositories import CommitFacts, RepositoryError

LARGEST_FILE = 256 * 1024


@dataclass(frozen=True, slots=True)
class FoundClaims:
    """A benchmark's file at a commit: its claims, each with the table that says it, or what is wrong."""

    benchmark: Benchmark
    document: str = ""
    problem: str = ""
    claims: tuple[tuple[ClaimText, Mapping[str, Any]], ...] = field(default=())


def resolve_commit(project: Project, revision: str) -> CommitFacts:
    """The commit that a branch, a tag or a hash names in the fetched mirror. Raises ClaimsError."""
    try:
        sha = repositories.resolve_revision(project.mirror, revision)
        return repositories.read_commits(project.mirror, [sha])[0]
    except RepositoryError as error:
        raise ClaimsError("commit", str(error)) from error


def read_claims(project: Project, commit: CommitFacts) -> dict[str, FoundClaims]:
    """By benchmark its claims at this commit; benchmarks without a file are left out. Raises ClaimsError."""
    ((_, manifest),) = runs.read_commit_manifests(project, project.mirror, [commit])
    if isinstance(manifest, ManifestError):
        raise ClaimsError("commit", str(manifest))
    benchmarks = manifest.benchmarks
    places = [path for benchmark in benchmarks.values() for path in claims_paths(benchmark, benchmarks)]
    texts = read_texts(project, commit.hash, {path.as_posix() for path in places})
    found = {}
    for name, benchmark in benchmarks.items():
        try:
            path = find_claims_file(benchmark, benchmarks, lambda path: path.as_posix() in texts)
        except ManifestError as error:
            found[name] = FoundClaims(benchmark, problem=error.sentence)
            continue
        if path is not None:
            found[name] = parse_text(benchmark, texts[path.as_posix()], f"{path} of {commit.hash[:10]}")
    return found


def read_texts(project: Project, sha: str, paths: set[str]) -> dict[str, str]:
    """The files that are there: those kept beside a kept manifest stand above those of the commit."""
    names = {f"{sha}:{path}": path for path in sorted(paths)}
    try:
        texts = repositories.file_texts(project.mirror, names)
    except RepositoryError as error:
        raise ClaimsError("commit", str(error)) from error
    kept = project.files_beside_manifest()
    own = {path: kept[path] for path in paths if path in kept}
    return {names[name]: text for name, text in texts.items()} | own


def parse_text(benchmark: Benchmark, text: str, where: str) -> FoundClaims:
    """Its claims, or one sentence that names the field which can't be read."""
    if len(text) > LARGEST_FILE:
        return FoundClaims(benchmark, problem=f"{where}: is larger than {LARGEST_FILE // 1024} KiB.")
    try:
        raw = read_claims_table(text, where)
        found = parse_claims_table(raw, where)
    except ManifestError as error:
        return FoundClaims(benchmark, problem=error.sentence)
    return FoundClaims(benchmark, found.document, claims=tuple(zip(found.claims, raw["claims"], strict=True)))
