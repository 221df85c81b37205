"""Documents that were measured elsewhere, such as in somebody's CI: each becomes a run of its commit.

What measured it is no machine of this site. Its pool is named by the poster and by its hardware, so that
numbers of another processor, or of the site's own hosts, never share a series with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from paceline import document as documents
from paceline.document import Document, DocumentError
from paceline.manifest import ManifestError, case_key

from dashboard import ingest, leases, repositories, runs
from dashboard.access import AuditAction, Visitor, record_action
from dashboard.ingest import BadDocument
from dashboard.models import Case, Configuration, PostedDocument, Project, Run
from dashboard.name_lengths import LONGEST_BENCHMARK, LONGEST_KEY
from dashboard.repositories import FULL_HASH, CommitFacts, RepositoryBusy, RepositoryError

LONGEST_MACHINE = 40
MACHINE_NAME = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{LONGEST_MACHINE - 1}}}")
DEFAULT_MACHINE = "ci"
# Somebody waits for the answer.
FETCH_PATIENCE, FETCH_SECONDS = 10, 60
# Of a document's environment: what decides which numbers may be compared, and what a run's page shows.
HARDWARE = ("cpu_model", "cpu_features", "cpu_count", "gpus", "path")
FINGERPRINT = ("cpu_model", "cpu_count", "memory_bytes", "gpus", "driver", "os", "kernel")


class DocumentRefused(Exception):  # noqa: N818 - reads as a fact
    """Nothing is stored; the message is one sentence that names the field."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(f"{field}: {sentence}")
        self.field = field


@dataclass(frozen=True, slots=True)
class DocumentOrigin:
    """Of which commit a document is, as the poster names it, and what measured it."""

    commit: str
    machine: str = DEFAULT_MACHINE


def post_document(
    project: Project, data: bytes, origin: DocumentOrigin, visitor: Visitor
) -> tuple[Run, bool]:
    """The run of a document, and whether it is new: the same of the same commit and machine is stored once.

    Reads the project's repository. Raises DocumentRefused, BadDocument, RepositoryBusy.
    """
    if not MACHINE_NAME.fullmatch(origin.machine):
        raise DocumentRefused(
            "machine",
            f"{origin.machine[:80]!r} isn't 1 to {LONGEST_MACHINE} lower-case letters, digits and hyphens.",
        )
    checked = read_posted(data)
    facts = find_commit(project, origin.commit)
    check_benchmark(project, facts, checked)
    digest = hashlib.sha256(data).hexdigest()
    pool = pool_name(origin.machine, checked.environment)
    with transaction.atomic():
        configuration = lock_configuration(project, pool, checked)
        commit = runs.get_or_create_commits(project, [facts])[facts.hash]
        known = Run.objects.filter(commit=commit, configuration=configuration, posted__sha256=digest).first()
        if known:
            return known, False
        run = Run.objects.create(
            commit=commit,
            configuration=configuration,
            origin=Run.Origin.POSTED,
            repetitions=len(checked.repetitions),
            time_limit=0,
            fingerprint={name: checked.environment.get(name) for name in FINGERPRINT},
            # As of a run that a host hands in now: its document is stored the same way.
            state=Run.State.STORING,
            attempt=1,
            lease_until=leases.lease_end(),
        )
        PostedDocument.objects.create(
            run=run,
            sha256=digest,
            machine=origin.machine,
            measured_at=read_time(checked.created),
            posted_by=visitor.user,
            token=visitor.token,
        )
        ingest.store_document(leases.lease_of(run), data)
        record_action(
            visitor, AuditAction.DOCUMENT_POSTED, project, run, commit=facts.hash, machine=origin.machine
        )
    run.refresh_from_db()
    return run, True


def read_posted(data: bytes) -> Document:
    """What names the case, before its run exists; storing it checks the rest. Raises BadDocument."""
    try:
        checked = documents.read_document(data)
    except DocumentError as error:
        raise BadDocument(error.path, error.sentence) from error
    benchmark = checked.benchmark
    for path, text, most in (
        ("benchmark.name", benchmark.name, LONGEST_BENCHMARK),
        ("benchmark.case", benchmark.case, LONGEST_KEY),
    ):
        if len(text) > most:
            raise BadDocument(path, f"has {len(text)} characters, at most {most} are allowed")
        if not text.isprintable():
            raise BadDocument(path, "has a character that can't be shown")
    # A quick look may have other parameters than the case that it is of.
    if not checked.protocol["quick"] and benchmark.case != case_key(benchmark.params):
        raise BadDocument(
            "benchmark.case", f"is {benchmark.case!r}, its parameters spell {case_key(benchmark.params)!r}"
        )
    # Postgres has no text for it.
    if "\\u0000" in json.dumps(checked.raw):
        raise BadDocument("", "has a NUL in a text")
    return checked


def find_commit(project: Project, revision: str) -> CommitFacts:
    """The commit in the project's mirror, which is fetched where it isn't there. Raises DocumentRefused,
    RepositoryBusy."""
    if not project.repository:
        raise DocumentRefused("commit", f"{project} has no repository, only an imported history.")
    mirror = project.mirror
    try:
        # A branch may have moved on; a hash stays what it is.
        if not (FULL_HASH.fullmatch(revision) and mirror.has_commit(revision)):
            mirror.fetch(FETCH_PATIENCE, FETCH_SECONDS)
        (facts,) = repositories.read_commits(mirror, [repositories.resolve_revision(mirror, revision)])
    except RepositoryBusy:
        raise
    except RepositoryError as error:
        raise DocumentRefused("commit", str(error)) from error
    return facts


def check_benchmark(project: Project, facts: CommitFacts, checked: Document) -> None:
    """Refuse what the commit's manifest doesn't have: a slip of the keyboard must not make a benchmark."""
    ((_, manifest),) = runs.read_commit_manifests(project, project.mirror, [facts])
    if isinstance(manifest, ManifestError):
        raise DocumentRefused("commit", str(manifest))
    name, version = checked.benchmark.name, checked.benchmark.version
    try:
        runs.check_benchmark_names(manifest, [name], f"Commit {facts.hash[:10]}")
    except ManifestError as error:
        raise DocumentRefused("benchmark.name", str(error)) from error
    known = manifest.benchmarks[name].version
    if known != version:
        raise DocumentRefused(
            "benchmark.version", f"is {version}, {name} at {facts.hash[:10]} is version {known}."
        )


def pool_name(machine: str, environment: Mapping[str, Any]) -> str:
    """`ci-posted-3fa91c`: the same for the same hardware."""
    hardware = json.dumps({name: environment.get(name) for name in HARDWARE}, sort_keys=True)
    return f"{machine}-posted-{hashlib.sha256(hardware.encode()).hexdigest()[:6]}"


def lock_configuration(project: Project, pool: str, checked: Document) -> Configuration:
    """What the document measures; of two posts of one configuration the second waits."""
    benchmark = checked.benchmark
    case, _ = Case.objects.get_or_create(
        project=project, benchmark=benchmark.name, key=benchmark.case, defaults={"params": benchmark.params}
    )
    configuration, _ = Configuration.objects.get_or_create(
        case=case,
        version=benchmark.version,
        pool=runs.pool_named(pool),
        quick=checked.protocol["quick"],
    )
    return Configuration.objects.select_for_update().get(pk=configuration.pk)


def read_time(text: str) -> datetime:
    """When it was measured; UTC where it names no zone."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
