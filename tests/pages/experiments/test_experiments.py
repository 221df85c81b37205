"""The list of a project's experiments, and one experiment."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from dashboard.models import Commit, Experiment, Run
from dashboard.sentences.formatting.numbers import MINUS
from tests.dashboard import factories
from tests.pages import builders
from tests.pages.conftest import shown_text
from tests.pages.experiment_builders import (
    build_profile,
    create_ended,
    create_experiment,
    get_configuration,
)

pytestmark = pytest.mark.django_db


# The list


def test_a_project_without_experiments_says_how_to_ask(client: Client, line: list[Commit]) -> None:
    shown = shown_text(client.get("/projects/snake/experiments/"))
    assert "No experiment was asked for yet." in shown
    assert "python manage.py experiment snake main~1 main --wait" in shown


def test_a_line_says_what_was_asked_and_answered(client: Client, line: list[Commit]) -> None:
    ada = User.objects.create_user("ada")
    row = create_ended(line, requested_by=ada)
    response = client.get("/projects/snake/experiments/")
    shown = shown_text(response)
    assert "Step time +38 % [37, 39]: worse." in shown
    assert f"{line[-1].short} against {line[0].short} walker[fast=true] ada 6 (1)" in shown
    assert f'href="/experiments/{row.pk}/"' in response.content.decode()


def test_the_list_is_filtered_by_its_address(client: Client, line: list[Commit]) -> None:
    done = create_ended(line)
    waiting = create_experiment(line, purpose="script")
    cancelled = create_experiment(line, state="cancelled", reason={"code": "cancelled", "person": "ada"})

    def listed(query: str) -> set[int]:
        page = client.get(f"/projects/snake/experiments/?{query}").content.decode()
        return {int(key) for key in re.findall(r"/experiments/(\d+)/", page)}

    assert listed("") == {done.pk, waiting.pk, cancelled.pk}
    assert listed("state=active") == {waiting.pk}
    assert listed("state=done") == {done.pk}
    assert listed("state=cancelled&purpose=person") == {cancelled.pk}
    assert listed("purpose=script") == {waiting.pk}
    assert "No experiment is done and of that kind." in shown_text(
        client.get("/projects/snake/experiments/?state=done&purpose=script")
    )


@pytest.mark.parametrize("query", ["state=lost", "purpose=fun"])
def test_a_filter_that_nothing_has_is_refused(client: Client, line: list[Commit], query: str) -> None:
    assert client.get(f"/projects/snake/experiments/?{query}").status_code == 400


def test_a_long_list_has_pages(client: Client, line: list[Commit]) -> None:
    rows = [create_experiment(line, state="done", verdict="undecided") for _ in range(45)]
    first, second = (
        client.get(f"/projects/snake/experiments/?state=done&page={page}").content.decode() for page in (1, 2)
    )
    assert (first.count('class="one"'), second.count('class="one"')) == (40, 5)
    assert f"/experiments/{rows[0].pk}/" in second
    assert "?state=done&amp;page=2" in first


def test_experiments_are_named_where_work_is(client: Client, line: list[Commit]) -> None:
    row = create_experiment(line)
    builders.create_measured_run(line[0], builders.create_case(line[0].project), 0.001)
    for where in ("/", "/projects/snake/experiments/", "/work/?seen=1"):
        assert f'href="/experiments/{row.pk}/"' in client.get(where).content.decode(), where
    assert 'href="/projects/snake/experiments/"' in client.get("/projects/snake/runs/").content.decode()


# One experiment


def test_an_answer_stands_on_top_with_its_evidence(client: Client, line: list[Commit]) -> None:
    ada = User.objects.create_user("ada")
    row = create_ended(line, requested_by=ada)
    response = client.get(row.get_absolute_url())
    page, shown = response.content.decode(), shown_text(response)
    assert shown.index("Step time +38 % [37, 39]: worse.") < shown.index("Pairs")
    for text in (
        "Asked by ada",
        "Machine gpu-1",
        "Pairs 6 of at most 400, 5 undisturbed",
        "Time 1 min 12 s of 20 min",
        "Precision ±1.0 %, wanted ±1 %",
        "Chance of error at most 1.0 %",
        "learn 4 ms 7.80 ms +3.80 ms",
        "push replay.py 1 256 1 ms 5 ms +4 ms",
        "Medians of 5 undisturbed pairs",
        "git checkout abc && measure <it>",
        f"python manage.py experiment snake {line[0].short} {line[-1].short}",
    ):
        assert text in shown, text
    assert 'data-copies="command"' in page
    assert 'data-copies="commands"' in page
    assert "hx-get" not in page
    figure = json.loads(re.search(r'id="figure-pairs">(.*?)</script>', page)[1])  # type: ignore[index]
    drawn = next(trace for trace in figure["data"] if trace.get("name") == "pairs")
    assert drawn["marker"]["symbol"].count("circle-open") == 1


def compared_address(client: Client, experiment: Experiment) -> str:
    """Empty where its page offers no comparison."""
    page = client.get(experiment.get_absolute_url()).content.decode()
    found = re.search(r'href="([^"]+)">Compare their stored runs', page)
    return unescape(found[1]) if found else ""


def test_stored_runs_are_compared_once_both_sides_have_them(client: Client, line: list[Commit]) -> None:
    experiment = create_ended(line)
    case = experiment.base_configuration.case
    others = builders.create_case(line[0].project, "other")
    for commit in (line[0], line[-1]):
        builders.create_measured_run(commit, others, 0.001)
    builders.create_measured_run(line[0], case, 0.001)
    assert compared_address(client, experiment) == ""
    builders.create_measured_run(line[-1], case, 0.001)
    assert client.get(compared_address(client, experiment)).status_code == 200


def test_runs_of_two_cases_are_compared_where_pool_and_windows_are_one(
    client: Client, line: list[Commit]
) -> None:
    slow, fast = (get_configuration(line[0], fast=value) for value in ("false", "true"))
    at_one = {"base_commit": line[0], "head_commit": line[0]}
    toggle = create_ended(line, base_configuration=slow, head_configuration=fast, **at_one)
    alike = create_ended(line, base_configuration=fast, head_configuration=fast, **at_one)
    builders.create_measured_run(line[0], slow.case, 0.001)
    run = builders.create_measured_run(line[0], fast.case, 0.001)
    assert client.get(compared_address(client, toggle)).status_code == 200
    assert compared_address(client, alike) == ""
    run.configuration = get_configuration(line[0], quick=True, fast="true")
    run.save()
    assert compared_address(client, toggle) == ""


def test_the_deviation_of_a_pair_stands_below_the_pairs(client: Client, line: list[Commit]) -> None:
    experiment = create_ended(line)
    told = "to prove a difference of 1 % takes about"
    assert told not in shown_text(client.get(experiment.get_absolute_url()))
    for pair in experiment.pairs.all():
        pair.head *= 1 + pair.index / 200
        pair.save()
    assert told in shown_text(client.get(experiment.get_absolute_url()))


def test_functions_that_do_not_differ_are_left_out(client: Client, line: list[Commit]) -> None:
    shown = shown_text(client.get(create_ended(line).get_absolute_url()))
    assert " same replay.py" not in shown


FAR = {
    "code": "precision not reached",
    "reached": 0.76,
    "wanted": 0.01,
    "calm": 5,
    "pairs": 77,
    "seconds": 120,
}
FEW = {"code": "too few pairs", "calm": 1, "pairs": 6, "seconds": 72}
NOTHING_KNOWN = {"low": None, "high": None}
PROOF = {"purpose": "proof", "question": "test"}
CRASHED = {"code": "side failed", "text": "abc: train.py crashed."}
BY_ADA = {"code": "cancelled", "person": "ada"}


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        (
            {"ratio": 0.999, "low": 0.988, "high": 1.010},
            f"No difference of step time larger than 1.2 %: {MINUS}0.1 % [{MINUS}1.2, 1.0].",
        ),
        (
            {"ratio": 1.53, "low": 0.87, "high": 2.7, "reason": FAR},
            f"Too uncertain to tell whether step time differs: +53 % [{MINUS}13, 170].",
        ),
        (
            {"ratio": 0.8, "low": 0.79, "high": 0.81},
            f"Step time {MINUS}20 % [{MINUS}21, {MINUS}19]: better.",
        ),
        (
            {"ratio": 1.0, "low": 1.0, "high": 1.0},
            "No difference of step time: both sides count the same.",
        ),
        (
            {**NOTHING_KNOWN, "verdict": "undecided", "reason": FEW},
            "Undecided: only 1 of 6 pairs was undisturbed.",
        ),
        ({"verdict": "untestable", "reason": CRASHED}, "It can't be measured: abc: train.py crashed."),
        ({"state": "cancelled", "verdict": "", "reason": BY_ADA}, "Cancelled by ada."),
        ({**PROOF, "verdict": "confirmed"}, "Confirmed: step time +38 % [37, 39]."),
        (
            {**PROOF, "verdict": "refuted", "before": 1.0, "after": 2.0},
            "Refuted: step time +38 % [37, 39], where +100 % was suspected.",
        ),
    ],
)
def test_an_answer_is_one_sentence(
    client: Client, line: list[Commit], fields: dict[str, Any], answer: str
) -> None:
    assert f" {answer} " in shown_text(client.get(create_ended(line, **fields).get_absolute_url()))


def test_what_has_no_ratio_is_told_in_its_unit(client: Client, line: list[Commit]) -> None:
    nothing = {"ratio": 1.0, "low": None, "high": None}
    difference = {"difference": 12_300.0, "difference_low": 10_100.0, "difference_high": 14_500.0}
    row = create_ended(line, metric="memory_growth", **nothing, **difference)
    Experiment.objects.update(ratio=None)
    row.pairs.update(base=0, ratio=None, low=None, high=None)
    response = client.get(row.get_absolute_url())
    assert "Memory growth +12.3 kB/1000 steps [10.1, 14.5] kB/1000 steps: worse." in shown_text(response)
    assert "head minus base, " in response.content.decode()


def test_an_estimate_that_ran_out_of_budget_says_so(client: Client, line: list[Commit]) -> None:
    reason = {"code": "precision not reached", "reached": 0.031, "wanted": 0.01, "pairs": 24, "seconds": 1200}
    shown = shown_text(client.get(create_ended(line, reason=reason).get_absolute_url()))
    assert "After 24 pairs in 20 min it is known to ±3.1 %, not to the ±1 % that was asked for." in shown


def test_a_toggle_names_what_differs(client: Client, line: list[Commit]) -> None:
    head = get_configuration(line[0], fast="false")
    row = create_ended(line, head_commit=line[0], head_configuration=head)
    shown = shown_text(client.get(row.get_absolute_url()))
    assert f"Base {line[0].short} {line[0].subject} fast=true" in shown
    assert f"Head {line[0].short} {line[0].subject} fast=false" in shown
    command = f"python manage.py experiment snake {line[0].short} --toggle fast=false --case"
    assert (
        f"{command} 'walker[fast=true]' --precision 1% --minutes 20 --pool default --no-quick --wait" in shown
    )


def test_a_regressions_experiment_links_to_it_and_back(client: Client) -> None:
    regression = builders.create_stepped_regression()
    row = factories.create_ended_experiment(
        regression, "confirmed", regression.last_good, regression.first_bad, ratio=1.4, low=1.3, high=1.5
    )
    page = client.get(row.get_absolute_url()).content.decode()
    assert f'href="/regressions/{regression.pk}/"' in page
    assert f'href="/experiments/{row.pk}/"' in client.get(f"/regressions/{regression.pk}/").content.decode()


def test_functions_of_a_proof_are_those_of_the_runs_of_its_commits(client: Client) -> None:
    regression = builders.create_stepped_regression()
    good, bad = (Run.objects.get(commit=commit) for commit in (regression.last_good, regression.first_bad))
    for run, calls in ((good, 1), (bad, 256)):
        run.document.body["profile"]["functions"] = build_profile(calls, 0.001)["functions"]
        run.document.save()
    row = factories.create_ended_experiment(regression, "confirmed", good.commit, bad.commit)
    shown = shown_text(client.get(row.get_absolute_url()))
    assert "push replay.py 1 256 1 ms 1 ms 0" in shown
    assert f"taken from the runs of the two commits # {good.pk} and # {bad.pk}".replace("# ", "#") in shown
    good.document.delete()
    assert "The functions of base weren't counted in any run of the same commit." in shown_text(
        client.get(row.get_absolute_url())
    )


# While it runs


def test_an_active_experiment_asks_for_itself(client: Client, line: list[Commit]) -> None:
    row = create_experiment(line, state="measuring", activity="pair 1, both sides in turn")
    Experiment.objects.update(machine=builders.create_machine("gpu-1"))
    page = client.get(row.get_absolute_url()).content.decode()
    assert f'hx-get="/experiments/{row.pk}/status/?pairs=0&amp;profiled=no"' in page
    assert "Being measured: too few pairs to tell yet." in page
    assert "They are counted before the first pair." in page


def test_a_waiting_experiment_says_what_it_waits_for(client: Client, line: list[Commit]) -> None:
    row = create_experiment(line)
    assert "No active machine of this pool was seen in the last minute" in shown_text(
        client.get(row.get_absolute_url())
    )
    builders.create_machine("gpu-1")
    assert "its turn comes once a machine is free" in shown_text(client.get(row.get_absolute_url()))


def test_another_pair_brings_the_result_anew(client: Client, line: list[Commit]) -> None:
    row = create_ended(line, state="measuring", verdict="", activity="pair 7")
    where = f"/experiments/{row.pk}/status/"
    same = client.get(f"{where}?pairs=6&profiled=yes").content.decode()
    assert ("hx-swap-oob" in same, "Pair 7" in same) == (False, True)
    changed = client.get(f"{where}?pairs=5&profiled=yes").content.decode()
    assert changed.count("hx-swap-oob") == 2
    assert "So far: step time +38 % [37, 39]: worse." in changed
    assert 'id="figure-pairs"' in changed
    assert f"{where}?pairs=6&amp;profiled=yes" in changed


def test_the_end_brings_the_whole_page(client: Client, line: list[Commit]) -> None:
    row = create_ended(line)
    assert client.get(f"/experiments/{row.pk}/status/?pairs=6")["HX-Refresh"] == "true"


# Ending and asking again


def test_a_person_cancels_what_people_asked_for(signed_in: Client, line: list[Commit]) -> None:
    row = create_experiment(line)
    assert "Cancel this experiment" in signed_in.get(row.get_absolute_url()).content.decode()
    signed_in.post(f"/experiments/{row.pk}/cancel/")
    row.refresh_from_db()
    assert (row.state, row.reason) == ("cancelled", {"code": "cancelled", "person": "ada"})


def test_what_a_regression_asked_for_is_not_cancelled_by_hand(signed_in: Client) -> None:
    regression = builders.create_stepped_regression()
    row = factories.create_experiment(regression, regression.last_good, regression.first_bad)
    assert "Cancel this experiment" not in signed_in.get(row.get_absolute_url()).content.decode()
    answer = signed_in.post(f"/experiments/{row.pk}/cancel/", follow=True)
    assert "triage the regression to end it" in shown_text(answer)
    row.refresh_from_db()
    assert row.state == "requested"


def test_what_has_ended_stays_as_it_is(signed_in: Client, line: list[Commit]) -> None:
    row = create_ended(line)
    assert "had already ended" in shown_text(signed_in.post(f"/experiments/{row.pk}/cancel/", follow=True))
    row.refresh_from_db()
    assert row.state == "done"


def test_only_who_may_request_runs_cancels_and_asks(client: Client, line: list[Commit]) -> None:
    row = create_experiment(line)
    addresses = (f"/experiments/{row.pk}/cancel/", "/projects/snake/experiments/new/")
    for address in addresses:
        assert client.post(address).url.startswith("/sign-in/")  # type: ignore[attr-defined]
    assert client.get(addresses[1]).url.startswith("/sign-in/")  # type: ignore[attr-defined]
    viewer = User.objects.create_user("bob")
    client.force_login(viewer)
    for answer in (client.post(addresses[0]), client.get(addresses[1]), client.post(addresses[1])):
        assert answer.status_code == 403
        assert "You can view snake but not act in it" in shown_text(answer)
    row.refresh_from_db()
    assert (row.state, Experiment.objects.count()) == ("requested", 1)
    assert "Ask again" not in client.get(create_ended(line).get_absolute_url()).content.decode()
    viewer.user_permissions.add(Permission.objects.get(codename="add_trigger"))
    client.post(addresses[0])
    row.refresh_from_db()
    assert row.state == "cancelled"


@pytest.mark.parametrize("where", ["/experiments/{}/cancel/", "/projects/snake/experiments/new/"])
def test_a_form_of_another_site_changes_nothing(line: list[Commit], operator: User, where: str) -> None:
    row = create_experiment(line)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator)
    assert strict.post(where.format(row.pk)).status_code == 403
    assert not Experiment.objects.exclude(state="requested").exists()


def test_a_get_neither_cancels_nor_asks(signed_in: Client, line: list[Commit]) -> None:
    row = create_experiment(line)
    assert signed_in.get(f"/experiments/{row.pk}/cancel/")["Location"] == f"/experiments/{row.pk}/"
    assert signed_in.get("/projects/snake/experiments/new/?base=a&head=b").status_code == 200
    assert Experiment.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"precision": 0.1}, "it is known to ±4.4 %, as precisely as was asked for"),
        (
            {"precision": 0.01, "range_low": 1.2, "range_high": 1.6},
            "its whole interval lies within what agrees with the claim, +20 % to +60 %, so that the ±1 % "
            "that was asked for was not needed",
        ),
        (
            {"precision": 0.01, "range_high": 0.8},
            "its whole interval lies outside of what agrees with the claim, \u221220 % or less, so that",
        ),
        ({"low": 1.38, "high": 1.38}, "both sides repeat exactly"),
    ],
)
def test_an_estimate_says_why_it_ended(
    client: Client, line: list[Commit], fields: dict[str, float], why: str
) -> None:
    made = create_ended(line, **({"low": 1.32, "high": 1.44, "seconds": 180} | fields))
    shown = client.get(made.get_absolute_url()).content.decode()
    assert re.search(rf"It ended after \d+ pairs in 3 min: {re.escape(why)}", shown)


def test_what_has_a_reason_has_no_other_ending(client: Client, line: list[Commit]) -> None:
    reason = {"code": "precision not reached", "reached": 0.05, "wanted": 0.01, "pairs": 4, "seconds": 9}
    made = create_ended(line, low=1.32, high=1.44, precision=0.01, reason=reason)
    assert "It ended after" not in client.get(made.get_absolute_url()).content.decode()
