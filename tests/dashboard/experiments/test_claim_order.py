"""The order in which experiments are claimed, as claims, the queue, the overview and the forecast have it."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from dashboard.models import Experiment, Project
from dashboard.querysets.claim_order import LONG_WAIT, MOST_OVERTAKING, take_turns
from dashboard.querysets.experiments import active_experiments
from dashboard.querysets.queue import begun_by_pool, waiting_experiments
from tests.dashboard import factories
from tests.dashboard.experiments.conftest import MakeExperiment, claim_held


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
    now = timezone.now()
    quiet = factories.create_project("boats")
    quiet.quiet_from, quiet.quiet_until = now - timedelta(hours=1), now + timedelta(hours=1)
    quiet.save()
    ask_before(proofs[1], 2 * LONG_WAIT)
    ask_before(proofs[0], 3 * LONG_WAIT)
    Experiment.objects.filter(pk=proofs[0].pk).update(project=quiet)
    claim_keys(MOST_OVERTAKING)
    assert waiting_experiments()[0].pk == proofs[1].pk
    assert claim_keys(1) == [proofs[1].pk]


@pytest.mark.parametrize("seed", range(5))
def test_turns_are_foretold_as_they_are_claimed(proofs: list[Experiment], seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    for row in dice.sample(proofs, 4):
        ask_before(row, LONG_WAIT + timedelta(hours=dice.randint(1, 99)))
    claimed = claim_keys(dice.randint(0, MOST_OVERTAKING))
    pool = proofs[0].head_configuration.pool_id
    foretold = take_turns(waiting_experiments(), begun_by_pool([pool])[pool], timezone.now())
    assert len(foretold) == 8 - len(claimed)
    assert claim_keys(len(foretold)) == keys_of(foretold)
