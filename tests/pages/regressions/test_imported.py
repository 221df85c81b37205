"""A regression that imported results alone show: nobody has to act on it, and nothing can prove it."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from dashboard.models import Commit, Document, Project, Regression, Run, Series
from tests.dashboard import factories
from tests.pages import builders
from tests.pages.conftest import shown_text

pytestmark = pytest.mark.django_db

STEPPED = ((16, 10.0), (12, 14.0))


@pytest.fixture
def regression(db: None) -> Regression:
    """As `import_results` leaves it: suspected, and not being proved."""
    regression = builders.create_stepped_regression(suspects=[], operations=[])
    Run.objects.update(origin=Run.Origin.IMPORTED, machine=None)
    Document.objects.all().delete()
    return regression


def get_page(client: Client, where: str) -> str:
    return " ".join(client.get(where).content.decode().split())


def test_nobody_is_needed_for_it(client: Client, regression: Regression) -> None:
    shown = get_page(client, "/")
    assert "Nothing. No open regression" in shown
    assert '<span class="chip run-done">no open regression</span>' in shown
    assert f"/regressions/{regression.pk}/" not in shown


def test_what_was_measured_here_needs_somebody(client: Client, regression: Regression) -> None:
    """One of the two sides was: the other can be measured beside it."""
    Run.objects.filter(commit=regression.first_bad).update(origin=Run.Origin.MEASURED)
    shown = get_page(client, "/")
    assert f'href="/regressions/{regression.pk}/"' in shown
    assert "1 open regression<" in shown


def test_what_no_run_shows_yet_is_not_imported(client: Client, regression: Regression) -> None:
    """A range that was narrowed ends at commits without a run of their own."""
    Run.objects.filter(commit__in=[regression.first_bad, regression.last_good]).delete()
    assert f'href="/regressions/{regression.pk}/"' in get_page(client, "/")


def test_its_project_is_not_trusted_by_it(client: Client, regression: Regression) -> None:
    trust = client.get("/projects/snake/trust/?days=all")
    assert (trust.context["commits"], trust.context["times"]) == (0, [])


def test_the_inbox_has_a_tab_for_it(client: Client, regression: Regression) -> None:
    link = f'href="/regressions/{regression.pk}/"'
    assert link not in get_page(client, "/regressions/")
    assert 'Imported <span class="count">1</span>' in get_page(client, "/regressions/")
    assert link in get_page(client, "/regressions/?state=imported")
    assert "state-not-proved" in get_page(client, "/regressions/?state=imported")


def test_its_project_shows_it_apart(client: Client, regression: Regression) -> None:
    shown = get_page(client, "/projects/snake/")
    assert 'id="imported">Found in imported results</h2>' in shown
    assert "Open regressions" not in shown
    commits = get_page(client, "/projects/snake/commits/")
    assert f'href="/regressions/{regression.pk}/">regression</a>' in commits


def test_its_page_offers_no_proof_that_cannot_be_had(client: Client, regression: Regression) -> None:
    shown = get_page(client, regression.get_absolute_url())
    assert "It was found in imported results, which can't be measured again." in shown
    assert "Imported results have no phases." in shown
    assert "Imported results have no profile" in shown
    assert "manage.py trigger" not in shown
    assert "isn't measured a second time" not in shown


def test_its_suspects_are_what_the_commits_changed(client: Client, regression: Regression) -> None:
    """A repository names them; how often they are called only a profile would tell."""
    unseen = builders.SUSPECT | {"calls_before": 0, "calls_after": 0, "self_before": 0, "self_after": 0}
    Regression.objects.update(suspects=[unseen])
    shown = get_page(client, regression.get_absolute_url())
    assert "nothing is known of its calls" in shown
    assert "not called in a step" not in shown
    assert "between the two profiles" not in shown


def test_whoever_may_measure_is_offered_no_experiment_on_it(
    signed_in: Client, regression: Regression
) -> None:
    shown = get_page(signed_in, regression.get_absolute_url())
    section = shown.partition('id="proof"')[2].partition("</section>")[0]
    assert "can't be measured again" in section
    assert "href" not in section


def test_a_person_may_still_put_it_away(client: Client, regression: Regression) -> None:
    Regression.objects.update(triaged="intended")
    assert "Found in imported results" not in get_page(client, "/projects/snake/")
    assert f'href="/regressions/{regression.pk}/"' in get_page(client, "/regressions/?state=intended")


def import_history(path: Path, unit: str = "ms", levels: tuple[tuple[int, float], ...] = STEPPED) -> None:
    """As the project `old`, which has no repository."""
    rows = [
        f"c{position},2026-03-{position + 1:02},train,{value},{unit}"
        for position, value in enumerate(factories.noisy_levels(*levels))
    ]
    path.write_text("\n".join(["commit,date,benchmark,value,unit", *rows]))
    call_command("import_results", "old", str(path), format="csv", create=True, stdout=StringIO())


# Noise is a share of what it is of: a gauge, which may be 0 or less, has none.
@pytest.mark.parametrize(("unit", "pages"), [("ms", ("", "heatmap/", "noise/")), ("ops", ("", "heatmap/"))])
def test_its_cases_are_shown_by_a_metric_that_they_have(
    client: Client, tmp_path: Path, unit: str, pages: tuple[str, ...]
) -> None:
    import_history(tmp_path / "values.csv", unit)
    for page in pages:
        shown = client.get(f"/projects/old/{page}")
        metric = shown.context["grid"].metric
        assert [str(row.state.case) for row in shown.context["rows"]] == ["train"]
        assert f'<option value="{metric}" selected>' in shown.content.decode()
        assert client.get(f"/projects/old/{page}?metric={metric}").context["rows"]


def test_nobody_is_told_to_measure_where_there_is_no_repository(client: Client, tmp_path: Path) -> None:
    import_history(tmp_path / "values.csv", levels=((16, 10.0),))
    series = Series.objects.get()
    pages = ("/projects/old/", "/projects/old/?metric=throughput", "/regressions/?project=old")
    trust = client.get("/projects/old/trust/?days=all")
    assert "nothing to report. Choose a longer time." in shown_text(trust)
    series.points.all().delete()
    for page in (*pages, series.get_absolute_url()):
        shown = get_page(client, page)
        assert "manage.py" not in shown
        assert "to start a measurement" not in shown
    assert "No imported run has a value of throughput." in get_page(
        client, "/projects/old/?metric=throughput"
    )


def test_what_an_import_finds_is_shown_so(client: Client, tmp_path: Path) -> None:
    import_history(tmp_path / "values.csv")
    regression = Regression.objects.get()
    assert "Nothing. No open regression" in get_page(client, "/")
    shown = get_page(client, regression.get_absolute_url())
    assert "It was found in imported results, which can't be measured again." in shown
    assert "Nobody, and nobody will be: it was found in imported results" in shown
    assert "git log" not in shown
    assert "</a>." in shown.partition("After the last good commit,")[2].partition("</p>")[0]


def test_nothing_is_offered_that_would_be_refused(signed_in: Client, regression: Regression) -> None:
    """The project has a repository, but no manifest of it names what was imported."""
    Project.objects.update(repository="https://example.org/snake.git")
    Commit.objects.create(
        project=regression.project, hash="e" * 40, branch="main", position=9, committed_at=timezone.now()
    )
    run = Run.objects.first()
    assert run is not None
    pages = [
        run.get_absolute_url(),
        regression.series.get_absolute_url(),
        f"/projects/snake/commits/{'e' * 40}/",
    ]
    asking = re.compile(
        r"Measure again|Measure them side by side|Measure the two side by side|Not measured here"
    )
    assert [asking.findall(get_page(signed_in, page)) for page in pages] == [[], [], []]
    assert "Compare what is stored of them" in get_page(signed_in, pages[1])
    Run.objects.update(origin=Run.Origin.MEASURED)
    assert all(asking.search(get_page(signed_in, page)) for page in pages)
