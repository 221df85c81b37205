"""A counter that grew by small steps: its regression tells of all of them, each step of itself."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.models import Regression
from dashboard.regressions import judge_run
from dashboard.sentences.regressions.alerts import message_sentence, message_subject, short_line
from tests.dashboard import factories
from tests.pages.regressions.test_ranges import read_section


@pytest.fixture
def grown(db: None) -> Regression:
    """1,000 calls, and 2 % more at each of three commits."""
    project = factories.create_project()
    case = factories.create_case(project)
    calls = [1000.0, 1000.0, 1020.0, 1040.0, 1061.0]
    for commit, value in zip(factories.create_commits(project, len(calls)), calls, strict=True):
        judge_run(factories.store_measured_run(commit, case, {"function_calls": value}).pk)
    return Regression.objects.get()


def test_its_page_tells_of_all_steps(client: Client, grown: Regression) -> None:
    lead = read_section(client, grown, "/regressions/{}/")
    assert "went from 1,000 calls/step to 1,061 calls/step over 3 commits" in lead
    page = client.get(grown.get_absolute_url()).content.decode()
    assert "It came over these 3 commits, little by little or in parts: no commit has all of it." in page
    assert "measured at other hours" not in page


def test_the_series_shows_each_step_at_its_commit(client: Client, grown: Regression) -> None:
    shown = read_section(client, grown, "/series/{}/")
    sizes = ["1,000 calls/step → 1,020", "1,020 calls/step → 1,040", "1,040 calls/step → 1,061"]
    assert all(size in shown for size in sizes)
    assert shown.count(f"regression {grown.pk}") == 3
    assert grown.first_bad.short in shown
    assert "over 3 commits" not in shown


def test_its_message_names_no_commit(grown: Regression) -> None:
    place = f"over 3 commits, {grown.last_good.short}..{grown.first_bad.short}"
    assert short_line(grown) == f"function calls +6.1 % {place}"
    said = message_sentence(grown, "opened")
    assert said == f"function calls +6.1 % {place}, little by little or in parts"
    grown.triaged = Regression.Triaged.ACKNOWLEDGED
    assert message_sentence(grown, "reminder") == f"It has grown: {said}"
    assert message_subject(grown, "reminder") == f"[snakes] Has grown: function calls +6.1 % {place}"
