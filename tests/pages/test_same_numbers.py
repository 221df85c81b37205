"""A number reads the same on every page, in a mail and in a webhook: one module writes them."""

from __future__ import annotations

import ast
import html
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from dashboard.alerts.kinds.email import compose_email
from dashboard.alerts.kinds.payload import alert_payload
from dashboard.models import Regression
from dashboard.querysets.regressions import regressions_with_related
from dashboard.sentences.formatting import numbers
from dashboard.sentences.regressions.regressions import regression_title
from tests.pages import builders
from tests.pages.conftest import shown_text

ROOT = Path(__file__).resolve().parents[2]
# Sizes that another rounding would write otherwise: 9.949 % is 10 % when it is rounded twice.
SIZES = {"before": 0.0012345, "after": 0.0013573, "ratio": 1.09949, "low": 1.0904, "high": 1.1151}
CHANGE, LEVELS = "+9.9 % [9.0, 12]", "1.23 ms → 1.36 ms"


@pytest.fixture
def regression(db: None) -> Regression:
    made = builders.create_stepped_regression(state="confirmed")
    Regression.objects.update(**SIZES)
    made.changes.update(**SIZES)
    return regressions_with_related().get(pk=made.pk)


def test_a_change_reads_the_same_everywhere(client: Client, regression: Regression) -> None:
    delivery = builders.create_delivery(regression)
    mail = compose_email(delivery)
    texts = [mail.subject, mail.body, mail.alternatives[0][0], alert_payload(delivery)["title"]]
    pages = ("/", "/regressions/", "/projects/snake/", "/deliveries/", "/regressions/{}/", "/series/{}/")
    for where in pages:
        key = regression.series_id if "series" in where else regression.pk
        texts.append(client.get(where.format(key)).content.decode())
    assert [text for text in texts if CHANGE not in str(text)] == []


def test_levels_read_the_same_everywhere(client: Client, regression: Regression) -> None:
    mail = compose_email(builders.create_delivery(regression))
    pages = ("/regressions/", f"/series/{regression.series_id}/", regression.get_absolute_url())
    texts = [mail.body, html.unescape(str(mail.alternatives[0][0]))]
    texts += [client.get(where).content.decode() for where in pages]
    assert [text for text in texts if LEVELS not in str(text)] == []
    assert "went from 1.23 ms to 1.36 ms" in texts[-1]


def test_what_pairs_measured_are_the_levels_everywhere(client: Client, regression: Regression) -> None:
    Regression.objects.update(paired_before=0.002)
    levels, step = "2 ms → 2.20 ms", regression.series
    told = regressions_with_related().get(pk=regression.pk)
    pages = ("/regressions/", f"/series/{step.pk}/", regression.get_absolute_url())
    delivery = builders.create_delivery(told)
    texts = [compose_email(delivery).body]
    texts += [client.get(where).content.decode() for where in pages]
    assert [text for text in texts if levels not in str(text)] == []
    assert "went from 2 ms to 2.20 ms, by pairs of interleaved runs, at" in texts[-1]
    commit = client.get(f"/projects/snake/commits/{regression.first_bad.hash}/").content.decode()
    assert 'title="a level of 2 ms, then one of 2.20 ms">worse +9.9 %<' in commit
    sent = alert_payload(delivery)["regression"]
    listed = client.get("/api/v1/regressions").json()["items"][0]
    assert [listed["before"], listed["after"]] == [sent["before"], sent["after"]] == [0.002, 0.002 * 1.09949]


def test_who_writes_out_a_webhooks_number_gets_that_of_its_title(regression: Regression) -> None:
    sent = alert_payload(builders.create_delivery(regression))["regression"]
    ends = [sent[f"change_percent{end}"] for end in ("", "_low", "_high")]
    assert [numbers.format_signed(end) for end in ends] == ["+9.9", "+9.0", "+12"]


def test_an_end_that_no_effect_reaches_is_none() -> None:
    assert numbers.format_percent_interval(1.03, 2e14) == "[3.0, ∞]"
    assert numbers.format_percent_interval(256, 260) == "[25,500, 25,900]"


def own_roundings(source: str) -> Iterator[int]:
    """The lines that round a number or choose its decimals."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            rounds = isinstance(node.func, ast.Name) and node.func.id == "round"
        elif isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            rounds = ast.unparse(node.format_spec)[:-1].endswith(("f", "g", "e", "%"))
        else:
            rounds = False
        if rounds:
            yield node.lineno


def test_nothing_that_people_read_is_rounded_elsewhere() -> None:
    allowed = {
        # Attributes of drawings, a refused option as it was typed, and the noise of binary fractions.
        *("dashboard/charts/pictures/badge.py", "dashboard/charts/pictures/canvas.py"),
        *("dashboard/charts/axes.py", "dashboard/charts/claim_history.py"),
        *("dashboard/charts/forest.py", "dashboard/pages/comparisons/compare.py"),
        "dashboard/charts/icicle.py",
        "dashboard/charts/sparkline.py",
        "dashboard/charts/stacked_bar.py",
        "dashboard/charts/static_svg.py",
        "dashboard/templatetags/paceline.py",
        "dashboard/alerts/channels.py",
        "dashboard/alerts/kinds/payload.py",
        "dashboard/sentences/formatting/numbers.py",
    }
    rooms = ("alerts", "charts", "pages", "querysets", "sentences", "templatetags")
    files = [file for room in rooms for file in (ROOT / "dashboard" / room).rglob("*.py")]
    found = {str(file.relative_to(ROOT)) for file in files if any(own_roundings(file.read_text()))}
    assert found - allowed == set()
    assert allowed - found == set()


def test_templates_round_nothing() -> None:
    templates = (ROOT / "templates").rglob("*.*")
    assert [file.name for file in templates if "floatformat" in file.read_text()] == []


def test_a_planted_rounding_is_found() -> None:
    assert len(list(own_roundings("a = f'{value:.1f}'\nb = round(value)\nc = f'{value:%Y}'"))) == 2


def test_a_title_names_the_case_where_the_project_has_several(client: Client, regression: Regression) -> None:
    where = ("/", "/regressions/", regression.get_absolute_url())
    assert "+9.9 % [9.0, 12] since" in regression_title(regression)
    builders.create_case(regression.project, games=512)
    told, case = regressions_with_related().get(pk=regression.pk), str(regression.series.case)
    assert f"step time {CHANGE} in {case} since" in regression_title(told)
    assert f"{CHANGE} in {case}" in compose_email(builders.create_delivery(told)).subject
    texts = [shown_text(client.get(page)) for page in where]
    assert [text for text in texts if f"Step time in {case}" not in text] == []


def test_titles_of_a_list_ask_for_no_case(
    regression: Regression, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    told = regressions_with_related().prefetch_related("limits", "changes").get(pk=regression.pk)
    with django_assert_num_queries(0):
        regression_title(told)
