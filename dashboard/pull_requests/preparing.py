"""From a requested check to its experiments: the merge base, the cases that the head touches, the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from paceline.manifest import Benchmark, ManifestError, case_key

from dashboard import dispatch, experiments, outbox, repositories, runs
from dashboard.experiments import EstimateRequest, ExperimentDesign, ExperimentError, Side
from dashboard.experiments.sides import FoundSides, WantedCase, create_sides, usual_measurement
from dashboard.forges.errors import ForgeRefused
from dashboard.forges.forge import forge_of
from dashboard.models import Check, CheckedCase, Experiment, ForgeConnection, Metric, Project
from dashboard.pull_requests.answer import BASE_GONE
from dashboard.pull_requests.case_files import changed_paths, profiled_files
from dashboard.pull_requests.fetching_heads import fetch_head
from dashboard.pull_requests.selection import touched_cases
from dashboard.repositories import CommitFacts, Mirror, RepositoryBusy, RepositoryError, Unreachable

State = Check.State
METRIC = "step_time"
# Reasons by which a head can't be worse, and needs no measurement.
NOTHING_TOUCHED, ALREADY_MERGED = "nothing touched", "already merged"
# The chance that a check of identical commits says worse, whatever number of cases it has; below the floor
# it says so never.
CHECK_ERROR = 0.002
# Of the base against itself: what moves it by the floor would move the head too.
CONTROL_PAIRS = 6
CONTROL_ERROR = 0.01
# A case that gets less time than this tells nothing: the others get it.
LEAST_MINUTES = 1.0
# What can't be reached just now is tried again for so long.
TRY_AGAIN_FOR = timedelta(minutes=15)


class NotMeasurableError(Exception):
    """There is nothing to measure, or it can't be: a code with its values, and the cases left out."""

    def __init__(self, code: str, left_out: Sequence[dict[str, str]] = (), **values: Any) -> None:
        super().__init__(code)
        self.reason = {"code": code, **values}
        self.left_out = list(left_out)


@dataclass(frozen=True)
class CheckPlan:
    """The commits of both sides, the cases to measure, and those that are left out, with the code of why."""

    base: CommitFacts
    head: CommitFacts
    wanted: list[FoundSides]
    left_out: list[dict[str, str]]


def prepare_check(check_id: int, patience: float | None = None) -> None:
    """Ask for the experiments of a requested check, or end it with the reason why there are none.

    Safe to repeat. Raises Busy while another process fetches the repository, for longer than `patience`, in
    seconds.
    """
    check = Check.objects.select_related("project", "pull_request").filter(pk=check_id, state=State.REQUESTED)
    requested = check.first()
    if requested is None:
        return
    try:
        plan = make_plan(requested, patience)
    except RepositoryBusy as error:
        raise runs.Busy(str(error)) from error
    except NotMeasurableError as error:
        end_unmeasured(requested, error.reason, error.left_out)
    except (RepositoryError, ExperimentError) as error:
        if isinstance(error, Unreachable) and timezone.now() - requested.requested_at < TRY_AGAIN_FOR:
            return  # The sweep tries again.
        end_unmeasured(requested, {"code": "can't be measured", "text": str(error)})
    else:
        request_planned_experiments(requested, plan)


def end_unmeasured(check: Check, reason: dict[str, Any], left_out: Sequence[dict[str, str]] = ()) -> None:
    """The head changes nothing that is measured, or nothing can be known."""
    passes = reason["code"] in (NOTHING_TOUCHED, ALREADY_MERGED)
    with transaction.atomic():
        requested = Check.objects.filter(pk=check.pk, state=State.REQUESTED)
        ended = requested.update(
            state=State.DONE,
            answer=Check.Answer.NOT_WORSE if passes else Check.Answer.NOT_KNOWN,
            reason=reason,
            left_out=list(left_out),
            ended_at=timezone.now(),
        )
        if ended:
            outbox.enqueue_message(dispatch.PUBLISH_CHECK, check.pk)


def make_plan(check: Check, patience: float | None = None) -> CheckPlan:
    """Reads the repository, writes nothing."""
    project, mirror = check.project, check.project.mirror
    mirror.fetch(patience)
    bring_head(mirror, check, patience)
    onto = check.onto_hash or repositories.resolve_revision(mirror, f"refs/heads/{check.onto}")
    if not mirror.has_commit(onto):
        raise NotMeasurableError(BASE_GONE, commit=onto, onto=check.onto)
    found = repositories.merge_base(mirror, check.head_hash, onto)
    if found is None:
        raise NotMeasurableError("no merge base", onto=check.onto)
    if found == check.head_hash:
        raise NotMeasurableError(ALREADY_MERGED, onto=check.onto)
    base, head = repositories.read_commits(mirror, [found, check.head_hash])
    before, after = (read_manifest(project, mirror, facts) for facts in (base, head))
    paths = changed_paths(mirror, base.hash, head.hash)
    return choose_cases(check, CheckPlan(base, head, [], []), before, after, paths)


def bring_head(mirror: Mirror, check: Check, patience: float | None) -> None:
    """Have the head in the mirror, where no branch leads to that of a fork."""
    if mirror.has_commit(check.head_hash):
        return
    connection = ForgeConnection.objects.select_related("project").filter(project=check.project_id).first()
    number = check.pull_request.number if check.pull_request else None
    if connection is not None and number is not None:
        try:
            fetch_head(
                mirror, connection.repository, forge_of(connection).locate_head(number), number, patience
            )
        except ForgeRefused as error:
            raise NotMeasurableError("can't be measured", text=str(error)) from error
    if not mirror.has_commit(check.head_hash):
        raise NotMeasurableError("head is gone", head=check.head_hash)


def read_manifest(project: Project, mirror: Mirror, facts: CommitFacts) -> dict[str, Benchmark]:
    for _, manifest in runs.read_commit_manifests(project, mirror, [facts]):
        if isinstance(manifest, ManifestError):
            raise NotMeasurableError("can't be measured", text=str(manifest))
        return dict(manifest.benchmarks)
    raise NotMeasurableError("head is gone", head=facts.hash)


def choose_cases(
    check: Check,
    plan: CheckPlan,
    before: dict[str, Benchmark],
    after: dict[str, Benchmark],
    paths: Sequence[str],
) -> CheckPlan:
    """The cases of both commits that the changed files touch, as many as there are minutes for."""
    both, left_out = cases_of_both(before, after)
    if check.benchmarks:
        both = [case for case in both if case.benchmark.name in check.benchmarks]
    # What somebody asked for by name is measured whatever it touches.
    touched = dict.fromkeys(range(len(both)), "")
    if not check.benchmarks:
        names = [(case.benchmark.name, case_key(case.params)) for case in both]
        profiles = [profiled_files(check.project, *name) for name in names]
        touched = touched_cases(paths, dict(enumerate(profiles)))
    left_out += [
        {"case": str(case), "code": "not touched"} for index, case in enumerate(both) if index not in touched
    ]
    chosen = [both[index] for index in touched]
    if not chosen:
        code = NOTHING_TOUCHED if both else "no common case"
        # What nothing touches needs no list of all that isn't touched.
        told = [row for row in left_out if row["code"] != "not touched"]
        raise NotMeasurableError(code, told, files=len(paths))
    fitting = max(1, int(check.minutes / LEAST_MINUTES) - 1)
    left_out += [{"case": str(case), "code": "no time"} for case in chosen[fitting:]]
    request = EstimateRequest(base=plan.base.hash, quick=check.quick)
    wanted = [
        FoundSides(
            (plan.base, WantedCase(before[case.benchmark.name], case.params)),
            (plan.head, case),
            *usual_measurement(check.project, case, request),
        )
        for case in chosen[:fitting]
    ]
    return CheckPlan(plan.base, plan.head, wanted, left_out)


def cases_of_both(
    before: dict[str, Benchmark], after: dict[str, Benchmark]
) -> tuple[list[WantedCase], list[dict[str, str]]]:
    """The cases that both manifests have in the same version, and those that can't be compared."""
    both, left_out = [], []
    for name, benchmark in after.items():
        known = before.get(name)
        keys = {case.key for case in known.cases} if known else set()
        for case in benchmark.cases:
            wanted = WantedCase(benchmark, dict(case.params))
            if case_key(wanted.params) not in keys or known is None:
                left_out.append({"case": str(wanted), "code": "new"})
            elif known.version != benchmark.version:
                left_out.append({"case": str(wanted), "code": "another version"})
            else:
                both.append(wanted)
    for name, benchmark in before.items():
        left = {case.key for case in after[name].cases} if name in after else set()
        gone = [WantedCase(benchmark, dict(case.params)) for case in benchmark.cases if case.key not in left]
        left_out += [{"case": str(case), "code": "gone"} for case in gone]
    return both, left_out


def request_planned_experiments(check: Check, plan: CheckPlan) -> None:
    """Ask for one experiment of each case, and for one of the base against itself."""
    with transaction.atomic():
        locked = Check.objects.select_for_update().filter(pk=check.pk, state=State.REQUESTED).first()
        if locked is None:
            return
        metric, _ = Metric.objects.get_or_create(
            name=METRIC, better=Metric.Better.LOWER, defaults={"unit": "s", "kind": Metric.Kind.TIME}
        )
        minutes = check.minutes / (len(plan.wanted) + 1)
        sides = [create_sides(check.project, found) for found in plan.wanted]
        for index, (base, head) in enumerate(sides):
            request_case_experiment(locked, metric, base, head, minutes, CHECK_ERROR / len(sides))
            if index == 0:
                # Before the other cases: without it no time that is worse is told while these are measured.
                request_case_experiment(locked, metric, base, base, minutes, CONTROL_ERROR, is_control=True)
        locked.base_commit, locked.head_commit = base.commit, sides[0][1].commit
        locked.state, locked.left_out = State.MEASURING, plan.left_out
        locked.save(update_fields=["base_commit", "head_commit", "state", "left_out"])
        outbox.enqueue_message(dispatch.PUBLISH_CHECK, check.pk)


def request_case_experiment(
    check: Check,
    metric: Metric,
    base: Side,
    head: Side,
    minutes: float,
    error: float,
    *,
    is_control: bool = False,
) -> None:
    """Request the experiment of one case; few pairs are enough for the control, the base against itself."""
    design = ExperimentDesign(
        purpose=Experiment.Purpose.CHECK,
        question=Experiment.Question.BOUND,
        base=base,
        head=head,
        metric=metric,
        floor=check.floor,
        error=error,
        minutes=minutes,
        most_pairs=CONTROL_PAIRS if is_control else experiments.ESTIMATE_PAIRS,
        requested_by=check.requested_by,
    )
    experiment = experiments.request_experiment(check.project, design)
    CheckedCase.objects.create(
        of=check,
        configuration=head.configuration,
        experiment=experiment,
        is_control=is_control,
    )
