"""The section of a regression's page that says how it was proved."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import Commit, Confirmation, Machine, Pair, Regression
from tests.pages import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def regression(db: None) -> Regression:
    return builders.create_stepped_regression()


def create_confirmation(regression: Regression, verdict: str, **fields: object) -> Confirmation:
    values = {
        "purpose": "confirm",
        "good": regression.last_good,
        "bad": regression.first_bad,
        "state": "done",
        "ratio": 1.38,
        "low": 1.31,
        "high": 1.45,
    }
    row = Confirmation.objects.create(
        regression=regression,
        series=regression.series,
        pool=regression.series.pool,
        before=regression.before,
        after=regression.after,
        machine=Machine.objects.first(),
        verdict=verdict,
        seconds=41,
        finished_at=timezone.now(),
        commands=["git checkout abc && python -m paceline run snake_dqn"],
        **(values | fields),
    )
    for index in range(4):
        Pair.objects.create(
            confirmation=row,
            index=index,
            good_first=index % 2 == 0,
            good=0.010,
            bad=0.0138,
            disturbed=index == 3,
            seconds=10,
        )
    return row


def get_page(client: Client, regression: Regression) -> str:
    return client.get(f"/regressions/{regression.pk}/").content.decode()


def test_the_page_says_how_it_was_proved(client: Client, regression: Regression) -> None:
    row = create_confirmation(regression, "confirmed")
    shown = get_page(client, regression)
    assert f"Confirmed by 3 pairs of interleaved runs on {row.machine} in 41 s: +38 % [31, 45]." in shown
    assert 'id="figure-pairs"' in shown
    assert "no, disturbed" in shown
    assert "git checkout abc" in shown


def test_what_was_measured_is_named_where_the_title_is_of_another_series(
    client: Client, regression: Regression
) -> None:
    row = create_confirmation(regression, "confirmed")
    memory = builders.headline_series(regression.series.case, "peak_memory")
    Confirmation.objects.filter(pk=row.pk).update(series=memory)
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
    own = {"series": memory, "ratio": 1.2, "low": 1.15, "high": 1.25}
    proof = Confirmation.objects.filter(pk=create_confirmation(regression, "confirmed").pk)
    proof.update(**own)
    create_confirmation(regression, verdict, state="done" if verdict else "measuring")
    Regression.objects.update(state="confirmed", **own)
    shown = get_page(client, regression)
    assert "in 41 s: +20 % [15, 25]. " + expected.format(case) in shown
    assert f"{verdict or 'measuring'}: step time of {case}" in shown


def test_a_refuted_time_beside_a_counter_is_told_as_such(client: Client, regression: Regression) -> None:
    create_confirmation(regression, "refuted", ratio=1.0, low=0.98, high=1.02)
    calls = builders.headline_series(regression.series.case, "function_calls")
    calls.exact = True
    calls.save()
    Regression.objects.update(state="confirmed", series=calls)
    shown = get_page(client, regression)
    assert "Exact counters need no second measurement: two runs of the same code give the same" in shown
    assert f"Step time of {regression.series.case} was refuted by 3 pairs: " in shown
    assert "Refuted by" not in shown


def test_the_caption_says_how_pairs_were_measured(client: Client, regression: Regression) -> None:
    row = create_confirmation(regression, "confirmed")
    assert "one after the other: circles measured the good one first" in get_page(client, regression)
    Confirmation.objects.filter(pk=row.pk).update(in_turns=True)
    assert "whose steps took turns, thirty times a second: circles began" in get_page(client, regression)


def test_the_phases_are_those_of_the_pairs(client: Client, regression: Regression) -> None:
    row = create_confirmation(regression, "confirmed")
    assert "In the run of each of the two commits" in get_page(client, regression)
    row.pairs.update(phases={"learn": [0.010, 0.0138], "act": [0.001, 0.0009]})
    shown = get_page(client, regression)
    good, bad = row.good.short, row.bad.short
    assert f"In 3 pairs of interleaved runs of <code>{good}</code> and <code>{bad}</code>, medians" in shown
    assert re.search(r"<code>learn</code>.*\b10 ms.*13\.8 ms.*\+3\.80 ms.*102\.7 %", shown)
    assert re.search(r"<code>act</code>.*\u2212100 µs.*\u22122\.7 %", shown)


def test_points_that_contradict_the_pairs_are_told(client: Client, regression: Regression) -> None:
    create_confirmation(regression, "confirmed")
    change = regression.changes.get(series=regression.series)
    Regression.objects.update(state="confirmed", ratio=1.38, low=1.31, high=1.45)
    for ratio, low, high, expected in (
        (1.40, 1.2, 1.6, False),
        (1.55, 1.2, 1.7, True),  # outside the pairs' interval
        (1.44, 1.4, 1.48, True),  # without the pairs' size in theirs
    ):
        regression.changes.filter(pk=change.pk).update(ratio=ratio, low=low, high=high)
        sentence = f"The series&#x27; points, measured at other hours, moved by +{100 * ratio - 100:.0f} %."
        assert (sentence in get_page(client, regression)) is expected


def test_a_refuted_one_says_what_the_pairs_show(client: Client, regression: Regression) -> None:
    create_confirmation(regression, "refuted", ratio=1.01, low=0.98, high=1.04)
    assert "they show +1.0 % [" in get_page(client, regression)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"state": "requested"}, "Waiting for a machine"),
        ({"state": "measuring", "activity": "pair 2, bad commit abc"}, "pair 2, bad commit abc"),
        ({"verdict": "undecided", "reason": "after 24 pairs"}, "Undecided: after 24 pairs."),
        ({"state": "cancelled", "reason": "The regression was withdrawn."}, "Not measured again"),
    ],
)
def test_what_is_under_way_is_said(
    client: Client, regression: Regression, fields: dict[str, str], words: str
) -> None:
    create_confirmation(regression, fields.pop("verdict", ""), **fields)
    assert words in get_page(client, regression)


def test_every_step_of_a_bisection_is_a_row(client: Client, regression: Regression) -> None:
    create_confirmation(regression, "confirmed")
    for verdict in ("good", "bad", "between", "untestable"):
        create_confirmation(regression, verdict, purpose="bisect")
    shown = get_page(client, regression)
    for words in ("has it", "doesn&#x27;t have it", "has a part of it", "doesn&#x27;t run"):
        assert words in shown


def test_what_lies_in_the_past_is_not_create_confirmation(client: Client, regression: Regression) -> None:
    assert "found when history was judged again" in get_page(client, regression)


def test_exact_counters_need_none(client: Client, regression: Regression) -> None:
    Regression.objects.update(state=Regression.State.CONFIRMED)
    assert "Exact counters need no second measurement" in get_page(client, regression)


def test_it_says_which_way_a_bisection_took(client: Client, regression: Regression) -> None:
    create_confirmation(regression, "confirmed")
    create_confirmation(regression, "good", purpose="bisect")
    create_confirmation(regression, "bad", purpose="branch")
    Regression.objects.update(bisected="It came by the merge abc, which brought 2 commits.")
    shown = get_page(client, regression)
    assert "has it, on the merged branch" in shown
    assert "+38 % [31, 45]. It came by the merge abc, which brought 2 commits." in shown


def test_it_names_another_branch(client: Client, regression: Regression) -> None:
    Commit.objects.filter(pk=regression.first_bad_id).update(branch="faster")
    assert "It is on the branch faster, which is judged against main" in get_page(client, regression)
