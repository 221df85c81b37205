"""Which changed functions explain what a check has found worse.

A longer step, more memory, less that is learned, or more that is counted: ranked as those of a regression of
the same kind are. Of a time the pairs tell the phase, in which they are looked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Q

from dashboard.models import Check, CheckedCase, Experiment
from dashboard.phases.paths import is_in_phase
from dashboard.pull_requests.case_evaluation import evaluate_case
from dashboard.pull_requests.report import EXPLAINED_KINDS, TIME, phase_causes
from dashboard.regressions.explanation.commit_difference import touched_functions
from dashboard.regressions.explanation.suspects import Profile, rank_suspects

MOST_SUSPECTS = 3


def explain_checked_case(experiment_id: int) -> None:
    """Keep the suspects of what a check's case has worse by now, once for each kind of metric.

    Reads the repository, so it is called outside of any lock. Safe to repeat.
    """
    # Each pair of an answered check proves it again: what else it shows is explained at its end.
    explained_later = Q(of__answer=Check.Answer.WORSE, experiment__state__in=Experiment.ACTIVE)
    rows = CheckedCase.objects.filter(~explained_later, experiment=experiment_id, is_control=False)
    related = rows.select_related("of__project", "configuration__case", "experiment__metric")
    row = related.prefetch_related("experiment__pairs").first()
    # Without profiles of both sides a host of an earlier release has measured.
    if row is None or not row.experiment.profiles:
        return
    known = row.experiment.profiles.get("suspects", {})
    worse = {bounded.metric.kind for bounded in evaluate_case(row).worse}
    kinds = sorted(kind for kind in worse if kind in EXPLAINED_KINDS and kind not in known)
    if kinds:
        keep_suspects(experiment_id, rank_by_kind(row, kinds))


def rank_by_kind(row: CheckedCase, kinds: list[str]) -> dict[str, list[dict[str, Any]]]:
    check, profiles = row.of, row.experiment.profiles
    before, after = (counted_profile(profiles.get(side)) for side in ("base", "head"))
    base = check.base_commit.hash if check.base_commit else ""
    touched = touched_functions(check.project, base, check.head_hash)
    found = {}
    for kind in kinds:
        phase = slowest_phase(row) if kind == TIME else ""
        ranked = rank_suspects(before, after, touched, kind=kind, phase=phase, delta=None)
        found[kind] = [suspect for suspect in ranked if is_possible(suspect, phase)][:MOST_SUSPECTS]
    return found


def slowest_phase(row: CheckedCase) -> str:
    """The one that explains most of what its pairs lost; empty where they don't tell."""
    return next((cause.phase for cause in phase_causes(row.experiment, "")), "")


def is_possible(suspect: Mapping[str, Any], phase: str) -> bool:
    """Whether it may have run in the phase: what only the diff has may have run anywhere."""
    return not suspect["phase"] or is_in_phase(suspect["phase"], phase)


def counted_profile(side: Profile | None) -> Profile | None:
    return side if side and side.get("functions") else None


def keep_suspects(experiment_id: int, found: dict[str, list[dict[str, Any]]]) -> None:
    with transaction.atomic():
        experiment = Experiment.objects.select_for_update().get(pk=experiment_id)
        known = experiment.profiles.get("suspects", {})
        experiment.profiles = {**experiment.profiles, "suspects": {**known, **found}}
        experiment.save(update_fields=["profiles"])
