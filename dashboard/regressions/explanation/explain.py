"""What explains a step: phase, host or device, functions, tensor operations, and the lines that changed.

Read from rows, documents and the repository, outside the project's lock.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from dashboard import repositories
from dashboard.experiments.paired_phases import paired_phases
from dashboard.models import Experiment, Metric, Project
from dashboard.phases import sweeps
from dashboard.phases.paths import is_in_phase
from dashboard.regressions.decision.facts import Change, Series
from dashboard.regressions.decision.repair import lost_value
from dashboard.regressions.decision.requested_facts import Explanation, StepExplanation
from dashboard.regressions.explanation.changed_functions import TouchedFunctions
from dashboard.regressions.explanation.commit_difference import touched_functions
from dashboard.regressions.explanation.device_time import explain_on_device
from dashboard.regressions.explanation.excerpts import changed_lines
from dashboard.regressions.explanation.host_or_device import place_of_loss
from dashboard.regressions.explanation.phase_shares import (
    CLOCKED,
    PhaseShare,
    Sides,
    explain_by_phase,
    sides_of_step,
)
from dashboard.regressions.explanation.profiles import profile_of_level
from dashboard.regressions.explanation.slow_processes import find_slow_processes, phase_of_slow_rank
from dashboard.regressions.explanation.suspects import rank_suspects
from dashboard.regressions.explanation.tensor_operations import rank_operations
from dashboard.regressions.judged_rows import read_series
from dashboard.regressions.series.branch_line import BranchLine
from dashboard.regressions.series.history import load_history
from dashboard.repositories import RepositoryError

logger = logging.getLogger(__name__)

# Of more commits than this none is named as the one that changed a function.
MOST_COMPARED = 20


def explain_step(project: Project, line: BranchLine, request: Explanation) -> StepExplanation:
    """Which phase, functions and tensor operations a step comes from, by the runs on both sides of it."""
    change = request.change
    series = read_series(change.series.pk)
    sides = sides_of_step(change_at_proof(request), load_history(series, line))
    lost = lost_by_process(change)
    processes = find_slow_processes(change.series, sides, lost)
    share = explain_by_phase(change, sides, phases_of_experiment(request.experiment))
    share = phase_of_slow_rank(share, processes, lost)
    place, place_phase = place_of_loss(change.series, share.phase, sides, share.delta)
    explained = StepExplanation(share.phase, share.share, place, place_phase, slow_processes=tuple(processes))
    if not sides.good or not sides.bad:
        return explained
    touched = touched_functions(project, *request.difference)
    suspects, operations = rank_causes(change, sides, share, touched)
    if is_kept_elsewhere(change.series, share.phase, suspects):
        explained = replace(explained, phase="", phase_share=None)
    return replace(
        explained,
        suspects=tuple(suspects),
        operations=tuple(operations),
        device=explain_on_device(sides) if change.series.metric.kind in CLOCKED else {},
        excerpts=tuple(changed_lines(project, *request.difference, suspects)),
        only_changed_by=only_commit_that_changed(project, request, suspects),
    )


def change_at_proof(request: Explanation) -> Change:
    """The change, moved to its regression's commits where noise has placed it beside what pairs proved."""
    change, good, bad = request.change, request.good, request.bad
    between = change.range.bad > good.position and change.range.good < bad.position
    if between or change.first_bad.branch != bad.branch:
        return change
    return replace(change, last_good=good, first_bad=bad)


def phases_of_experiment(experiment: int | None) -> Mapping[str, float] | None:
    if experiment is None:
        return None
    row = Experiment.objects.select_related("metric").prefetch_related("pairs").get(pk=experiment)
    phases = paired_phases(row)
    return phases.deltas if phases else None


def rank_causes(
    change: Change, sides: Sides, share: PhaseShare, touched: TouchedFunctions
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Functions and tensor operations, from the profiles of two undisturbed runs next to the step."""
    before, after = profile_of_level(sides.good[::-1]), profile_of_level(sides.bad)
    kind, delta = change.series.metric.kind, lost_per_step(change)
    suspects = rank_suspects(
        before, after, touched, kind=kind, phase=share.phase, delta=delta, share=share.share
    )
    return suspects, rank_operations(before, after, kind=kind, phase=share.phase, delta=delta)


def is_kept_elsewhere(series: Series, phase: str, suspects: list[dict[str, Any]]) -> bool:
    """Whether memory grew in a phase that runs nothing of what was changed, while another phase does.

    An allocator takes new pages from the system wherever its free ones don't fit, seldom where something is
    kept: arrays of a few kilobytes that one phase keeps are seen to grow in the next that needs large ones.
    """
    suspect = suspects[0] if suspects else {}
    runs_in = suspect.get("phase", "")
    is_memory = series.metric.kind == Metric.Kind.MEMORY and suspect.get("changed", False)
    return bool(is_memory and phase and runs_in and not is_in_phase(runs_in, phase))


def lost_by_process(change: Change) -> float | None:
    """What was lost in seconds per step, or in bytes of memory; None where neither was."""
    if change.series.metric.name == "peak_memory":
        return change.after - change.before
    return lost_per_step(change) if change.series.metric.kind in CLOCKED else None


def lost_per_step(change: Change) -> float | None:
    """What was lost in seconds or in counts per step; None where the metric isn't one of a step's."""
    kind = change.series.metric.kind
    if kind not in (*CLOCKED, Metric.Kind.COUNTER) or sweeps.may_be_read_off_sweep(change.series):
        return None
    return lost_value(change)


def only_commit_that_changed(project: Project, request: Explanation, suspects: list[dict[str, Any]]) -> str:
    """Of commits that can't be told apart: the only one that changed the first suspect. No proof."""
    good, bad = request.good, request.bad
    suspect = suspects[0] if suspects else {}
    apart = (good.hash, bad.hash) == request.difference and bad.position - good.position >= 2
    if not suspect.get("changed") or not apart or not project.repository:
        return ""
    try:
        mirror = project.mirror
        line = [good.hash, *repositories.commits_between(mirror, good.hash, bad.hash, MOST_COMPARED)]
    except RepositoryError as error:
        logger.warning("Which commit of %s changed a suspect isn't known: %s", request.difference, error)
        return ""
    changing = [new for old, new in pairwise(line) if changes_function(project, old, new, suspect)]
    return changing[0] if len(changing) == 1 else ""


def changes_function(project: Project, old: str, new: str, suspect: Mapping[str, Any]) -> bool:
    """True where the commit `new` changes the function."""
    function = touched_functions(project, old, new).find(suspect["file"], suspect["function"], 0)
    return bool(function and function.changed)
