"""The section of a regression's page that says how it was proved."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.alerts.kinds.payload import alert_payload
from dashboard.alerts.messages import compose_message
from dashboard.models import (
    Commit,
    Delivery,
    Experiment,
    ExperimentPair,
    Machine,
    Point,
    Regression,
    RegressionExperiment,
    Series,
)
from tests.dashboard import factories
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db
SPENT = {"code": "both answers possible", "pairs": 24, "seconds": 1200}


@pytest.fixture
def regression(suspected: Regression) -> Regression:
    return suspected


def create_proof(regression: Regression, verdict: str, purpose: str = "proof", **fields: Any) -> Experiment:
    values = {
        "state": "done",
        "ratio": 1.38,
        "low": 1.31,
        "high": 1.45,
        "machine": Machine.objects.first(),
        "seconds": 41,
        "finished_at": timezone.now(),
        "commands": ["git checkout abc && python -m paceline run snake_dqn"],
    }
    base, head = regression.last_good, regression.first_bad
    experiment = factories.create_experiment(
        regression, base, head, purpose, verdict=verdict, **(values | fields)
    )
    for index in range(4):
        ExperimentPair.objects.create(
            experiment=experiment,
            index=index,
            base_first=index % 2 == 0,
            base=0.010,
            head=0.0138,
            disturbed=index == 3,
            seconds=10,
        )
    return experiment


def weigh_series(experiment: Experiment, series: Series) -> None:
    """Let the experiment have been about this series of the regression."""
    Experiment.objects.filter(pk=experiment.pk).update(metric=series.metric, phase=series.phase)
    RegressionExperiment.objects.filter(experiment=experiment).update(series=series)


def get_page(client: Client, regression: Regression) -> str:
    return client.get(f"/regressions/{regression.pk}/").content.decode()


def test_a_cancelled_proof_takes_nothing_from_the_one_before(client: Client, regression: Regression) -> None:
    create_proof(regression, "confirmed")
    cancelled = create_proof(regression, "", state="cancelled", reason={"code": "joined"})
    assert "Confirmed by 3 pairs" in get_page(client, regression)
    assert "Not measured again" not in get_page(client, regression)
    Experiment.objects.exclude(pk=cancelled.pk).delete()
    assert "Not measured again" in get_page(client, regression)


def test_the_page_says_how_it_was_proved(client: Client, regression: Regression) -> None:
    row = create_proof(regression, "confirmed")
    shown = get_page(client, regression)
    assert f"Confirmed by 3 pairs of interleaved runs on {row.machine} in 41 s: +38 % [31, 45]." in shown
    assert 'id="figure-pairs"' in shown
    assert "no, disturbed" in shown
    assert "git checkout abc" in shown


def test_what_was_measured_is_named_where_the_title_is_of_another_series(
    client: Client, regression: Regression
) -> None:
    row = create_proof(regression, "confirmed")
    memory = builders.headline_series(regression.series.case, "peak_memory")
    weigh_series(row, memory)
    assert f"in 41 s: peak memory of {memory.case} +38 % [31, 45]." in get_page(client, regression)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("confirmed", "Step time of {} was confirmed by 3 pairs: +38 % [31, 45]."),
        ("refuted", "Step time of {} was refuted by 3 pairs: +38 % [31, 45]."),
        ("undecided", "Step time of {} stayed undecided."),
        ("", "Step time of {} is measured by pairs too."),
    ],
)
def test_what_pairs_say_of_another_series_is_told_beside_the_proof(
    client: Client, regression: Regression, verdict: str, expected: str
) -> None:
    memory, case = builders.headline_series(regression.series.case, "peak_memory"), regression.series.case
    sizes = {"ratio": 1.2, "low": 1.15, "high": 1.25}
    weigh_series(create_proof(regression, "confirmed", **sizes), memory)
    create_proof(regression, verdict, state="done" if verdict else "measuring")
    Regression.objects.update(state="confirmed", series=memory, **sizes)
    shown = get_page(client, regression)
    assert "in 41 s: +20 % [15, 25]. " + expected.format(case) in shown
    assert f"{verdict or 'measuring'}: step time of {case}" in shown


def test_a_refuted_time_beside_a_counter_is_told_as_such(client: Client, regression: Regression) -> None:
    create_proof(regression, "refuted", ratio=1.0, low=0.98, high=1.02)
    calls = builders.headline_series(regression.series.case, "function_calls")
    calls.exact = True
    calls.save()
    Regression.objects.update(state="confirmed", series=calls)
    shown = get_page(client, regression)
    assert "Exact counters need no second measurement: two runs of the same code give the same" in shown
    assert f"Step time of {regression.series.case} was refuted by 3 pairs: " in shown
    assert "Refuted by" not in shown


def test_the_caption_says_how_pairs_were_measured(client: Client, regression: Regression) -> None:
    row = create_proof(regression, "confirmed")
    assert "one after the other: circles measured the base first" in get_page(client, regression)
    Experiment.objects.filter(pk=row.pk).update(in_turns=True)
    assert "whose steps took turns, thirty times a second: circles began" in get_page(client, regression)


def test_the_phases_are_those_of_the_pairs(client: Client, regression: Regression) -> None:
    row = create_proof(regression, "confirmed")
    assert "In the run of each of the two commits" in get_page(client, regression)
    row.pairs.update(phases={"learn": [0.010, 0.0138], "act": [0.001, 0.0009]})
    shown = get_page(client, regression)
    good, bad = row.base_commit.short, row.head_commit.short
    assert f"In 3 pairs of interleaved runs of <code>{good}</code> and <code>{bad}</code>, medians" in shown
    assert re.search(r"<code>learn</code>.*\b10 ms.*13\.8 ms.*\+3\.80 ms.*102\.7 %", shown)
    assert re.search(r"<code>act</code>.*\u2212100 µs.*\u22122\.7 %", shown)


def test_a_step_has_one_size_and_points_that_differ_are_told(client: Client, regression: Regression) -> None:
    create_proof(regression, "confirmed")
    change = regression.changes.get(series=regression.series)
    Regression.objects.update(state="confirmed", ratio=1.38, low=1.31, high=1.45)
    for ratio, expected in ((1.38, False), (1.40, True), (1.55, True)):
        regression.changes.filter(pk=change.pk).update(ratio=ratio, low=1.2, high=1.7)
        shown = shown_text(client.get(f"/regressions/{regression.pk}/"))
        told = f"The points, measured at other hours, moved by +{100 * ratio - 100:.0f} %;" in shown
        assert told is expected
        # Everywhere else the step has one size.
        assert "headline snake_dqn[variant=optimized] worse +38 % [31, 45]" in shown


def test_a_refuted_one_says_what_the_pairs_show(client: Client, regression: Regression) -> None:
    create_proof(regression, "refuted", ratio=1.01, low=0.98, high=1.04)
    assert "they show +1.0 % [" in get_page(client, regression)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"state": "requested"}, "Waiting for a machine"),
        ({"state": "measuring", "activity": "pair 2, abc"}, "pair 2, abc"),
        ({"verdict": "undecided", "reason": SPENT}, "Undecided: after 24 pairs in 20 min the interval"),
        ({"state": "cancelled", "reason": {"code": "withdrawn"}}, "Not measured again: The regression was"),
    ],
)
def test_what_is_under_way_is_said(
    client: Client, regression: Regression, fields: dict[str, str], words: str
) -> None:
    create_proof(regression, fields.pop("verdict", ""), **fields)
    assert words in get_page(client, regression)


def page_of_experiment(client: Client, experiment: Experiment) -> str:
    return client.get(f"/experiments/{experiment.pk}/").content.decode()


def test_every_step_of_a_bisection_is_a_row(client: Client, regression: Regression) -> None:
    create_proof(regression, "confirmed")
    create_proof(regression, "none", purpose="bisection", ratio=1.0, low=0.98, high=1.02)
    for verdict in ("whole", "part", "untestable"):
        create_proof(regression, verdict, purpose="bisection")
    shown = get_page(client, regression)
    for words in ("has it", "doesn&#x27;t have it", "has a part of it", "doesn&#x27;t run"):
        assert words in shown


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.055, 1.068, "has a small part of"),
        (0.99, 1.068, "doesn&#x27;t have"),
        (0.93, 0.95, "doesn&#x27;t have"),
    ],
)
def test_a_commit_with_less_than_a_quarter_surely_has_that(
    client: Client, regression: Regression, low: float, high: float, words: str
) -> None:
    create_proof(regression, "confirmed")
    ratio = (low * high) ** 0.5
    step = create_proof(regression, "none", purpose="bisection", ratio=ratio, low=low, high=high)
    others = {"has a small part of", "doesn&#x27;t have"} - {words}
    pages = {"it": get_page(client, regression), "the step": page_of_experiment(client, step)}
    for where, shown in pages.items():
        assert f"{words} {where}" in shown
        assert not [other for other in others if f"{other} {where}" in shown]


def test_what_lies_in_the_past_is_not_proved(client: Client, regression: Regression) -> None:
    assert "found when history was judged again" in get_page(client, regression)


def test_exact_counters_need_none(client: Client, regression: Regression) -> None:
    Regression.objects.update(state=Regression.State.CONFIRMED)
    assert "Exact counters need no second measurement" in get_page(client, regression)


def test_it_says_which_way_a_bisection_took(client: Client, regression: Regression) -> None:
    found = {"code": "one of branch", "merge": "abc", "brought": 2, "count": 2, "suspects": ["d1", "d2"]}
    create_proof(regression, "confirmed")
    create_proof(regression, "none", purpose="bisection")
    create_proof(regression, "whole", purpose="merge")
    Regression.objects.update(bisection=found)
    shown = get_page(client, regression)
    assert "has it, on the merged branch" in shown
    assert "+38 % [31, 45]. It came by the merge abc, which brought 2 commits: it is one of d1, d2." in shown


def test_what_answered_often_for_others_is_said_to_be_unknown(client: Client, regression: Regression) -> None:
    """It has no experiment of its own."""
    answered = {"code": "answered", "times": 3, "commits": 1}
    Regression.objects.update(state="undecided", proving=False, bisection=answered)
    text = shown_text(client.get(f"/regressions/{regression.pk}/"))
    assert "Whether this commit has it isn't known: the pairs of its proof have answered 3 times" in text
    assert "it stayed undecided" in text


def test_it_names_another_branch(client: Client, regression: Regression) -> None:
    Commit.objects.filter(pk=regression.first_bad_id).update(branch="faster")
    assert "It is on the branch faster, which is judged against main" in get_page(client, regression)


@pytest.mark.parametrize(
    ("head", "low", "high", "words"),
    [
        (0.0101, 0.0099, 0.0103, "A step takes no measurably other time: +1.0 % ["),
        (0.0120, 0.0119, 0.0121, "Between the runs of the two commits a step's time moved by +20 % [18, 22]"),
    ],
)
def test_a_counter_alone_says_what_became_of_the_steps_time(
    client: Client, regression: Regression, head: float, low: float, high: float, words: str
) -> None:
    regression.changes.all().delete()
    for commit, values in (
        (regression.last_good, {"value": 0.01, "low": 0.0099, "high": 0.0101}),
        (regression.first_bad, {"value": head, "low": low, "high": high}),
    ):
        Point.objects.filter(series=regression.series, run__commit=commit).update(**values)
    assert words not in html.unescape(get_page(client, regression))
    calls = builders.headline_series(regression.series.case, "function_calls")
    calls.exact = True
    calls.save()
    Regression.objects.update(series=calls)
    assert words in html.unescape(get_page(client, regression))
    told = builders.create_delivery(Regression.objects.get())
    assert words in dict(compose_message(told).facts)["step time"]
    assert words in alert_payload(told)["step_time"]
    told.event = Delivery.Event.RECOVERED
    assert "step time" not in dict(compose_message(told).facts)
