"""Changes that lie where driver, system or software changed, and that no commit asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboard.models import Change
from dashboard.regressions.changes import FoundChange
from dashboard.regressions.decision.requested_facts import (
    AsksForEnvironment,
    FactNotGathered,
    GatheredFacts,
)
from dashboard.regressions.facts_to_gather import FactsToGather
from dashboard.regressions.row_facts import commit_fact


def mark_environment_only(
    rows: Sequence[Change], at_new_environment: Mapping[int, FoundChange], facts: GatheredFacts
) -> None:
    """Mark the changes for which no commit is blamed, of those `at_new_environment`. Raises FactsToGather.

    A driver, a system or a harness never is the commits' doing. Torch, Python and packages are, if the
    commits touched a file that says what is installed.
    """
    missing = []
    for row in rows:
        found = at_new_environment.get(row.pk)
        try:
            environment_only = found is not None and not is_commits_doing(row, found, facts)
        except FactNotGathered as lacking:
            missing.append(lacking.request)
            continue
        if environment_only != row.environment_only:
            row.environment_only = environment_only
            row.save(update_fields=["environment_only"])
    if missing:
        raise FactsToGather(missing)


def is_commits_doing(row: Change, found: FoundChange, facts: GatheredFacts) -> bool:
    if found.system:
        return False
    return facts.answer_to(AsksForEnvironment(commit_fact(row.last_good), commit_fact(row.first_bad)))
