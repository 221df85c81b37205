"""Requests the claims of a commit: for a person, a script or the policy. Each becomes a measurement."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from paceline.claims.claim import Claim as ClaimText
from paceline.claims.claims_file import parse_definition
from paceline.manifest import Benchmark

from dashboard import repositories, runs
from dashboard.access import Actor, AuditAction, Visitor, record_action
from dashboard.claims import sides
from dashboard.claims.errors import ClaimsError
from dashboard.claims.following import cancel_superseded, follow_to_commit
from dashboard.claims.judging import judge_by_run
from dashboard.claims.reading import FoundClaims, read_claims, resolve_commit
from dashboard.claims.starting import start_measurements
from dashboard.claims.storing import store_claims, store_listed
from dashboard.models import Claim, ClaimMeasurement, ClaimsFile, Commit, Pool, Project, Run
from dashboard.policy.project_policy import project_policy

Requester = ClaimMeasurement.Requester
# A person's browser waits for the answer.
PAGE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class RequestedClaims:
    """What asking led to: at which commit, experiments that will measure, runs that did, and neither."""

    commit: Commit
    experiments: int
    by_runs: int
    unmeasured: int


def request_claims(
    project: Project,
    benchmark: str = "",
    revision: str = "",
    keys: Collection[str] = (),
    *,
    pool: str = "",
    actor: Actor | None = None,
) -> RequestedClaims:
    """Measure claims at a commit, by default all of them at the newest one. Reads the repository.

    Without an actor the policy asks: its measurements wait for their share of a machine's time. Raises
    ClaimsError; nothing is stored then.
    """
    if pool and not Pool.objects.filter(name=pool).exists():
        raise ClaimsError("pool", f"There is no pool {pool!r}.")
    facts, found = read_project_claims(
        project, revision, PAGE_SECONDS if isinstance(actor, Visitor) else None
    )
    chosen = choose_files(found, benchmark)
    refuse_unknown_keys(chosen, keys)
    with transaction.atomic():
        commit = runs.get_or_create_commits(project, [facts])[facts.hash]
        on_branch = commit.branch == project.branch
        if on_branch and is_newest(project, commit):
            store_claims(project, commit, found)
        else:
            for name, file in chosen.items():
                store_missing(project, name, file)
        measurements, by_runs, unmeasured = [], 0, 0
        for name, file in chosen.items():
            asked = request_file_claims(project, commit, file, keys, pool=pool, actor=actor)
            measurements += asked[0]
            by_runs, unmeasured = by_runs + asked[1], unmeasured + asked[2]
            if on_branch and not keys:
                note_requested(project, name, commit)
        if actor is not None:
            start_measurements(project, measurements)
            count = len(measurements)
            record_action(actor, AuditAction.CLAIMS_MEASURED, project, commit, claims=count)
    return RequestedClaims(commit, len(measurements), by_runs, unmeasured)


def read_project_claims(
    project: Project, revision: str, seconds: float | None
) -> tuple[repositories.CommitFacts, dict[str, FoundClaims]]:
    """The commit that is meant and its claims, from the repository as it is now. Raises ClaimsError."""
    if not project.repository:
        raise ClaimsError("commit", f"{project} has no repository: its results were imported.")
    try:
        project.mirror.fetch(seconds, seconds)
    except repositories.RepositoryError as error:
        raise ClaimsError("commit", str(error)) from error
    facts = resolve_commit(project, revision.strip() or "HEAD")
    found = read_claims(project, facts)
    if not found:
        raise ClaimsError(
            "commit", f"Commit {facts.hash[:10]} has no claims.toml beside the script of a benchmark."
        )
    return facts, found


def choose_files(found: dict[str, FoundClaims], benchmark: str) -> dict[str, FoundClaims]:
    """The file of a benchmark, or all. Refuses one that can't be read with its own sentence."""
    if benchmark and benchmark not in found:
        raise ClaimsError("benchmark", f"{benchmark} has no claims.toml, unlike {', '.join(found)}.")
    chosen = {benchmark: found[benchmark]} if benchmark else found
    broken = next((file.problem for file in chosen.values() if file.problem), "")
    if broken:
        raise ClaimsError("claims", broken)
    return chosen


def refuse_unknown_keys(chosen: dict[str, FoundClaims], keys: Collection[str]) -> None:
    known = [claim.key for file in chosen.values() for claim, _ in file.claims]
    unknown = next((key for key in keys if key not in known), None)
    if unknown is not None:
        raise ClaimsError("claims", f"There is no claim {unknown!r}; there are {', '.join(known[:12])}.")


def is_newest(project: Project, commit: Commit) -> bool:
    """Whether the claims that are listed weren't read at a later commit."""
    read = ClaimsFile.objects.filter(project=project, commit__branch=project.branch)
    return not read.filter(commit__position__gt=commit.position).exists()


def store_missing(project: Project, benchmark: str, file: FoundClaims) -> None:
    """Where nothing was read so far, an older commit's file is better than none."""
    if not Claim.objects.filter(project=project, benchmark=benchmark).exists():
        store_listed(project, benchmark, file)


def note_requested(project: Project, benchmark: str, commit: Commit) -> None:
    """Let the policy count from here; an older commit, asked for to fill a trend, changes nothing."""
    older = Q(asked_at_commit=None) | Q(asked_at_commit__position__lte=commit.position)
    files = ClaimsFile.objects.filter(older, project=project, benchmark=benchmark)
    files.update(asked_at=timezone.now(), asked_at_commit=commit)


@dataclass(frozen=True, slots=True)
class PairsRequest:
    """What the claims of a file are measured at by pairs: a commit, in the window of its usual runs."""

    commit: Commit
    benchmark: Benchmark
    window: sides.UsualWindow
    minutes: float
    actor: Actor | None


def request_file_claims(
    project: Project,
    commit: Commit,
    file: FoundClaims,
    keys: Collection[str],
    *,
    pool: str,
    actor: Actor | None,
) -> tuple[list[ClaimMeasurement], int, int]:
    """(measurements that wait for an experiment, how many a run answered, how many nothing measures)."""
    rows = {row.key: row for row in Claim.objects.filter(project=project, benchmark=file.benchmark.name)}
    window = sides.usual_window(project, file.benchmark, pool)
    by_pairs = PairsRequest(commit, file.benchmark, window, project_policy(project).claims_minutes, actor)
    older = follow_to_commit(file.benchmark.name, commit) if actor is None and not keys else {}
    waiting, by_runs, unmeasured = [], 0, 0
    for claim, _ in file.claims:
        row = rows.get(claim.key)
        if row is None or (keys and claim.key not in keys) or claim.definition != row.digest:
            continue
        reason = sides.unmeasured_reason(claim, file.benchmark, window)
        measurement: ClaimMeasurement | None = None
        if not reason and claim.before is None:
            code = measure_by_run(row, claim, file.benchmark, commit, pool, actor)
            reason = sides.missing_run_reason(code, claim, file.benchmark) if code else {}
            by_runs += not code
        elif not reason:
            measurement = request_pairs(by_pairs, row, claim, older.pop(row.pk, None))
            reason = {} if measurement else {"code": "unknown metric", "metric": claim.metric}
        if measurement:
            waiting.append(measurement)
        unmeasured += bool(reason)
        if row.reason != reason:
            Claim.objects.filter(pk=row.pk).update(reason=reason)
    for measurement in older.values():
        cancel_superseded(measurement)
    return waiting, by_runs, unmeasured


def requester_fields(actor: Actor | None) -> dict[str, Any]:
    if actor is None:
        return {"requester": Requester.POLICY, "requested_by": None}
    visitor = actor if isinstance(actor, Visitor) else None
    by_script = visitor is None or visitor.token is not None
    return {
        "requester": Requester.SCRIPT if by_script else Requester.PERSON,
        "requested_by": visitor.user if visitor else None,
    }


def request_pairs(
    request: PairsRequest, row: Claim, claim: ClaimText, older: ClaimMeasurement | None
) -> ClaimMeasurement | None:
    """The measurement that waits for its experiment, also the one that does already.

    `older`: one of an earlier commit, which becomes that of this one where there is none yet. None where
    nobody has heard of the metric so far.
    """
    base, head = (
        sides.create_configuration(row.project, request.benchmark, params or {}, request.window)
        for params in (claim.before, claim.after)
    )
    known = sides.find_claim_metric(sides.experiment_spelling(claim.metric), base, head)
    waiting = ClaimMeasurement.objects.filter(
        claim=row, commit=request.commit, head=head, state=ClaimMeasurement.State.REQUESTED
    )
    if older and (known is None or waiting.exists()):
        cancel_superseded(older)
    elif older:
        older.commit, older.digest, older.minutes = request.commit, row.digest, request.minutes
        older.base, older.head = base, head
        older.save(update_fields=["commit", "digest", "minutes", "base", "head", "experiment"])
        return older
    if known is None:
        return None
    measurement, _ = ClaimMeasurement.objects.get_or_create(
        claim=row,
        commit=request.commit,
        head=head,
        state=ClaimMeasurement.State.REQUESTED,
        defaults={
            "digest": row.digest,
            "base": base,
            "minutes": request.minutes,
            **requester_fields(request.actor),
        },
    )
    return measurement


def measure_by_run(
    row: Claim, claim: ClaimText, benchmark: Benchmark, commit: Commit, pool: str, actor: Actor | None
) -> str:
    """Judge a claim about one case by the newest run that tells of it; the code of why there is none."""
    found = sides.runs_of_claim(row.project, benchmark, claim, commit.position, pool)
    run = sides.judged_runs(found, claim).first()
    if run is None:
        return "tainted runs" if found.exists() else "no run"
    known = ClaimMeasurement.objects.filter(claim=row, run=run, digest=row.digest)
    if not known.exists():
        measure_run(row, claim, run, actor)
    return ""


def measure_run(row: Claim, claim: ClaimText, run: Run, actor: Actor | None) -> None:
    """Judge a claim about one case by this run of it, called within a transaction."""
    measurement = ClaimMeasurement(
        claim=row, commit_id=run.commit_id, head=run.configuration, digest=row.digest, run=run
    )
    for name, value in requester_fields(actor).items():
        setattr(measurement, name, value)
    judge_by_run(measurement, claim)


def run_stored(run_id: int) -> None:
    """Judge what was asked before any run could tell of it, by this one. Safe to repeat."""
    found = Run.objects.filter(pk=run_id, state=Run.State.DONE, commit__branch=F("commit__project__branch"))
    # Its own noise is all that a sentinel's run says.
    run = found.exclude(origin=Run.Origin.SENTINEL).select_related("configuration__case").first()
    if run is None:
        return
    case = run.configuration.case
    waiting = {"reason__run_of": case.key, "reason__version": run.configuration.version}
    with transaction.atomic():
        rows = Claim.objects.select_for_update(of=("self",)).filter(
            project=case.project_id, benchmark=case.benchmark, listed=True, **waiting
        )
        for row in rows.order_by("pk"):
            claim = parse_definition(row.definition)
            if not sides.has_measured(run, claim):
                continue
            if sides.judged_runs(Run.objects.filter(pk=run.pk), claim).exists():
                measure_run(row, claim, run, None)
                Claim.objects.filter(pk=row.pk).update(reason={})
            else:
                Claim.objects.filter(pk=row.pk).update(reason={**row.reason, "code": "tainted runs"})
