"""What is large goes with age; points, and what a regression or a newest run rests on, stay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from dashboard import regressions, retention
from dashboard.models import (
    Change,
    Document,
    Point,
    Project,
    Regression,
    Run,
    RunLog,
    SeriesLatest,
    Telemetry,
)
from dashboard.retention.thinned_points import unjudged_series
from tests.dashboard import factories
from tests.dashboard.documents import document_body
from tests.dashboard.ingest.any_document import load_complete_document
from tests.pages.builders import create_regression, headline_series

pytestmark = pytest.mark.django_db
WHOLE = load_complete_document(document_body()["benchmark"])
WHOLE.pop("benchmark")  # Which is the fixture's own.
NEVER = {"logs": 0, "telemetry": 0, "profiles": 0, "documents": 0, "points": 0}


@pytest.fixture
def history(measure: Callable[..., Run], settings: Any) -> list[Run]:
    """Three runs of one case, with logs, a year old; a day, then, is what each part is kept."""
    for part in NEVER:
        setattr(settings, f"PACELINE_KEEP_{part.upper()}_DAYS", 0)
    found = [measure(position, **WHOLE) for position in (1, 2, 3)]
    for age, run in enumerate(reversed(found)):
        RunLog.objects.update_or_create(run=run, defaults={"text": "printed"})
        Run.objects.filter(pk=run.pk).update(finished_at=timezone.now() - timedelta(days=365 + 2 * age))
    return found


def test_nothing_goes_unless_it_is_asked_for(history: list[Run]) -> None:
    assert retention.prune_runs(seconds=60) == {}
    assert RunLog.objects.count() == 3


def test_the_newest_run_of_a_case_keeps_everything(history: list[Run], settings: Any) -> None:
    settings.PACELINE_KEEP_LOGS_DAYS = settings.PACELINE_KEEP_DOCUMENTS_DAYS = 1
    points = Point.objects.count()
    forecast = retention.forecast_project(history[0].case.project)
    assert {row.kept.kind: row.runs for row in forecast if row.runs} == {"logs": 2, "documents": 2}
    assert {tuple(row.protected.items()) for row in forecast if row.runs} == {((retention.Reason.NEWEST, 1),)}
    assert RunLog.objects.count() == 3
    assert retention.prune_runs(seconds=60) == {"logs": 2, "documents": 2}
    for kept in (RunLog, Document):
        assert [row.run_id for row in kept.objects.all()] == [history[-1].pk]
    assert set(Telemetry.objects.values_list("run", flat=True)) == {history[-1].pk}
    assert Point.objects.count() == points
    assert retention.prune_runs(seconds=60) == {"logs": 0, "documents": 0}


@pytest.mark.parametrize("part", ["telemetry", "profiles", "documents"])
def test_a_thinned_run_still_has_its_page(
    history: list[Run], settings: Any, client: Client, part: str
) -> None:
    setattr(settings, f"PACELINE_KEEP_{part.upper()}_DAYS", 364)
    assert retention.prune_runs(seconds=60) == {part: 2}
    page = client.get(history[0].get_absolute_url())
    assert page.status_code == 200
    for what in ("telemetry", "profile"):
        assert (f"The {what} of a run this old isn't kept." in page.text) is part.startswith(what)
    assert Telemetry.objects.filter(run=history[0]).exists() is (part == "profiles")
    if part != "documents":
        body = history[0].document.body
        assert (body["telemetry"] == [], body["profile"] is None) == (part == "telemetry", part == "profiles")
    assert retention.prune_runs(seconds=60) == {part: 0}


def test_what_is_not_old_enough_stays(history: list[Run], settings: Any) -> None:
    settings.PACELINE_KEEP_LOGS_DAYS = 368
    assert retention.prune_runs(seconds=60) == {"logs": 1}
    assert retention.prune_runs(seconds=0) == {"logs": 0}


def test_both_ends_of_a_regression_keep_everything(history: list[Run], settings: Any) -> None:
    settings.PACELINE_KEEP_LOGS_DAYS = 1
    create_regression(headline_series(history[0].case), history[0].commit, history[1].commit)
    assert retention.prune_runs(seconds=60) == {"logs": 0}


def test_the_command_says_what_it_does(history: list[Run], settings: Any) -> None:
    settings.PACELINE_KEEP_LOGS_DAYS = 30
    dry, wet = StringIO(), StringIO()
    call_command("prune", dry_run=True, stdout=dry)
    assert dry.getvalue().splitlines() == [
        "snakes:",
        "  The logs of 2 runs would be dropped (30 days): 2 logs, 16 B. "
        "Kept all the same: 1 newest of a case.",
        *(f"  The {kind} are kept for ever." for kind in ("telemetry", "profiles", "documents", "points")),
    ]
    call_command("prune", "snakes", stdout=wet)
    assert wet.getvalue().splitlines() == ["The logs of 2 runs are dropped."]


def test_so_much_of_a_run_is_read_by_no_judgement(measure: Callable[..., Run]) -> None:
    """docs/operations.md says about a third."""
    run = measure(1, **WHOLE)
    share = unjudged_series([run.configuration_id]).count() / run.points.count()
    assert 0.25 < share < 0.4


@pytest.mark.parametrize("step", [1.08, 1.0])
def test_thinning_moves_no_level_and_loses_no_change(project: Project, settings: Any, step: float) -> None:
    """All that goes with age is gone, and the whole history judged anew says what it said before."""
    for part in NEVER:
        setattr(settings, f"PACELINE_KEEP_{part.upper()}_DAYS", 1)
    case = factories.create_case(project)
    values = factories.noisy_levels((24, 0.010), (16, 0.010 * step), (12, 0.010 * step**2))
    line = factories.create_commits(project, len(values))
    measured = [{"step_time": value, "peak_memory": value * 1e11} for value in values]
    made = factories.store_measured_runs(list(zip(line, measured, strict=True)), case)
    for run in made:
        run.finished_at = run.judged_at = run.commit.committed_at
    Run.objects.bulk_update(made, ["finished_at", "judged_at"])
    RunLog.objects.bulk_create(RunLog(run=run, text="printed") for run in made)
    regressions.redetect_project(project)
    before = stored_judgement(project)
    assert bool(before[0]) is (step > 1)
    dropped = retention.prune_runs(seconds=60)
    assert dropped["documents"] > len(values) / 2
    assert stored_judgement(project) == before
    regressions.redetect_project(project)
    assert stored_judgement(project) == before


def stored_judgement(project: Project) -> tuple[list[Any], ...]:
    """What detection has stored: changes, levels, and regressions with their size."""
    sizes = ("series", "first_bad", "last_good", "before", "after", "ratio", "low", "high")
    return (
        list(Change.objects.order_by("pk").values_list(*sizes, "direction", "confidence", "regression")),
        list(SeriesLatest.objects.order_by("pk").values_list("series", "value", "level", "recent")),
        list(Regression.objects.filter(project=project).order_by("pk").values_list(*sizes, "state")),
        list(Point.objects.order_by("pk").values_list("series", "run", "value", "samples", "tainted")),
    )
