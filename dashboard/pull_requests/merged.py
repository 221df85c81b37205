"""The checks whose heads a commit of a branch holds: what was proved of them needn't be proved again."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from dashboard import repositories, runs
from dashboard.models import Case, Check, CheckedCase, Commit, Project
from dashboard.pull_requests.case_files import changed_paths, profiled_files
from dashboard.pull_requests.selection import touched_cases
from dashboard.repositories import MergedHead, Mirror, ProposedBranch, RepositoryError

logger = logging.getLogger(__name__)

# Of a case; older ones were merged before this commit, or never will be.
MOST_CHECKS = 20


@dataclass(frozen=True)
class MergedCheck:
    """What a check has measured of one case, with how its head came to the branch.

    `same_code`: between what it measured and the commits of the branch, on either side, nothing differs that
    the case runs. Only then its pairs speak for these.
    """

    row: CheckedCase
    merged: MergedHead
    same_code: bool

    @property
    def check(self) -> Check:
        return self.row.of


def merged_checks(
    project: Project, configuration: int, case: Case, branch: str, commit: str
) -> list[MergedCheck]:
    """Those that measured a configuration, the newest first. Reads the project's repository."""
    measured = CheckedCase.objects.filter(
        of__project=project,
        of__state=Check.State.DONE,
        of__base_commit__isnull=False,
        configuration=configuration,
        is_control=False,
    )
    related = measured.select_related(
        *("of__pull_request", "of__base_commit", "of__intended_person"),
        *("experiment__metric", "experiment__head_commit", "experiment__machine"),
    )
    rows = {row.pk: row for row in related.order_by("-of")[:MOST_CHECKS]}
    if not rows:
        return []
    mirror = project.mirror
    try:
        proposed = {key: proposed_branch(row.of) for key, row in rows.items()}
        found = repositories.find_merges(mirror, commit, branch, proposed)
    except RepositoryError as error:
        logger.warning("Which heads %s of %s holds can't be told: %s", commit, project, error)
        return []
    return [
        MergedCheck(rows[key], merged, has_same_code(mirror, project, rows[key], case, merged))
        for key, merged in found.items()
    ]


def commits_before(project: Project, found: Iterable[MergedCheck]) -> dict[str, Commit]:
    """By hash the commits that their heads were put upon, made where they are new."""
    hashes = sorted({merged.merged.before for merged in found})
    if not hashes:
        return {}
    try:
        return runs.get_or_create_commits(project, repositories.read_commits(project.mirror, hashes))
    except RepositoryError as error:
        logger.warning("The commits before %s of %s can't be read: %s", hashes, project, error)
        return {}


def proposed_branch(check: Check) -> ProposedBranch:
    """`merge_hash` is told of the head that was merged: of an older one it says nothing."""
    base = check.base_commit.hash if check.base_commit else ""
    request = check.pull_request
    merge_hash = request.merge_hash if request and request.head_hash == check.head_hash else ""
    return ProposedBranch(check.head_hash, base, merge_hash)


def has_same_code(mirror: Mirror, project: Project, row: CheckedCase, case: Case, merged: MergedHead) -> bool:
    check = row.of
    # Those of the other cases too: a file that one of them runs isn't read by all.
    names = project.cases.values_list("pk", "benchmark", "key")
    files = {key: profiled_files(project, *name) for key, *name in names}
    base = check.base_commit.hash if check.base_commit else ""
    try:
        return not any(
            case.pk in touched_cases(changed_paths(mirror, measured, landed), files)
            for measured, landed in ((base, merged.before), (check.head_hash, merged.commit))
        )
    except RepositoryError as error:
        logger.warning("What differs between %s and its merge can't be told: %s", check, error)
        return False
