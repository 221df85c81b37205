"""The transitions of an experiment: requested, measuring, done, cancelled. Its lease is that of all work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from dashboard import dispatch, leases, sentinels
from dashboard.experiments.assignment import RELATED, assignment_of, counts_again
from dashboard.experiments.counted_sides import join_profiles
from dashboard.experiments.interleaving import can_take_turns_by_documents, can_take_turns_by_runs
from dashboard.experiments.learning import can_evaluate_unreported, evaluate_learning, pair_columns
from dashboard.experiments.precedence import must_yield, order_claimable
from dashboard.experiments.single_steps import RATIOS, can_evaluate_steps, compare_newest, compare_phase
from dashboard.experiments.verdicts import evaluate_experiment, median_base
from dashboard.host_protocol import CountedAnswer, ExperimentAssignment, Lease, PairMeasured
from dashboard.leases import LeaseLost
from dashboard.models import Experiment, ExperimentPair, Machine, Pool
from dashboard.policy.quiet_projects import quiet_projects
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter

Question = Experiment.Question
State = Experiment.State
Verdict = Experiment.Verdict

# Instead of a verdict: somebody waits, and it goes on after that.
YIELDED = "yielded"
REQUESTED_AGAIN = {"machine": None}
GIVEN_UP = {
    "state": State.DONE,
    "verdict": Verdict.UNDECIDED,
    "reason": {"code": "lost", "attempts": Experiment.MOST_ATTEMPTS},
}
GIVEN_UP_HELD = {**GIVEN_UP, "reason": {"code": "held too long", "attempts": Experiment.MOST_ATTEMPTS}}
MOST_TEXT = 2000

_KEY: Any = Parameter("key")
_TOKEN: Any = Parameter("token")
_CLAIMED_EXPERIMENT = CompiledQuery(lambda: Experiment.objects.select_related(*RELATED).filter(pk=_KEY))
_LOCKED_EXPERIMENT = CompiledQuery(
    lambda: (
        leases.renewable_job(Experiment, Lease(_KEY, 0, _TOKEN))
        .select_related("metric", "machine")
        .select_for_update(of=("self",))
    )
)
_PAIRS = CompiledQuery(
    lambda *read: ExperimentPair.objects.filter(experiment=Parameter("experiment")).only(*read)
)


def claim_experiment(pool: str, machine: str) -> ExperimentAssignment | None:
    """Take the requested experiment of a pool whose turn it is.

    None where none waits, or their projects' share of time is spent.
    """
    with transaction.atomic():
        holder = Machine.objects.filter(name=machine, pool__name=pool).first()
        if holder is None:
            return None
        key = leases.claim_first(
            order_claimable(holder), state=State.MEASURING, machine=holder, measuring_at=Now()
        )
        if key is None:
            return None
        (experiment,) = _CLAIMED_EXPERIMENT.read_rows(key=key)
        if not experiment.profiles:  # Else their documents say so.
            experiment.in_turns = can_take_turns_by_runs(experiment)
            experiment.save(update_fields=["in_turns"])
        sentinels.measure_beside(experiment.head_configuration, holder)
        return assignment_of(experiment)


def heartbeat_experiment(lease: Lease, activity: str = "") -> bool:
    """Renew the lease and show what it is doing. False: no longer ours, stop."""
    shown = {"activity": activity[:200]} if activity else {}
    return leases.renew_lease(Experiment, lease, **shown)


def add_pair(lease: Lease, pair: PairMeasured, commands: Sequence[str] = ()) -> str:
    """Keep a pair and evaluate all so far; the verdict ends the experiment. Empty: another pair is wanted.

    YIELDED where one is wanted later, since somebody waits for the machine. Raises LeaseLost. The pair's
    index makes it safe to repeat: what is there already isn't added again.
    """
    with transaction.atomic():
        experiment = _lock_experiment(lease)
        if pair.unreported and not can_evaluate_unreported(experiment):
            side = "head" if pair.head is None else "base"
            failed = {"code": "side failed", "text": f"{experiment.metric} isn't reported by the {side}."}
            conclude_experiment(lease, Verdict.UNTESTABLE, failed, pair.seconds)
            return str(Verdict.UNTESTABLE)
        values = pair_columns(experiment, pair)
        row, new = ExperimentPair.objects.get_or_create(
            experiment=experiment, index=values.pop("index"), defaults=values
        )
        experiment.seconds += pair.seconds if new else 0.0
        experiment.commands = experiment.commands or list(commands)
        weighs_steps = can_evaluate_steps(experiment)
        pairs = _PAIRS.read_rows(*columns_to_read(experiment, weighs_steps), experiment=experiment.pk)
        kept = keep_ratios(experiment, pairs, row.pk) if weighs_steps else {}
        result = evaluate_experiment(experiment, pairs, experiment.seconds)
        ExperimentPair.objects.filter(pk=row.pk).update(**kept, **result.columns)
        Experiment.objects.filter(pk=experiment.pk).update(
            seconds=experiment.seconds,
            commands=experiment.commands,
            lease_until=leases.lease_end(),
            learning=evaluate_learning(experiment, pairs),
            by_steps=result.by_steps,
            base_level=median_base(pairs),
            **result.columns,
        )
        if result.surely_worse and not result.verdict:
            # Whoever asked for it needn't wait until all of it is known.
            dispatch.send_task(dispatch.PROVED_WORSE, lease.key)
        if result.verdict:
            conclude_experiment(lease, result.verdict, result.reason)
        elif must_yield(experiment):
            # It keeps its machine, which so knows whose turn it was.
            leases.release_jobs(leases.held_job(Experiment, lease), {})
            return YIELDED
        return result.verdict


def columns_to_read(experiment: Experiment, weighs_steps: bool) -> tuple[str, ...]:
    """What the verdict reads of the pairs, all of which are read anew after each: nothing else."""
    weighs_others = experiment.question == Question.BOUND or experiment.metric.is_quality
    steps = ("index", "base_first", "typical_phases" if experiment.phase else "steps", *RATIOS)
    return (
        *("base", "head", "disturbed", "unreported"),
        *(("others",) if weighs_others else ()),
        *(("phases",) if experiment.phases_with_step else ()),
        *(steps if weighs_steps else ()),
    )


def keep_ratios(
    experiment: Experiment, pairs: Sequence[ExperimentPair], added: int
) -> dict[str, float | None]:
    """What the pair that was added keeps of its single steps, which go with the verdict."""
    newest = next(pair for pair in pairs if pair.pk == added)
    if experiment.phase:
        compare_phase(experiment, newest)
    else:
        compare_newest(newest, [pair for pair in pairs if pair.index < newest.index and not pair.disturbed])
    return {name: getattr(newest, name) for name in RATIOS}


def keep_profiles(
    lease: Lease, documents: Mapping[str, Mapping[str, Any]], seconds: float, repetition: str = ""
) -> CountedAnswer:
    """Keep what both sides counted, in a repetition of each that took so many seconds together.

    The documents of both, `base` and `head`, also tell whether their steps can be measured in turn. A side
    whose document is empty left none. Raises LeaseLost. `repetition` tells it from others, which makes it
    safe to repeat: what was counted once is no proof that it repeats.
    """
    with transaction.atomic():
        experiment = _lock_experiment(lease)
        if not repetition or experiment.profiles.get("repetition") != repetition:
            bounds = experiment.question == Question.BOUND
            experiment.profiles = join_profiles(experiment.profiles, documents, with_counters=bounds)
            experiment.profiles |= {"repetition": repetition} if repetition else {}
            experiment.seconds += seconds
            if all(documents.values()):
                experiment.in_turns = can_take_turns_by_documents(experiment, list(documents.values()))
            experiment.save(update_fields=["profiles", "seconds", "in_turns"])
    return CountedAnswer(experiment.in_turns, counts_again(experiment))


def conclude_experiment(
    lease: Lease,
    verdict: str,
    reason: Mapping[str, Any] | None = None,
    seconds: float = 0.0,
) -> None:
    """End an experiment with its verdict; on commit, whoever asked for it goes on. Raises LeaseLost.

    `seconds` of the machine's time were spent on what isn't kept.
    """
    shortened = {name: _shorten_text(value) for name, value in (reason or {}).items()}
    with transaction.atomic():
        held = leases.held_job(Experiment, lease)
        ended = {"verdict": Verdict(verdict), "reason": shortened, "seconds": F("seconds") + seconds}
        if not leases.end_job(held, State.DONE, **ended):
            raise _lease_lost(lease)
        drop_steps([lease.key])
        dispatch.send_task(dispatch.EXPERIMENT_ENDED, lease.key)


def drop_steps(ended: Sequence[int]) -> None:
    """Of experiments that have ended: steps were read after each pair, and are by far the most of it."""
    over = Experiment.objects.filter(pk__in=ended, state__in=Experiment.TERMINAL)
    ExperimentPair.objects.filter(experiment__in=over).exclude(steps={}).update(steps={})


def cancel_experiments(experiments: QuerySet[Experiment], reason: Mapping[str, Any]) -> int:
    """End experiments that haven't ended; a holder learns of it at its next heartbeat. How many."""
    keys = list(experiments.filter(state__in=Experiment.ACTIVE).values_list("pk", flat=True))
    if not keys:
        return 0
    active = Experiment.objects.filter(pk__in=keys, state__in=Experiment.ACTIVE)
    cancelled = leases.end_job(active, State.CANCELLED, reason=dict(reason))
    drop_steps(keys)
    return cancelled


def requeue_lost_experiments() -> int:
    """Request again what lost its holder, or was held for too long, with the pairs that it has; or give it up
    as undecided.

    How many.
    """
    overdue = Experiment.objects.filter(Experiment.IS_OVERDUE)
    held_too_long = _send_ended(*leases.requeue_jobs(overdue, REQUESTED_AGAIN, GIVEN_UP_HELD))
    return held_too_long + _send_ended(*leases.requeue_lost(Experiment, REQUESTED_AGAIN, GIVEN_UP))


def requeue_held_experiments(machine: str) -> int:
    """As `requeue_lost_experiments`, at once, what a machine held that has died and is back. How many."""
    held = Experiment.objects.filter(machine__name=machine)
    return _send_ended(*leases.requeue_jobs(held, REQUESTED_AGAIN, GIVEN_UP))


def _send_ended(again: list[int], given_up: list[int]) -> int:
    drop_steps(given_up)
    for key in given_up:
        dispatch.send_task(dispatch.EXPERIMENT_ENDED, key)
    return len(again) + len(given_up)


def release_experiments(machine: str) -> int:
    """Request again, at once, what a machine held when somebody ended its agent; that costs no attempt.

    How many.
    """
    return leases.release_machine(Experiment, machine, REQUESTED_AGAIN)


def sweep_experiments() -> None:
    """Give up lost holders, and wake the pools for whose machines experiments wait."""
    requeue_lost_experiments()
    startable = Experiment.objects.filter(state=State.REQUESTED).exclude(project__in=quiet_projects())
    waiting = Pool.objects.filter(pk__in=startable.values("head_configuration__pool"))
    for name in waiting.values_list("name", flat=True):
        # While a machine measures, each sweep would leave one more.
        if dispatch.count_waiting_messages(name) == 0:
            dispatch.wake_workers(name)


def _lock_experiment(lease: Lease) -> Experiment:
    held: list[Experiment] = _LOCKED_EXPERIMENT.read_rows(key=lease.key, token=lease.token)
    if not held:
        raise _lease_lost(lease)
    return held[0]


def _lease_lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"Experiment {lease.key} is no longer attempt {lease.attempt}'s.")


def _shorten_text(value: Any) -> Any:
    return value[:MOST_TEXT] if isinstance(value, str) else value
