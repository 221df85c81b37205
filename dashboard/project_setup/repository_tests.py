"""The test of a repository: asked for by a page, done by a worker, and forgotten after a day."""

from __future__ import annotations

import logging
import shutil
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from paceline.manifest import ManifestError

from dashboard import dispatch
from dashboard.access import Action, Visitor
from dashboard.access.rules import ADD_PROJECT_PERMISSION
from dashboard.models import Project, RepositoryTest
from dashboard.outgoing_http import InternalAddressError, OutgoingError
from dashboard.project_setup.allowed_repositories import guarded_options
from dashboard.repositories import (
    LONGEST_BRANCH,
    FailureKind,
    Git,
    Mirror,
    RemoteHeads,
    RepositoryError,
    classify_failure,
    environment_without_account,
    hide_password,
    read_commits,
    read_manifests,
)

logger = logging.getLogger(__name__)

Outcome = RepositoryTest.Outcome

FETCH_SECONDS = 240
# So many branches are offered.
MOST_BRANCHES = 500
LONGEST_REASON = 300
KEPT_FOR = timedelta(days=1)
# A test that nobody has begun is sent again after this, one whose worker is lost after that.
SEND_AGAIN_AFTER = timedelta(seconds=15)
LOST_AFTER = timedelta(seconds=FETCH_SECONDS + 120)
BY_FAILURE = {
    FailureKind.NO_HOST: Outcome.NO_HOST,
    FailureKind.NO_ANSWER: Outcome.NO_ANSWER,
    FailureKind.KEY_REFUSED: Outcome.KEY_REFUSED,
    FailureKind.HOST_KEY: Outcome.HOST_KEY,
    FailureKind.CERTIFICATE: Outcome.CERTIFICATE,
    FailureKind.REDIRECTED: Outcome.REDIRECTED,
    FailureKind.NOT_FOUND: Outcome.NOT_FOUND,
    FailureKind.OTHER: Outcome.OTHER,
}


class UnusableRepositoryError(Exception):
    """The repository is of no use as it is: the outcome, and what was found until then."""

    def __init__(self, outcome: str, **facts: Any) -> None:
        super().__init__(outcome)
        self.outcome, self.facts = outcome, facts


@transaction.atomic
def request_test(
    user: User, repository: str, credentials: str, branch: str = "", project: Project | None = None
) -> RepositoryTest:
    """Ask a worker to look; `branch` is empty for the one that the repository's HEAD names."""
    test = RepositoryTest.objects.create(
        requested_by=user,
        project=project,
        repository=repository,
        credentials=credentials,
        branch=branch[:LONGEST_BRANCH],
    )
    dispatch.send_task(dispatch.TEST_REPOSITORY, test.pk)
    return test


def perform_test(test_id: int) -> None:
    """Look whether the repository can be fetched, and read its newest commit. Safe to repeat."""
    claimed = _unfinished_tests().filter(pk=test_id).update(started_at=Now())
    test = RepositoryTest.objects.filter(pk=test_id).first() if claimed else None
    if test is None:
        return
    folder = folder_of_test(test_id)
    try:
        outcome, facts = Outcome.READABLE, look_at_repository(test, folder)
    except UnusableRepositoryError as error:
        outcome, facts = Outcome(error.outcome), error.facts
    finally:
        remove_folder(folder)
    RepositoryTest.objects.filter(pk=test_id, outcome="").update(outcome=outcome, facts=facts)


def look_at_repository(test: RepositoryTest, folder: Path) -> dict[str, Any]:
    """What a page shows of the repository. Raises UnusableRepositoryError."""
    try:
        options = guarded_options(test.repository)
    except InternalAddressError:
        raise UnusableRepositoryError(Outcome.INTERNAL_ADDRESS) from None
    except OutgoingError:
        raise UnusableRepositoryError(Outcome.NO_HOST) from None
    git = Git(options=options)
    if not may_use_account(test):
        git = replace(git, variables=environment_without_account())
    mirror = Mirror(folder, "the repository", test.fetch_address, git=git)
    heads = ask_repository(test, mirror.remote_heads)
    branch = choose_branch(test, heads)
    mirror = replace(mirror, branch=branch)
    ask_repository(test, lambda: mirror.fetch_tip(branch, FETCH_SECONDS), Outcome.TOO_SLOW)
    tip = heads.tips[branch]
    try:
        (commit,) = read_commits(mirror, mirror.lines("rev-parse", f"refs/heads/{branch}"))
        text = read_manifests(mirror, [commit.hash]).get(commit.hash)
    except RepositoryError as error:
        raise UnusableRepositoryError(Outcome.OTHER, reason=shown_reason(error)) from error
    known = {**asdict(commit), "committed_at": commit.committed_at.isoformat()}
    refused = str(text) if isinstance(text, ManifestError) else ""
    return {
        **branch_facts(heads),
        "branch": branch,
        "tip": tip,
        "commit": {name: known[name] for name in ("hash", "subject", "author", "committed_at")},
        "manifest": text if isinstance(text, str) else None,
        "manifest_refused": refused,
    }


def may_use_account(test: RepositoryTest) -> bool:
    """Whether git may read with what the site's account has of its own: credential helpers, .netrc.

    Else an admin of one project could name the repository of another, that the account reads as well.
    """
    if test.project and test.repository == test.project.repository and test.project.uses_account:
        return True
    return Visitor(test.requested_by).may(Action.ADMINISTER_SITE, permission=ADD_PROJECT_PERMISSION)


def ask_repository(test: RepositoryTest, act: Any, when_slow: str = Outcome.NO_ANSWER) -> Any:
    """What asking the repository answers. Raises UnusableRepositoryError with the reason that git gave."""
    try:
        return act()
    except RepositoryError as error:
        reason = shown_reason(error.__cause__ or error)
        kind = classify_failure(reason)
        if kind == FailureKind.CREDENTIALS:
            outcome = Outcome.CREDENTIALS_REFUSED if test.credentials else Outcome.CREDENTIALS_MISSING
        elif kind == FailureKind.NO_ANSWER and "took longer" in reason:
            outcome = Outcome(when_slow)
        else:
            outcome = BY_FAILURE[kind]
        raise UnusableRepositoryError(outcome, reason=reason) from error


def choose_branch(test: RepositoryTest, heads: RemoteHeads) -> str:
    """The branch that was asked for, or the one that people mean by the repository."""
    if not heads.tips:
        raise UnusableRepositoryError(Outcome.EMPTY)
    if test.branch and test.branch not in heads.tips:
        raise UnusableRepositoryError(Outcome.NO_BRANCH, **branch_facts(heads))
    usual = [name for name in (heads.default, "main", "master") if name in heads.tips]
    return test.branch or (usual or sorted(heads.tips))[0]


def branch_facts(heads: RemoteHeads) -> dict[str, Any]:
    names = sorted(heads.tips, key=lambda name: (name != heads.default, name))
    return {"branches": names[:MOST_BRANCHES], "default": heads.default, "branch_count": len(names)}


def shown_reason(error: BaseException) -> str:
    return hide_password(str(error)).replace("\0", "")[:LONGEST_REASON]


def folder_of_test(test_id: int) -> Path:
    return Path(settings.PACELINE_HOME) / "repository-tests" / f"{test_id}.git"


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_suffix(".lock").unlink(missing_ok=True)


def _unfinished_tests() -> Any:
    """Those that nobody works on."""
    lost = Q(started_at=None) | Q(started_at__lt=Now() - LOST_AFTER)
    return RepositoryTest.objects.filter(lost, outcome="", created_at__gte=Now() - KEPT_FOR)


def send_waiting_tests() -> None:
    """Ring again for tests whose message or worker was lost."""
    for key in (
        _unfinished_tests().filter(created_at__lt=Now() - SEND_AGAIN_AFTER).values_list("pk", flat=True)
    ):
        dispatch.send_task(dispatch.TEST_REPOSITORY, key)


def drop_old_tests() -> None:
    """Forget tests after a day, with the credentials that were typed and what a killed worker left."""
    RepositoryTest.objects.filter(created_at__lt=Now() - KEPT_FOR).delete()
    kept = set(RepositoryTest.objects.values_list("pk", flat=True))
    for folder in folder_of_test(0).parent.glob("*.git"):
        if not folder.stem.isdigit() or int(folder.stem) not in kept:
            remove_folder(folder)
