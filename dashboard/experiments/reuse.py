"""An experiment whose pairs another one has measured, of commits that hold the same code for its case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from dashboard.environments import (
    UNKNOWN,
    RunEnvironments,
    shared_system_differences,
    software_differences,
    system_differences,
)
from dashboard.experiments.learning import evaluate_learning, lost_sides
from dashboard.experiments.requests import Side
from dashboard.experiments.single_steps import RATIOS
from dashboard.experiments.verdicts import ExperimentResult, evaluate_experiment, median_base
from dashboard.host_protocol.messages import PACE
from dashboard.models import Experiment, ExperimentPair, Metric, Run

Question = Experiment.Question


@dataclass(frozen=True, slots=True)
class SuspectedStep:
    """A step of a metric from one level to another, in its unit, that pairs are asked about.

    `error`: the chance of a false verdict that is allowed. `phases_with_step` show it alone.
    """

    metric: Metric
    before: float
    after: float
    error: float
    phases_with_step: Sequence[str] = ()


def is_outdated(measured: Experiment) -> bool:
    """Whether its pairs might say something else now, of the same commits.

    Its machine has another driver, kernel, processor or harness since, or its case other devices there; or
    one of its commits was measured since with other packages. All are read off runs; what no run had shown by
    then isn't known to differ.
    """
    of_machine = Run.objects.filter(machine=measured.machine_id)
    if shared_system_differences(*_environments_since(of_machine, measured)):
        return True
    of_case = of_machine.filter(configuration=measured.base_configuration_id)
    if system_differences(*_environments_since(of_case, measured)):
        return True
    sides = (
        (measured.base_commit_id, measured.base_configuration_id),
        (measured.head_commit_id, measured.head_configuration_id),
    )
    return any(
        software_differences(
            *_environments_since(Run.objects.filter(commit=commit, configuration=configuration), measured)
        )
        for commit, configuration in sides
    )


def _environments_since(runs: QuerySet[Run], measured: Experiment) -> list[Mapping[str, Any]]:
    """The environments of the last of these runs that ended before the experiment did, and of the newest;
    unknown both where no run tells of two times.

    As they were measured: of a history that is measured late each run was requested long before. What was
    posted no machine of this site has measured.
    """
    done = runs.filter(state=Run.State.DONE, machine__isnull=False, environment__isnull=False)
    done = done.order_by("-claimed_at", "-pk")
    keys = done.values_list("pk", flat=True)
    before, newest = keys.filter(finished_at__lte=measured.finished_at).first(), keys.first()
    if before is None or newest is None or before == newest:
        return [UNKNOWN, UNKNOWN]
    environments = RunEnvironments()
    environments.read_runs([before, newest])
    return [environments.of_run(before), environments.of_run(newest)]


def evaluate_suspected_step(
    measured: Experiment, step: SuspectedStep
) -> tuple[ExperimentResult, list[ExperimentPair]]:
    """What an experiment's pairs say of a suspected step, with the pairs; no verdict where they don't tell.

    The pairs were measured before anybody suspected it, and their interval holds whenever one looks: it
    costs no more than pairs that were asked for. Another metric than the one that was weighed is read off
    what the same pairs measured beside it.
    """
    test = _test_of_step(step)
    test.in_turns = measured.in_turns
    pairs = pairs_of_metric(measured, step.metric)
    if step.metric.name == measured.metric.name:
        for pair in pairs:
            # It was counted as the step that was suspected when they were measured.
            for side in lost_sides(pair):
                setattr(pair, side, step.after)
    return evaluate_experiment(test, pairs, 0.0), pairs


def _test_of_step(step: SuspectedStep) -> Experiment:
    """As a proof asks, without an end: there are no more pairs than there are."""
    return Experiment(
        question=Question.TEST,
        metric=step.metric,
        before=step.before,
        after=step.after,
        error=step.error,
        phases_with_step=list(step.phases_with_step),
        most_pairs=10_000,
        most_seconds=math.inf,
    )


def pairs_of_metric(measured: Experiment, metric: Metric) -> list[ExperimentPair]:
    """Its pairs with the values of a metric, as rows that nobody has saved; those without are left out."""
    copies, same = [], metric.name == measured.metric.name
    for pair in measured.pairs.all():
        values: Mapping[str, Any] | None = {"base": pair.base, "head": pair.head}
        if not same:
            values = pair.others.get(metric.name)
        if metric.is_quality and pair.seed is None:
            # All its pairs have one seed, which may be an unlucky one.
            continue
        if values is not None:
            copies.append(
                ExperimentPair(
                    index=pair.index,
                    base_first=pair.base_first,
                    base=values["base"],
                    head=values["head"],
                    disturbed=pair.disturbed,
                    seconds=0.0,
                    phases=pair.phases,
                    typical_phases=pair.typical_phases,
                    **{name: getattr(pair, name) for name in RATIOS if same},
                    others=_others_beside(measured, pair, metric),
                    seed=pair.seed,
                    unreported=pair.unreported,
                )
            )
    return copies


def _others_beside(measured: Experiment, pair: ExperimentPair, metric: Metric) -> dict[str, Any]:
    """What the pair measured beside a metric: with the step's time, where that was weighed."""
    if not metric.is_quality or measured.metric.name != PACE:
        return dict(pair.others)
    own = measured.metric
    time = {"unit": own.unit, "better": own.better, "kind": own.kind, "base": pair.base, "head": pair.head}
    return {**pair.others, PACE: time}


def reuse_experiment(
    measured: Experiment, purpose: str, base: Side, head: Side, step: SuspectedStep, reason: Mapping[str, Any]
) -> Experiment:
    """Keep the verdict of an experiment's pairs on a step between two other commits."""
    result, pairs = evaluate_suspected_step(measured, step)
    now = timezone.now()
    experiment = Experiment.objects.create(
        project=measured.project,
        purpose=purpose,
        question=Question.TEST,
        base_commit=base.commit,
        head_commit=head.commit,
        base_configuration=base.configuration,
        head_configuration=head.configuration,
        metric=step.metric,
        before=step.before,
        after=step.after,
        error=step.error,
        phases_with_step=list(step.phases_with_step),
        most_pairs=measured.most_pairs,
        most_seconds=measured.most_seconds,
        pairs_of=measured,
        state=Experiment.State.DONE,
        verdict=result.verdict,
        reason={**result.reason, **reason},
        machine=measured.machine,
        in_turns=measured.in_turns,
        commands=measured.commands,
        profiles=measured.profiles,
        requested_at=now,
        finished_at=now,
        learning=evaluate_learning(_test_of_step(step), pairs),
        by_steps=result.by_steps,
        base_level=median_base(pairs),
        **result.columns,
    )
    _keep_pairs(experiment, pairs)
    return experiment


def _keep_pairs(experiment: Experiment, pairs: Sequence[ExperimentPair]) -> None:
    """With what each and those before it say together."""
    for count, pair in enumerate(pairs, start=1):
        pair.experiment = experiment
        for name, value in evaluate_experiment(experiment, pairs[:count], 0.0).columns.items():
            setattr(pair, name, value)
    ExperimentPair.objects.bulk_create(pairs)
