from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard import regressions
from dashboard.models import Check, CheckedCase, Commit, Experiment
from dashboard.pull_requests import sentences
from dashboard.pull_requests.receiving import COMMAND
from dashboard.pull_requests.report import read_report
from tests.pages import builders
from tests.pages.check_builders import (
    count_sides,
    create_check,
    create_pull_request,
    grow_memory,
    measure_case,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def line() -> list[Commit]:
    return builders.create_commits(builders.create_project("snakes"), 2)


@pytest.fixture
def worse(line: list[Commit]) -> Check:
    """A pull request's, that is 38 % slower."""
    check = create_check(line, create_pull_request(line), answer="worse")
    measure_case(check, line, 1.38, verdict="worse")
    measure_case(check, [line[0], line[0]], 1)
    return check


def page_of(client: Client, check: Check) -> str:
    return client.get(check.get_absolute_url()).content.decode()


def test_the_page_says_what_is_worse_and_where_it_comes_from(client: Client, worse: Check) -> None:
    page = page_of(client, worse)
    assert "Worse: step time +38 % [37, 38] in walker[fast=true]." in page
    assert "learn explains 100 % of it" in page
    assert "replay.py:push: 256 calls a step instead of 1" in page
    assert "Sample &lt;faster&gt;" in page


def test_pairs_of_the_head_are_not_those_of_the_base_against_itself(client: Client, worse: Check) -> None:
    report = read_report(worse)
    assert (report.pairs, report.control_pairs, report.disturbed) == (12, 12, 0)
    for row in worse.cases.all():
        row.experiment.pairs.update(disturbed=True)
    Check.objects.update(answer="not known", ended_at=timezone.now())
    page = page_of(client, worse)
    assert "<dd>12 pairs on gpu-1, 12 disturbed by other work</dd>" in page
    assert 'too few undisturbed pairs <span class="muted nowrap">of 12 measured</span>' in page
    CheckedCase.objects.filter(is_control=False).delete()
    assert "<dd>0 pairs on gpu-1</dd>" in page_of(client, worse)


def test_a_function_is_not_named_by_what_two_profiles_differ_by_chance(worse: Check) -> None:
    row = worse.cases.get(is_control=False)
    base, head = (row.experiment.profiles[side]["functions"][0] for side in ("base", "head"))
    assert head["self"] == 5 * base["self"]
    base["calls"] = head["calls"]
    row.experiment.save()
    assert sentences.cause_sentences(read_report(worse)) == ["learn explains 100 % of it"]


def test_what_several_cases_have_says_which(worse: Check) -> None:
    report = read_report(worse)
    other = replace(report.rows[0], case="runner")
    phase, counted = report.causes
    causes = [phase, replace(phase, case="runner"), counted]
    assert sentences.cause_sentences(replace(report, rows=[*report.rows, other], causes=causes)) == [
        "learn explains 100 % of it, in walker[fast=true] and runner",
        "replay.py:push: 256 calls a step instead of 1, in walker[fast=true]",
    ]


def test_without_a_pull_request_nobody_is_sent_to_its_comments(client: Client, worse: Check) -> None:
    assert "intended: here, or by a comment that says /paceline intended" in page_of(client, worse)
    Check.objects.update(pull_request=None)
    assert "Repair it, or say that it is intended.</p>" in page_of(client, worse)


def test_what_is_counted_has_no_pairs(client: Client, line: list[Commit]) -> None:
    """It counts before the time is known, and what is the same on both sides takes no row."""
    check = create_check(line, create_pull_request(line), answer="worse")
    row = measure_case(check, line, 1.0001)
    count_sides(row, scalar_reads=(2, 3), function_calls=(100, 100), graph_breaks=(0, 0))
    regressions.explain_checked_case(row.experiment_id)
    page = page_of(client, check)
    assert "Worse: scalar reads +1 reads/step in walker[fast=true]." in page
    assert "Scalar reads: replay.py:push is called 256 times per step instead of 1" in page
    assert "As often on both sides: function calls, graph breaks." in page
    assert page.count(">counted</span>") == 1
    assert "| Scalar reads | +1 reads/step | worse |" in sentences.comment_markdown(read_report(check))


def test_a_counter_that_was_counted_too_seldom_is_named(client: Client, line: list[Commit]) -> None:
    check = create_check(line, create_pull_request(line), answer="not worse")
    row = measure_case(check, line, 1.0001, verdict="not worse")
    count_sides(row, often=2, scalar_reads=(2, 3), graph_breaks=(0, 0))
    page = page_of(client, check)
    assert "walker[fast=true] seems to differ in scalar reads, which can't be proved" in html.unescape(page)
    assert "true\\] seems to differ in scalar reads, which" in sentences.comment_markdown(read_report(check))
    assert "As often on both sides: graph breaks." in page


def test_a_counter_that_varies_on_the_merge_base_is_neither_shown_nor_explained(line: list[Commit]) -> None:
    check = create_check(line, create_pull_request(line), answer="not worse")
    row = measure_case(check, line, 1.0001)
    count_sides(row, scalar_reads=(2, 3))
    regressions.explain_checked_case(row.experiment_id)
    assert [cause.metric for cause in read_report(check).causes] == ["scalar_reads"]
    control = measure_case(check, [line[0], line[0]], 1)
    count_sides(control, scalar_reads=(2, 3))
    report = read_report(check)
    assert "scalar_reads" not in {shown.bounded.metric.name for shown in report.rows}
    assert report.causes == []


def test_the_command_that_repeats_it_asks_for_the_same(client: Client, worse: Check) -> None:
    assert "--minutes" not in page_of(client, worse)
    Check.objects.update(minutes=7.5, quick=True, benchmarks=["walker"], onto="release 2")
    asked = "--onto &#x27;release 2&#x27; --benchmark walker --minutes 7.5 --quick --wait"
    assert asked in page_of(client, worse)


def measure_busy(check: Check, line: list[Commit]) -> CheckedCase:
    """Twelve pairs in turns whose windows differ by far more than their steps."""
    row = measure_case(check, line, 1.006)
    row.experiment.in_turns = row.experiment.by_steps = True
    row.experiment.save()
    for pair in row.experiment.pairs.all():
        pair.head *= 1.024 if pair.index % 4 < 2 else 0.976
        pair.step_ratio, pair.kinds_ratio, pair.kinds_error = 1.005 + 0.001 * (pair.index % 3), 1.0, 0.0
        pair.save()
    return row


def test_single_steps_tell_the_same_everywhere(client: Client, line: list[Commit]) -> None:
    check = create_check(line, create_pull_request(line), answer="not worse")
    row = measure_busy(check, line)
    report = read_report(check)
    (told,) = (shown.bounded for shown in report.rows if shown.bounded.by_steps)
    change = sentences.change_text(told)
    page = page_of(client, check)
    assert (told.verdict, "by single steps" in page, change in page) == ("not worse", True, True)
    assert change in sentences.comment_markdown(report)
    answered = client.get(f"/api/v1/checks/{check.pk}").json()["rows"]
    assert [shown["change"] for shown in answered if shown["values"]["by_steps"]] == [change]
    assert (
        "in turns, measured by single steps"
        in client.get(f"/experiments/{row.experiment_id}/").content.decode()
    )
    row.experiment.pairs.update(step_ratio=None)
    assert "not known" in page_of(client, check)


def test_a_person_without_the_right_sees_no_button(client: Client, worse: Check) -> None:
    assert 'value="intended"' not in page_of(client, worse)
    client.force_login(User.objects.create_user("ada"))
    client.post(f"/checks/{worse.pk}/change/", {"action": "intended"})
    worse.refresh_from_db()
    assert worse.intended_by == ""


def test_what_is_intended_passes(signed_in: Client, worse: Check) -> None:
    assert sentences.status_state(worse) == "failure"
    signed_in.post(f"/checks/{worse.pk}/change/", {"action": "intended"})
    worse.refresh_from_db()
    assert sentences.status_state(worse) == "success"
    assert f"Intended, says {worse.intended_by}." in page_of(signed_in, worse)


def test_the_very_head_is_approved(signed_in: Client, line: list[Commit]) -> None:
    check = create_check(line, create_pull_request(line, is_fork=True), state="waiting")
    assert f"Let {check.head_hash[:10]} run" in page_of(signed_in, check)
    wrong = signed_in.post(
        f"/checks/{check.pk}/change/", {"action": "approve", "head": "0" * 40}, follow=True
    )
    assert "not of 0000000000" in wrong.content.decode()
    signed_in.post(f"/checks/{check.pk}/change/", {"action": "approve", "head": check.head_hash})
    check.refresh_from_db()
    assert (check.state, bool(check.approved_by)) == ("requested", True)


def test_it_is_cancelled_and_run_again(signed_in: Client, line: list[Commit]) -> None:
    check = create_check(line, create_pull_request(line), state="requested")
    signed_in.post(f"/checks/{check.pk}/change/", {"action": "cancel"})
    check.refresh_from_db()
    assert check.state == "cancelled"
    answer = signed_in.post(f"/checks/{check.pk}/change/", {"action": "again"})
    assert answer.headers["Location"] == Check.objects.latest("pk").get_absolute_url()
    assert Check.objects.count() == 2


def test_a_page_of_many_checks_asks_no_more_often(client: Client, line: list[Commit]) -> None:
    for number in range(12):
        create_check(line, create_pull_request(line, number + 1))
    page = client.get("/projects/snakes/checks/").content.decode()
    assert len(re.findall(r'href="/checks/\d+/"', page)) == 12


def test_the_comment_has_fifteen_visible_lines_at_most(worse: Check) -> None:
    text = sentences.comment_markdown(read_report(worse))
    folded = re.sub(r"<details>.*?</details>", "<details>", text, flags=re.DOTALL)
    shown = [row for row in folded.splitlines() if row and not row.startswith("<!--")]
    assert len(shown) <= 15
    assert text.startswith(sentences.comment_marker(worse))
    assert "| walker\\[fast=true\\] | Step time | +38 % [37, 38] | worse |" in text
    assert "1 more row not worse" in text
    assert f"[The whole check](http://127.0.0.1:8000/checks/{worse.pk}/)" in text


def test_folded_rows_say_what_is_known_of_them(line: list[Commit]) -> None:
    check = create_check(line, create_pull_request(line), answer="not known")
    row = measure_case(check, line, 1.001)
    assert "2 more rows not worse<" in sentences.comment_markdown(read_report(check))
    row.experiment.pairs.filter(index__gt=1).delete()
    assert "2 more rows not known<" in sentences.comment_markdown(read_report(check))


def test_the_base_against_itself_is_named(client: Client, line: list[Commit]) -> None:
    check = create_check(line, create_pull_request(line), state="measuring")
    head = measure_case(check, line, 1.38, state="measuring", verdict="")
    control = measure_case(check, [line[0], line[0]], 1, state="requested", verdict="")
    said = "Being measured: walker[fast=true]. Waiting for a machine: the merge base against itself."
    assert said in page_of(client, check)
    Experiment.objects.filter(pk=head.experiment_id).update(state="done")
    assert "Being measured: walker" not in page_of(client, check)
    Experiment.objects.filter(pk=control.experiment_id).update(state="measuring")
    assert "Being measured: the merge base against itself.</p>" in page_of(client, check)


def test_the_page_says_what_is_proved_while_the_rest_is_measured(
    client: Client, signed_in: Client, line: list[Commit]
) -> None:
    reason = {"code": "proved", "case": "walker[fast=true]", "metric": "peak_memory"}
    check = create_check(line, create_pull_request(line), state="measuring", answer="worse", reason=reason)
    grow_memory(measure_case(check, line, 1.001, state="measuring", verdict="", finished_at=None), 1.3)
    page = page_of(signed_in, check)
    assert "Step time is still being measured." in page
    assert "Cancel the rest" in page
    assert 'value="intended"' not in page
    assert '<span class="chip run-failed">worse</span>' in page
    told = client.get(f"/api/v1/checks/{check.pk}").json()
    assert (told["state"], told["answer"], told["status"]) == ("measuring", "worse", "failure")
    text = sentences.comment_markdown(read_report(check))
    assert "12 pairs so far on gpu-1" in text
    assert "Once the rest is measured" in text


@pytest.mark.parametrize(("known", "renewed"), [("", True), ("worse", False)])
def test_what_is_proved_early_shows_the_whole_page_anew(
    client: Client, line: list[Commit], known: str, renewed: bool
) -> None:
    check = create_check(line, state="measuring", answer="worse", reason={"case": "", "metric": ""})
    measure_case(check, line, 1.001, state="measuring", verdict="", finished_at=None)
    answer = client.get(f"/checks/{check.pk}/status/", {"answer": known})
    assert ("HX-Refresh" in answer.headers) == renewed


@pytest.mark.parametrize("where", ["/projects/snakes/experiments/", "/experiments/{}/"])
def test_an_experiment_leads_back_to_its_check(client: Client, worse: Check, where: str) -> None:
    experiment = worse.cases.filter(is_control=False).get().experiment_id
    page = client.get(where.format(experiment)).content.decode()
    assert f'<a href="/checks/{worse.pk}/">check {worse.pk}</a>' in page


def test_a_comment_calls_nobody_and_links_nowhere(line: list[Commit]) -> None:
    reason = {"code": "can't be measured", "text": "@everyone [look](https://evil.example) <img src=x>"}
    check = create_check(line, answer="not known", reason=reason)
    text = sentences.comment_markdown(read_report(check))
    assert "@everyone" not in text
    assert "[look](" not in text
    assert "<img" not in text


@pytest.mark.parametrize(
    ("fields", "state", "said"),
    [
        ({"state": "waiting"}, "pending", "Waiting for an approval"),
        ({"state": "requested"}, "pending", "Waiting to be prepared."),
        ({"state": "measuring"}, "pending", "Prepared: measured as machines are free."),
        ({"state": "cancelled", "reason": {"code": "newer head"}}, "neutral", "has a newer head."),
        ({"answer": "not worse", "reason": {"code": "nothing touched"}}, "success", "No benchmark runs what"),
        (
            {"answer": "not known", "reason": {"code": "no merge base", "onto": "main"}},
            "neutral",
            "Not known.",
        ),
        (
            {"answer": "not known", "reason": {"code": "both answers possible", "visible": 0.052}},
            "neutral",
            "5.2 % would have been seen.",
        ),
        (
            {"answer": "not known", "reason": {"code": "control moved", "ratio": 1.08}},
            "neutral",
            "The merge base differed from itself by 8.0 %",
        ),
    ],
)
def test_what_is_not_known_is_never_a_failure(
    line: list[Commit], fields: dict[str, object], state: str, said: str
) -> None:
    check = create_check(line, **fields)
    report = read_report(check)
    assert sentences.status_state(check) == state
    assert said in sentences.status_description(report)
    assert len(sentences.status_description(report)) <= 140


def test_the_comment_has_the_approval_to_copy_and_isnt_one(line: list[Commit]) -> None:
    check = create_check(line, create_pull_request(line), state="waiting")
    text = sentences.comment_markdown(read_report(check))
    assert not COMMAND.search(text)
    copied = re.search(r"`([^`]*approve[^`]*)`", text)
    assert copied
    match = COMMAND.search(copied[1])
    assert match
    assert match[1] == f"approve {check.head_hash}"
    assert f"that says {copied[0]}" in text


def test_the_comment_has_the_command_to_copy_that_calls_it_intended(worse: Check) -> None:
    text = sentences.comment_markdown(read_report(worse))
    assert not COMMAND.search(text)
    copied = re.search(r"that says `([^`]+)`", text)
    assert copied
    assert COMMAND.fullmatch(copied[1])
