"""An empty page says the one next step, for whoever looks at it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import Claim, ClaimMeasurement, Commit, Membership, Project
from tests.pages import builders
from tests.pages.conftest import shown_text
from tests.pages.experiment_builders import create_ended

MEASURING = ("runs", "commits", "triggers", "costs")
NEXT_STEPS = {
    **{f"/projects/empty/{page}/": "/projects/empty/trigger/?which=last" for page in MEASURING},
    "/projects/empty/checks/": "/projects/empty/settings/forge/",
    "/projects/empty/experiments/": "/projects/empty/experiments/new/",
    "/deliveries/": "/projects/empty/settings/channels/",
}


@pytest.fixture
def empty(db: None) -> Project:
    return builders.create_project("empty")


@pytest.mark.parametrize(("where", "leads_to"), NEXT_STEPS.items())
def test_an_empty_page_leads_to_its_next_step(
    empty: Project, signed_in: Client, where: str, leads_to: str
) -> None:
    assert f'class="button" href="{leads_to}' in signed_in.get(where).content.decode()


def test_nothing_is_offered_to_be_measured_of_an_imported_history(empty: Project, signed_in: Client) -> None:
    Project.objects.update(repository="")
    listed = signed_in.get("/projects/empty/experiments/").content.decode()
    assert 'href="/projects/empty/experiments/new/"' not in listed
    form = signed_in.get("/projects/empty/experiments/new/")
    assert "nothing can be measured" in shown_text(form)
    assert "Measure the difference" not in shown_text(form)
    claims = shown_text(signed_in.get("/projects/empty/claims/"))
    assert "until the project has a repository" in claims
    assert "New commits are read" not in claims


def test_no_regression_among_no_results_is_no_good_news(empty: Project, client: Client) -> None:
    page = shown_text(client.get("/projects/empty/regressions/"))
    assert "Nothing is known: no commit since" in page
    assert "No regression of a commit" not in page


def test_who_may_not_measure_is_told_who_may(empty: Project, client: Client) -> None:
    client.force_login(User.objects.create_user("eve"))
    assert "an admin of the project can make you an operator" in shown_text(
        client.get("/projects/empty/runs/")
    )


@pytest.mark.django_db
def test_messages_lead_to_the_channels_of_a_project_that_the_visitor_administers(client: Client) -> None:
    others = [builders.create_project(f"a{number}") for number in range(4)]
    own = builders.create_project("own")
    ada = User.objects.create_user("ada")
    Membership.objects.create(project=own, user=ada, role=Membership.Role.ADMIN)
    client.force_login(ada)
    page = client.get("/deliveries/").content.decode()
    assert 'href="/projects/own/settings/channels/"' in page
    assert f'href="/projects/{others[0].slug}/settings/channels/"' not in page


def test_an_experiment_links_the_claim_that_it_measures(line: list[Commit], client: Client) -> None:
    experiment = create_ended(line, purpose="claim")
    claim = Claim.objects.create(
        project=experiment.project,
        benchmark="train",
        key="fused",
        text="Fused is faster",
        definition={},
        position=0,
    )
    ClaimMeasurement.objects.create(
        claim=claim,
        commit=line[-1],
        requester="person",
        head=experiment.head_configuration,
        experiment=experiment,
    )
    page = client.get(experiment.get_absolute_url()).content.decode()
    assert f'<a href="{claim.get_absolute_url()}">the claim “Fused is faster”</a>' in page
