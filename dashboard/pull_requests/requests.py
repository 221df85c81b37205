"""Requests checks, and ends those with an older head, of a closed pull request, or by a person's wish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from paceline.manifest import ManifestError

from dashboard import dispatch, experiments, outbox, repositories, runs
from dashboard.models import Check, Experiment, Project, PullRequest
from dashboard.pull_requests.answer import BASE_GONE
from dashboard.pull_requests.errors import CheckError
from dashboard.repositories import RepositoryError

State = Check.State
MOST_BENCHMARKS = 100
NEWER_HEAD, CLOSED = "newer head", "pull request closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedHead:
    """A pull request as its forge tells of it now. `onto_hash` is the tip of its target; empty: not said.

    The head of a draft isn't checked.
    """

    number: int
    title: str
    author: str
    url: str
    head_hash: str
    head_ref: str
    onto: str
    onto_hash: str = ""
    is_fork: bool = False
    is_draft: bool = False
    state: PullRequest.State = PullRequest.State.OPEN
    merge_hash: str = ""
    updated_at: datetime | None = None


def follow_pull_request(project: Project, proposed: ProposedHead) -> Check | None:
    """Keep what is reported of a pull request, and check its head, once each. The new check, if there is one.

    Reported twice, or late, it has the effect of once: what is older than what is known is left.
    """
    with transaction.atomic():
        # Its lock: of two deliveries at once the second finds what the first has made.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        known = PullRequest.objects.filter(project=project, number=proposed.number).first()
        if is_passed_over(known, proposed):
            return None
        row = store_pull_request(project, proposed, known)
        if row.state != PullRequest.State.OPEN:
            end_checks(row.checks.all(), {"code": CLOSED})
            return None
        same = row.checks.filter(head_hash=row.head_hash, onto=row.base_ref)
        end_checks(row.checks.exclude(pk__in=same.values("pk")), {"code": NEWER_HEAD})
        # What ended with its head or its pull request has no answer: once these are back it is asked anew.
        answered = same.exclude(state=State.CANCELLED, reason__code__in=(NEWER_HEAD, CLOSED)).order_by("-pk")
        if stays := answered.first():
            if known and (known.head_hash, known.base_ref) != (row.head_hash, row.base_ref):
                repeat_comment(stays)
            return None
        if proposed.is_draft:
            return None
        return _create_check(
            project,
            pull_request=row,
            head_hash=row.head_hash,
            onto=row.base_ref,
            onto_hash=proposed.onto_hash,
            state=State.WAITING if row.is_fork else State.REQUESTED,
        )


def is_passed_over(known: PullRequest | None, proposed: ProposedHead) -> bool:
    """Whether nothing is kept of it: a draft that is new here, or what is older than what is known."""
    if known is None:
        return proposed.is_draft and proposed.state == PullRequest.State.OPEN
    known_at = known.forge_updated_at
    return bool(known_at and proposed.updated_at and is_older(proposed.updated_at, known_at))


def store_pull_request(project: Project, proposed: ProposedHead, known: PullRequest | None) -> PullRequest:
    """The row of a pull request as its forge describes it now; `known`: as it was before."""
    row, _ = PullRequest.objects.update_or_create(
        project=project,
        number=proposed.number,
        defaults={
            "title": proposed.title[:500],
            "author": proposed.author[:200],
            "url": proposed.url[:1000],
            "head_hash": proposed.head_hash,
            "head_ref": proposed.head_ref,
            "base_ref": proposed.onto,
            "is_fork": proposed.is_fork,
            "state": proposed.state,
            "merge_hash": proposed.merge_hash,
            "forge_updated_at": proposed.updated_at or (known.forge_updated_at if known else None),
        },
    )
    return row


def repeat_comment(check: Check) -> None:
    """Have the comment of a head written again that is back: it was the other head's meanwhile."""
    published = {name: value for name, value in check.published.items() if name != "comment"}
    Check.objects.filter(pk=check.pk).update(published=published)
    outbox.enqueue_message(dispatch.PUBLISH_CHECK, check.pk)


def is_older(reported: datetime, known: datetime) -> bool:
    """By whole seconds: what a forge's webhooks say is cut to those, and what its API says isn't."""
    return reported.replace(microsecond=0) < known.replace(microsecond=0)


def newest_check(pull_request: PullRequest) -> Check | None:
    """The newest of its present head, which may have been another meanwhile; else of any."""
    checks = pull_request.checks.select_related("project", "pull_request").order_by("-pk")
    present = checks.filter(head_hash=pull_request.head_hash, onto=pull_request.base_ref)
    return present.first() or checks.first()


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What a person or a script asks to have checked; what isn't said is left to the project.

    `head`: a branch or a commit; `onto`: what it is to be merged into, the project's branch if none is said.
    `benchmarks`: these alone; `quick`: in short windows; `minutes`: most of each experiment.
    """

    head: str
    onto: str = ""
    benchmarks: Sequence[str] = ()
    quick: bool | None = None
    minutes: float | None = None


def request_check(
    project: Project, wanted: CheckRequest, requested_by: Any = None, fetch_seconds: float | None = None
) -> Check:
    """Check a head against its merge base.

    Fetches the project's repository, for so many seconds at most where they are given. Raises CheckError.
    """
    minutes, benchmarks = wanted.minutes, wanted.benchmarks
    if minutes is not None and not 0 < minutes <= experiments.MOST_MINUTES:
        raise CheckError(f"minutes: {minutes:g} isn't above 0 and at most {experiments.MOST_MINUTES:,.0f}.")
    if len(benchmarks) > MOST_BENCHMARKS:
        raise CheckError(f"benchmarks: {len(benchmarks)} are more than {MOST_BENCHMARKS}.")
    onto = wanted.onto or project.branch
    mirror = project.mirror
    hashes = {}
    for field, revision in (("head", wanted.head), ("onto", onto)):
        try:
            if field == "head":
                mirror.fetch(fetch_seconds, fetch_seconds)
            hashes[field] = repositories.resolve_revision(mirror, revision)
        except RepositoryError as error:
            raise CheckError(f"{field}: {error}") from error
    if benchmarks:
        check_names(project, hashes["head"], benchmarks)
    with transaction.atomic():
        return _create_check(
            project,
            head_hash=hashes["head"],
            onto=onto,
            onto_hash=hashes["onto"],
            benchmarks=list(dict.fromkeys(benchmarks)),
            quick=wanted.quick,
            minutes=minutes or project.check_minutes,
            requested_by=requested_by,
        )


def check_names(project: Project, head: str, benchmarks: Sequence[str]) -> None:
    """CheckError where the head has no benchmark of one of these names."""
    try:
        facts = repositories.read_commits(project.mirror, [head])
        for commit, manifest in runs.read_commit_manifests(project, project.mirror, facts):
            if isinstance(manifest, ManifestError):
                raise manifest
            runs.choose_benchmarks_named(manifest, benchmarks, commit)
    except ManifestError as error:
        raise CheckError(f"benchmarks: {error}") from error
    except RepositoryError as error:
        raise CheckError(f"head: {error}") from error


def repeat_check(check: Check, requested_by: Any = None) -> Check:
    """Check the same head against the same merge base once more; where that is gone, against today's.

    Raises CheckError while one is under way.
    """
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=check.project_id)
        # As it is now, whatever the caller has read before.
        pull_request = PullRequest.objects.filter(checks=check).first()
        if pull_request and pull_request.checks.filter(state__in=Check.ACTIVE).exists():
            raise CheckError(f"check: one of {pull_request} is under way already.")
        if pull_request and pull_request.head_hash != check.head_hash:
            raise CheckError(f"check: {pull_request} has a newer head, {pull_request.head_hash[:10]}.")
        return _create_check(
            check.project,
            pull_request=pull_request,
            head_hash=check.head_hash,
            onto=check.onto,
            # A tip that isn't there never will be: the target as it is now.
            onto_hash="" if check.reason.get("code") == BASE_GONE else check.onto_hash,
            benchmarks=check.benchmarks,
            quick=check.quick,
            minutes=check.minutes,
            approved_by=check.approved_by,
            requested_by=requested_by,
            # Who may run code approved this very head already.
            state=State.WAITING
            if pull_request and pull_request.is_fork and not check.approved_by
            else State.REQUESTED,
        )


def cancel_check(check: Check, person: Any) -> bool:
    """End a check that hasn't ended; False where it has."""
    with transaction.atomic():
        return end_check(check, {"code": "cancelled", "person": str(person)})


def end_checks(checks: QuerySet[Check], reason: Mapping[str, Any]) -> None:
    for check in checks.filter(state__in=Check.ACTIVE):
        end_check(check, reason)


def end_check(check: Check, reason: Mapping[str, Any]) -> bool:
    """Cancel it and its experiments: their hosts learn of it at their next heartbeat.

    What is proved to be worse stays so: it has been published.
    """
    with transaction.atomic():
        # Locked: meanwhile it may be answered.
        active = Check.objects.select_for_update().filter(pk=check.pk, state__in=Check.ACTIVE).first()
        if active is None:
            return False
        if active.answer == Check.Answer.WORSE:
            active.state = State.DONE
        else:
            active.state, active.reason = State.CANCELLED, dict(reason)
        active.ended_at = timezone.now()
        active.save(update_fields=["state", "reason", "ended_at"])
        experiments.cancel_experiments(Experiment.objects.filter(checked_case__of=check), reason)
        outbox.enqueue_message(dispatch.PUBLISH_CHECK, check.pk)
    return True


def _create_check(project: Project, **values: Any) -> Check:
    values.setdefault("minutes", project.check_minutes)
    check = Check.objects.create(project=project, floor=project.check_floor, **values)
    if check.state == State.REQUESTED:
        dispatch.send_task(dispatch.PREPARE_CHECK, check.pk)
    outbox.enqueue_message(dispatch.PUBLISH_CHECK, check.pk)
    return check
