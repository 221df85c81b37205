"""A series beside others, in changes, in parts, by phase, and in files: all of one address."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.plugin import DjangoDbBlocker

from dashboard.models import Commit, Metric, Point, Pool, Project, Run, Series
from dashboard.sentences.formatting import numbers
from tests.dashboard import factories
from tests.dashboard.shared_rows import share_rows
from tests.pages import builders
from tests.pages.conftest import shown_text
from tests.pages.series.test_series import embedded_figure

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def measured_line(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    """The key of what each test's `series` is read from."""
    with share_rows(django_db_blocker, measure_line) as made:
        yield made


@pytest.fixture
def series(measured_line: int, db: None) -> Series:
    """Six commits, slower from the fourth on; the fifth is tainted, and the second failed once."""
    return Series.objects.get(pk=measured_line)


def measure_line() -> int:
    line = builders.create_measured_commits(6, step_at=3)
    case = line[0].runs.get().case
    tainted = line[4].runs.get()
    Run.objects.filter(pk=tainted.pk).update(tainted=True, warning_codes=["calibration_drift"])
    Point.objects.filter(run=tainted).update(tainted=True)
    builders.create_run(line[1], case, Run.State.FAILED, failure="crash", reason="It ended with 1.")
    Commit.objects.filter(position=2).update(tags=["v1.0"])
    return builders.headline_series(case).pk


@pytest.fixture
def on_h100(series: Series) -> Series:
    """Of the same case on another pool, at the last four of the commits: half as slow."""
    return copy_series(series, first=2, factor=0.5, pool=Pool.objects.create(name="h100"))


def copy_series(series: Series, first: int, factor: float, **configuration: Any) -> Series:
    beside = Series.objects.create(
        configuration=factories.get_configuration(series.case, **configuration), metric=series.metric
    )
    for point in series.points.filter(position__gte=first):
        run = Run.objects.create(
            commit=point.run.commit, configuration=beside.configuration, state="done",
            repetitions=5, time_limit=60,
        )  # fmt: skip
        Point.objects.create(
            series=beside, run=run, position=point.position, value=factor * point.value, samples=point.samples
        )
    return beside


def page_of(series: Series, query: str = "", call: str = "") -> str:
    return f"/series/{series.pk}/{call}?{query}"


def trace_of(figure: dict[str, Any], name: str) -> dict[str, Any]:
    return next(trace for trace in figure["data"] if trace["name"] == name)


def test_another_pool_is_drawn_beside_and_stands_in_the_table(
    client: Client, series: Series, on_h100: Series
) -> None:
    where = page_of(series, f"beside={on_h100.pk}")
    newest = on_h100.points.order_by("-position").values_list("value", flat=True)[0]
    answer = client.get(where)
    assert answer.context["rows"][0]["beside"] == [("pool h100", numbers.format_quantity(newest, "s"), "")]
    assert answer.context["rows"][-1]["beside"] == [("pool h100", numbers.DASH, "")]
    line = trace_of(embedded_figure(client, where, "trend"), "pool h100")
    assert line["meta"]["positions"] == [2, 3, 4, 5]


def test_a_branch_is_drawn_beside_also_beyond_the_projects_newest(client: Client, series: Series) -> None:
    forked = [factories.create_commit(series.case.project, position, "feature") for position in (5, 6)]
    for commit in forked:
        run = builders.create_run(commit, series.case)
        Point.objects.create(series=series, run=run, position=commit.position, value=0.001, samples=[0.001])
    figure = embedded_figure(client, page_of(series, "beside=@feature"), "trend")
    assert trace_of(figure, "branch feature")["meta"]["positions"] == [5, 6]
    assert trace_of(figure, "value")["meta"]["positions"] == [0, 1, 2, 3, 5]
    # In the table a row is a commit: at one position each of both branches has its own.
    rows = client.get(page_of(series, "beside=@feature&x=date")).context["rows"][:3]
    own = series.points.get(position=5, run__commit__branch="main").run.commit.hash
    assert [row["point"].commit.hash for row in rows] == [forked[1].hash, own, forked[0].hash]
    branch = ("branch feature", numbers.format_quantity(0.001, "s"), "")
    assert [row["beside"] for row in rows] == [[branch], [("branch feature", numbers.DASH, "")], [branch]]
    assert [row["is_own"] for row in rows] == [False, True, False]


def test_what_may_stand_beside_is_offered_in_words(client: Client, series: Series, on_h100: Series) -> None:
    variant = builders.create_case(series.case.project, variant="baseline")
    other = Series.objects.create(configuration=factories.get_configuration(variant), metric=series.metric)
    foreign = factories.create_case(factories.create_project())
    Series.objects.create(configuration=factories.get_configuration(foreign), metric=series.metric)
    Commit.objects.filter(position=5).update(branch="feature", fork=4)
    offered = dict(client.get(page_of(series)).context["offered"])
    assert offered == {
        "@feature": "branch feature",
        str(on_h100.pk): "pool h100",
        str(other.pk): "snake_dqn[variant=baseline]",
    }


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("beside=999999", "beside=999999: no series of this project with this metric has that number"),
        ("beside=x", "beside must be the number of a series, @BRANCH, or both"),
        ("&".join(f"beside=@b{number}" for number in range(5)), "beside must name at most 4 other lines"),
        ("x=month", "x must be commit or date"),
        ("view=pie", "view must be trend or phases"),
        ("zoom=7", "zoom must be two positions"),
    ],
)
def test_an_address_that_cannot_be_read_is_refused_by_its_field(
    client: Client, series: Series, query: str, sentence: str
) -> None:
    for call in ("", "part/", "points.csv", "points.json"):
        answer = client.get(page_of(series, query, call))
        assert answer.status_code == 400
        assert sentence in html.unescape(answer.content.decode())


@pytest.mark.parametrize(("relative", "at"), [("first", 0), ("v1.0", 2)])
def test_values_are_read_as_changes_from_a_commit(
    client: Client, series: Series, on_h100: Series, relative: str, at: int
) -> None:
    answer = client.get(page_of(series, f"relative={relative}&beside={on_h100.pk}"))
    values = dict(series.points.values_list("position", "value"))
    change = numbers.format_percent_change(values[5] / values[at])
    assert answer.context["rows"][0]["change"] == change
    (_, _, beside) = answer.context["rows"][0]["beside"][0]
    assert beside == numbers.format_percent_change(values[5] / values[2])
    assert f'data-label="Change">{change}<' in answer.content.decode()


@pytest.mark.parametrize(
    ("relative", "sentence"),
    [
        ("v9", "No commit of this name is known here yet."),
        ("baseline", "The baseline has no value here: choose another one below."),
    ],
)
def test_a_change_from_nothing_says_so(client: Client, series: Series, relative: str, sentence: str) -> None:
    answer = client.get(page_of(series, f"relative={relative}&against=v9"))
    assert sentence in shown_text(answer)
    assert answer.context["rows"][0]["change"] == ""


def test_failed_and_tainted_runs_stand_at_their_place_with_the_reason(client: Client, series: Series) -> None:
    figure = embedded_figure(client, page_of(series), "trend")
    tainted, failed = trace_of(figure, "tainted"), trace_of(figure, "failed")
    assert (tainted["meta"]["positions"], failed["meta"]["positions"]) == ([4], [1])
    assert "the machine changed its speed while it measured" in tainted["text"][0]
    run = Run.objects.get(state="failed").pk
    assert failed["text"][0].startswith(f"<b>run {run} failed: crash. It ended with 1.</b>")
    said = shown_text(client.get(page_of(series)))
    assert f"Run {run} failed: crash. It ended with 1." in said
    assert "the machine changed its speed while it measured" in said
    assert "#v1.0" in [label["text"] for label in figure["layout"]["annotations"]]


def test_by_date_the_axis_has_dates(client: Client, series: Series) -> None:
    figure = embedded_figure(client, page_of(series, "x=date"), "trend")
    assert figure["layout"]["xaxis"]["type"] == "date"


def test_a_part_has_its_own_points_in_figure_and_table(client: Client, series: Series) -> None:
    answer = client.get(page_of(series, "zoom=1-3", "part/")).json()
    figure = json.loads(answer["figure"])
    assert trace_of(figure, "value")["meta"]["positions"] == [1, 2, 3]
    assert answer["points"].count('data-label="Value"') == 3
    shown = client.get(page_of(series, "zoom=1-3"))
    assert "positions 1 to 3" in shown_text(shown)
    empty = shown_text(client.get(page_of(series, "zoom=80-90")))
    assert "No run lies at positions 80 to 90: all are shown." in empty


def test_no_cell_of_a_file_is_a_formula(client: Client, series: Series) -> None:
    """A branch may be called so, and so may a phase of measured code."""
    Commit.objects.update(branch="=cmd|x")
    Project.objects.update(branch="=cmd|x")
    body = client.get(page_of(series, "branch=%3Dcmd%7Cx", "points.csv")).content.decode()
    rows = list(csv.DictReader(body.splitlines()))
    assert {row["branch"] for row in rows} == {"'=cmd|x"}


@pytest.mark.parametrize("query", ["", "relative=first", "zoom=2-5", "view=phases"])
def test_files_have_the_numbers_of_the_page(
    client: Client, series: Series, on_h100: Series, query: str
) -> None:
    address = f"{query}&beside={on_h100.pk}"
    page = client.get(page_of(series, address))
    body = client.get(page_of(series, address, "points.csv")).content.decode()
    rows = list(csv.DictReader(body.splitlines()))
    exported = client.get(page_of(series, address, "points.json")).json()["points"]
    assert [{**row, "value": float(row["value"])}["value"] for row in rows] == [
        point["value"] for point in exported
    ]
    if query == "view=phases":
        stack = {row["phase"].name: row for row in page.context["stack"]}
        newest = {point["line"]: point["value"] for point in exported}
        assert newest == {name: row["newest"] for name, row in stack.items()}
        return
    own = {int(row["run"]): row for row in rows if not row["line"]}
    for row in page.context["rows"]:
        found = own.pop(row["point"].run)
        assert numbers.format_quantity(float(found["value"]), "s") in page.content.decode()
        assert found["tainted"] == str(row["point"].tainted)
        change = found["change_percent"]
        assert row["change"] == (change and numbers.format_percent_change(1 + float(change) / 100))
    assert own == {}
    beside = [row for row in rows if row["line"] == "pool h100"]
    assert len(beside) == sum(
        text != numbers.DASH for row in page.context["rows"] for _, text, _ in row["beside"]
    )


def test_phases_above_each_other_add_up_to_the_step(client: Client, series: Series) -> None:
    rows = client.get(page_of(series, "view=phases")).context["stack"]
    newest = series.points.get(position=5).value
    assert sum(row["newest"] for row in rows) == pytest.approx(newest, rel=0.02)
    assert rows[-1]["phase"].name == "everything else"


def test_a_step_has_the_size_that_its_regression_tells(client: Client, series: Series) -> None:
    line = list(Commit.objects.order_by("position"))
    regression = builders.create_regression(series, line[2], line[3], ratio=1.9)
    regression.changes.update(ratio=1.67, low=1.6, high=1.7)
    arrow = embedded_figure(client, page_of(series), "trend")["layout"]["annotations"][0]
    said = shown_text(client.get(page_of(series)))
    assert arrow["text"] == "worse +90 %"
    assert "worse +90 % [87, 93]" in said
    assert "The points, measured at other hours, moved by +67 %" in said
    assert (
        embedded_figure(client, f"/regressions/{regression.pk}/", "step")["layout"]["annotations"][0]["text"]
        == "worse +90 %"
    )


@pytest.fixture
def long_series(db: None) -> list[Series]:
    """Six hundred commits on four pools, with one extreme on each."""
    project = builders.create_project("long")
    commits = builders.create_commits(project, 600)
    case = builders.create_case(project)
    metric, _ = Metric.objects.get_or_create(name="step_time", unit="s", better="lower", kind="time")
    made = []
    for number in range(4):
        pool = Pool.objects.create(name=f"pool-{number}")
        configuration = factories.get_configuration(case, pool=pool)
        row = Series.objects.create(configuration=configuration, metric=metric, headline=True)
        runs = Run.objects.bulk_create(
            Run(commit=commit, configuration=configuration, state="done", repetitions=5, time_limit=60)
            for commit in commits
        )
        Point.objects.bulk_create(
            Point(
                series=row, run=run, position=run.commit.position, low=0.00123, high=0.00134,
                samples=[0.00129] * 5,
                value=0.00171 if run.commit.position == 567 else 0.00129 + (run.commit.position % 7) / 1e5,
            )
            for run in runs
        )  # fmt: skip
        made.append(row)
    return made


def test_a_long_series_beside_others_is_a_small_page_and_a_part_of_it_is_whole(
    client: Client, long_series: list[Series]
) -> None:
    series, *others = long_series
    query = "show=600&relative=first&" + "&".join(f"beside={other.pk}" for other in others)
    answer = client.get(page_of(series, query))
    assert len(answer.content) < 150_000
    assert re.match(r"\d+ of 600 runs are drawn", answer.context["thinned"])
    figure = embedded_figure(client, page_of(series, query), "trend")
    for name in ("value", *(f"pool pool-{number}" for number in (1, 2, 3))):
        positions = trace_of(figure, name)["meta"]["positions"]
        assert {0, 567, 599} <= set(positions)
        assert len(positions) <= 400
    part = client.get(page_of(series, f"{query}&zoom=200-500", "part/")).json()
    assert part["thinned"] == ""
    assert trace_of(json.loads(part["figure"]), "value")["meta"]["positions"] == list(range(200, 501))
    exported = client.get(page_of(series, query, "points.json")).json()["points"]
    assert len(exported) == 2400


def test_a_series_that_is_longer_than_it_seems_is_thinned_all_the_same(
    client: Client, long_series: list[Series]
) -> None:
    # No latest position says that it is long.
    figure = embedded_figure(client, page_of(long_series[0], "show=600"), "trend")
    positions = trace_of(figure, "value")["meta"]["positions"]
    assert {0, 567, 599} <= set(positions)
    assert len(positions) <= 400


def test_asking_for_more_runs_than_there_are_takes_no_more_queries(
    client: Client, series: Series, django_assert_max_num_queries: Any
) -> None:
    client.get(page_of(series))
    with CaptureQueriesContext(connection) as queries:
        shown = client.get(page_of(series, "show=100"))
    with django_assert_max_num_queries(len(queries)):
        asked = client.get(page_of(series, "show=1000"))
    assert asked.context["figure"] == shown.context["figure"]


def test_however_much_an_address_asks_it_is_as_many_queries(
    client: Client, series: Series, on_h100: Series, django_assert_max_num_queries: Any, settings: Any
) -> None:
    settings.PACELINE_RATES = {}
    line = list(Commit.objects.order_by("position"))
    builders.create_regression(series, line[2], line[3])
    query = f"beside={on_h100.pk}&beside=@feature&relative=first&x=date"
    with django_assert_max_num_queries(12):
        client.get(page_of(series, query))
    with django_assert_max_num_queries(12):
        client.get(page_of(series, "view=phases"))
    for call in ("part/", "points.csv", "points.json"):
        with django_assert_max_num_queries(14):
            client.get(page_of(series, query, call))
