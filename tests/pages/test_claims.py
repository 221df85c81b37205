"""The pages of claims: what they say, in how many queries, and what a wrong request is told."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.charts.claim_history import HistoryPoint, layout_history
from dashboard.models import Claim, ClaimMeasurement, ClaimsFile, Commit, Project
from dashboard.sentences.comparisons.claims import claim_sentence
from tests.dashboard.access.conftest import create_member
from tests.pages.claim_builders import claim_pages, create_claim, create_watched, measure_claim
from tests.pages.conftest import shown_text

# Those of the visitor and of the project's rights and revision with it.
MOST_QUERIES = 9


@pytest.fixture
def claim(line: list[Commit]) -> Claim:
    return create_watched(line)


def test_the_table_says_what_holds_and_since_when(client: Client, claim: Claim, line: list[Commit]) -> None:
    ClaimMeasurement.objects.filter(pk=claim.newest_id).update(reason={"code": "precision not reached"})
    page = shown_text(client.get(f"/projects/{claim.project.slug}/claims/walker/"))
    assert "1.50x 1.45 to 1.55x agrees" in page
    assert "1.01x [0.990, 1.03]" in page
    assert "6 pairs, 1 more was disturbed" in page
    # A sure verdict rests on what was reached; only one that isn't known says what it lacks.
    assert "✗ refuted: no difference" in page
    assert "minutes were spent" not in page
    ClaimMeasurement.objects.filter(pk=claim.newest_id).update(verdict="not known")
    assert "minutes were spent" in shown_text(
        client.get(f"/projects/{claim.project.slug}/claims/walker/?show=all")
    )
    assert "fused=false to fused=true" in page
    assert line[-1].short in page
    assert "the file says it can't be tested: there is no cluster" in page
    assert "the case as it is" not in page
    only = shown_text(client.get(f"/projects/{claim.project.slug}/claims/walker/?show=refuted"))
    assert "cluster" not in only
    assert client.get(f"/projects/{claim.project.slug}/claims/walker/?show=good").status_code == 400


def test_a_claim_is_drawn_over_commits(client: Client, claim: Claim) -> None:
    answer = client.get(claim.get_absolute_url())
    page = answer.content.decode()
    assert len(re.findall(r'<a class="point [^"]*" href="/experiments/\d+/"', page)) == 4
    assert page.count('class="point claim-holds"') == 2
    text = shown_text(answer)
    assert "The band is what agrees with the claim." in text
    assert "not known 6 pairs" in text


def test_a_message_names_claim_figures_and_what_they_rest_on(claim: Claim, line: list[Commit]) -> None:
    measured = claim.measurements.latest("pk")
    assert claim_sentence(measured, "claim_refuted").endswith(
        f"at {line[3].short} “{line[3].subject}”: fused of walker: 1.01x [0.990, 1.03], claimed 1.50x, "
        "measured by 6 pairs, 1 more was disturbed (refuted: no difference)."
    )
    calls = create_claim(line, "calls", claim="It calls little", metric="function_calls", at_most=9, case={})
    counted = measure_claim(calls, line[-1], 12, "larger", 0)
    counted.evidence = {"kind": "counted"}
    assert claim_sentence(counted, "claim_refuted") == (
        f"The claim “It calls little” of walker no longer holds at {line[-1].short} “{line[-1].subject}”: "
        "12x, claimed at most 9, counted (refuted: more than claimed)."
    )


@pytest.mark.parametrize(
    ("days", "commits", "said"),
    [(1, 0, "every day"), (0, 1, "every commit"), (7, 3, "every 7 days or every 3 commits")],
)
def test_it_says_how_often_claims_are_measured(
    client: Client, claim: Claim, days: int, commits: int, said: str
) -> None:
    Project.objects.update(policy=f"[policy.claims]\nevery_days = {days}\nevery_commits = {commits}\n")
    page = shown_text(client.get(f"/projects/{claim.project.slug}/claims/"))
    assert f"Measured {said} where there is a new commit" in page


def test_long_numbers_beside_a_claims_chart_have_room() -> None:
    for value, left in ((1.5, 56), (5540.67, 68)):
        points = [HistoryPoint(value, value, value, "holds", "0a1b2c3", "", "")]
        drawn = layout_history(points, None, is_ratio=False)
        assert drawn is not None
        assert (drawn.left, drawn.left + drawn.inner) == (left, drawn.right)


def test_a_share_agrees_up_to_all_of_it(client: Client, line: list[Commit]) -> None:
    share = {"metric": "phase_share:learn", "factor": 100, "unit": "%", "case": {}}
    claim = create_claim(line, "share", claim="It learns", value=[10, 95], **share)
    measured = measure_claim(claim, line[-1], 97, "holds", 2)
    ClaimMeasurement.objects.filter(pk=measured.pk).update(unit="%")
    answer = client.get(claim.get_absolute_url())
    assert "10 to 95 %, 9 to 100 % agrees" in shown_text(answer)
    assert float(answer.context["history"].rows[-1].text) == 100


def test_pages_ask_as_often_for_many_claims_as_for_few(
    client: Client, claim: Claim, line: list[Commit]
) -> None:
    addresses = (
        f"/projects/{claim.project.slug}/claims/",
        f"/projects/{claim.project.slug}/claims/walker/",
        claim.get_absolute_url(),
        f"/api/v1/projects/{claim.project.slug}/claims",
        f"/api/v1/claims/{claim.pk}/measurements",
    )
    few = [count_queries(client, address) for address in addresses]
    for number in range(12):
        more = create_claim(line, f"claim-{number}")
        measure_claim(more, line[-1], 1.5, "holds")
    for _ in range(8):
        measure_claim(claim, line[-1], 1.0, "none")
    assert [count_queries(client, address) for address in addresses] == few
    assert max(few) <= MOST_QUERIES


def count_queries(client: Client, address: str) -> int:
    """How many queries a page takes that nobody has asked for before."""
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(address)
    assert (answer.status_code, len(answer.content) < 150_000) == (200, True)
    return len(asked)


def test_an_empty_page_shows_how_to_write_one(client: Client, project_page: str) -> None:
    assert 'id = "fused"' in shown_text(client.get(project_page))


def test_a_first_file_that_cannot_be_read_leaves_no_claims(client: Client, project_page: str) -> None:
    project = Project.objects.get()
    at = timezone.now()
    problem = "claims[0].id: is missing."
    ClaimsFile.objects.create(project=project, benchmark="walker", problem=problem, asked_at=at)
    page = shown_text(client.get(f"{project_page}walker/"))
    assert "The newest file can't be read: claims[0].id: is missing." in page
    assert "No claim has been read yet." in page


@pytest.fixture
def project_page(line: list[Commit]) -> str:
    return f"/projects/{line[0].project.slug}/claims/"


def test_who_may_not_measure_is_told_of_no_form(client: Client, project_page: str) -> None:
    assert "New commits are read as soon as the site hears of them." in shown_text(client.get(project_page))


def test_a_commit_that_is_refused_stays_typed(client: Client, claim: Claim) -> None:
    project: Project = claim.project
    client.force_login(create_member("ada", "operator", project))
    page = client.get(claim.get_absolute_url()).content.decode()
    assert "Measure this claim" in page
    asked = {"benchmark": "walker", "claim": "fused", "commit": "nowhere"}
    answer = client.post(f"/projects/{project.slug}/measure-claims/", asked)
    page = answer.content.decode()
    assert (answer.status_code, 'value="nowhere"' in page, 'aria-invalid="true"' in page) == (400, True, True)
    assert f'<a href="{claim.get_absolute_url()}">Back</a>' in page
    assert "can't" in shown_text(answer) or "no repository" in shown_text(answer)


@pytest.mark.django_db
def test_every_state_of_a_claim_has_its_page(client: Client) -> None:
    pages = {address: shown_text(client.get(address)) for address in claim_pages()}
    text = " ".join(pages.values())
    assert "claims.toml: claims[0].id: is missing." in text
    assert "The newest claims.toml no longer has it." in text
    assert "being measured" in text
    assert "claim refuted: The fused optimizer is 1.5 times faster" in text


def test_what_the_site_does_not_measure_has_its_command(client: Client, claim: Claim) -> None:
    assert "paceline claims" not in client.get(claim.get_absolute_url()).content.decode()
    for code in ("own window", "sweep"):
        claim.reason = {"code": code}
        claim.save()
        answer = client.get(claim.get_absolute_url()).content.decode()
        assert f'<pre class="shell">paceline claims {claim.benchmark} --claim {claim.key}</pre>' in answer
