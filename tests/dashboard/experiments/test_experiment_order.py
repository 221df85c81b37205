"""The order in which experiments are claimed, as claims, the queue, the overview and the forecast have it."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from dashboard import experiments
from dashboard.experiments.precedence import order_claimable
from dashboard.experiments.transitions import YIELDED
from dashboard.models import Experiment, Machine, Project
from dashboard.pages.queue import longest_by_pool
from dashboard.pages.queue_forecast import in_turn
from dashboard.querysets.experiment_order import LONG_WAIT, MOST_OVERTAKING
from dashboard.querysets.experiments import active_experiments
from dashboard.querysets.queue import begun_by_pool, waiting_experiments
from tests.dashboard import factories
from tests.dashboard.experiments.conftest import MakeExperiment, claim_held, measured_pair


@pytest.fixture
def proofs(make_experiment: MakeExperiment, project: Project) -> list[Experiment]:
    """Of eight neighbouring commits, the oldest first, all asked for just now."""
    line = factories.create_commits(project, 9, first=100)
    return [make_experiment(base_commit=line[at], head_commit=line[at + 1]) for at in range(8)]


def ask_before(row: Experiment, wait: timedelta) -> None:
    """Let it have waited so long."""
    Experiment.objects.filter(pk=row.pk).update(requested_at=Now() - wait)


def claim_keys(count: int) -> list[int]:
    return [claim_held().lease.key for _ in range(count)]


def keys_of(rows: list[Experiment]) -> list[int]:
    return [row.pk for row in rows]


def hold_longest_in_quiet_hours(proofs: list[Experiment]) -> None:
    """The first has waited longest and its project is quiet now; the second has waited next to longest."""
    now = timezone.now()
    quiet = factories.create_project("boats")
    quiet.quiet_from, quiet.quiet_until = now - timedelta(hours=1), now + timedelta(hours=1)
    quiet.save()
    ask_before(proofs[1], 2 * LONG_WAIT)
    ask_before(proofs[0], 3 * LONG_WAIT)
    Experiment.objects.filter(pk=proofs[0].pk).update(project=quiet)


def foretell_claims() -> list[int]:
    """What the queue's page says of the order in which they will be claimed."""
    now, waiting = timezone.now(), waiting_experiments()
    pool = waiting[0].head_configuration.pool_id
    begun = begun_by_pool(longest_by_pool(waiting, now))
    return [row.pk for row in in_turn(waiting, begun.get(pool, ()), now) if isinstance(row, Experiment)]


def test_what_has_waited_for_days_is_overtaken_three_times(proofs: list[Experiment]) -> None:
    ask_before(proofs[1], 2 * LONG_WAIT)
    ask_before(proofs[0], 3 * LONG_WAIT)
    newest = keys_of(proofs[:1:-1])
    expected = [*newest[:3], proofs[0].pk, *newest[3:6], proofs[1].pk]
    assert claim_keys(8) == expected


def test_what_has_waited_for_less_than_a_day_comes_last(proofs: list[Experiment]) -> None:
    ask_before(proofs[0], LONG_WAIT - timedelta(minutes=1))
    assert claim_keys(8) == keys_of(proofs[::-1])


def test_lists_name_whose_turn_it_is_first(proofs: list[Experiment]) -> None:
    ask_before(proofs[0], 2 * LONG_WAIT)
    claim_keys(MOST_OVERTAKING)
    expected = keys_of([proofs[0], *proofs[4:0:-1]])
    assert keys_of(waiting_experiments()) == expected
    waiting = [row.pk for row in active_experiments(Project.objects.all()) if row.state == "requested"]
    assert waiting == expected


def test_what_somebody_waits_for_overtakes_nothing(
    proofs: list[Experiment], make_experiment: MakeExperiment
) -> None:
    ask_before(proofs[0], 2 * LONG_WAIT)
    for index in range(MOST_OVERTAKING):
        asked = make_experiment(question="estimate", metric="throughput", precision=0.01 + index / 100)
        assert claim_keys(1) == [asked.pk]
        Experiment.objects.filter(pk=asked.pk).update(state="done")
    assert claim_keys(1) == [proofs[-1].pk]


def test_in_quiet_hours_the_next_one_has_the_turn(
    proofs: list[Experiment], make_experiment: MakeExperiment
) -> None:
    hold_longest_in_quiet_hours(proofs)
    claim_keys(MOST_OVERTAKING)
    assert waiting_experiments()[0].pk == proofs[1].pk
    assert claim_keys(1) == [proofs[1].pk]


@pytest.mark.parametrize("seed", range(5))
def test_turns_are_foretold_as_they_are_claimed(proofs: list[Experiment], seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    for row in dice.sample(proofs, 4):
        ask_before(row, LONG_WAIT + timedelta(hours=dice.randint(1, 99)))
    claimed = claim_keys(dice.randint(0, MOST_OVERTAKING))
    foretold = foretell_claims()
    assert len(foretold) == 8 - len(claimed)
    assert claim_keys(len(foretold)) == foretold


def test_what_gives_way_keeps_its_turn(proofs: list[Experiment], make_experiment: MakeExperiment) -> None:
    ask_before(proofs[0], 2 * LONG_WAIT)
    claim_keys(MOST_OVERTAKING)
    held = claim_held()
    assert held.lease.key == proofs[0].pk
    asked = make_experiment(question="estimate", metric="throughput")
    assert experiments.add_pair(held.lease, measured_pair(0, 1.0, 1.4)) == YIELDED
    waiting = [row.pk for row in active_experiments(Project.objects.all()) if row.state == "requested"]
    assert waiting == keys_of(waiting_experiments()) == keys_of([asked, proofs[0], *proofs[4:0:-1]])
    assert claim_keys(2) == [asked.pk, proofs[0].pk]


def test_what_begins_again_overtakes_once(proofs: list[Experiment]) -> None:
    ask_before(proofs[0], 2 * LONG_WAIT)
    claim_keys(1)
    for _ in range(MOST_OVERTAKING):
        Experiment.objects.filter(pk=proofs[7].pk).update(state="requested")
        foretold = foretell_claims()
        assert claim_keys(1) == [proofs[7].pk] == foretold[:1]
    assert claim_keys(3) == keys_of([proofs[6], proofs[5], proofs[0]]) == foretold[1:4]


def test_quiet_hours_foretell_no_turn(proofs: list[Experiment]) -> None:
    hold_longest_in_quiet_hours(proofs)
    claim_keys(2)
    foretold = [key for key in foretell_claims() if key != proofs[0].pk]
    assert claim_keys(5) == foretold == keys_of([proofs[5], proofs[1], *proofs[4:1:-1]])


def test_what_began_last_is_found_by_its_index(proofs: list[Experiment], machine: Machine) -> None:
    """However many experiments there have been: of few rows the plan would be another one."""
    with connection.cursor() as cursor:
        for name in ("enable_seqscan", "enable_bitmapscan", "enable_sort"):
            cursor.execute(f"SET LOCAL {name} = off")
    plan = order_claimable(machine).explain()
    assert plan.count("Index Scan Backward using experiment_begun") == MOST_OVERTAKING
