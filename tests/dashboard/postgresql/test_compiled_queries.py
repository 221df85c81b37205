"""A compiled query answers as the query set that it stands for, with any values, and is put together once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DataError, OperationalError, connection
from django.db.models import Count, IntegerField, QuerySet, Window
from django.db.models.functions import RowNumber
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.failed_jobs import fails_each_time
from dashboard.models import Commit, Membership, Point, Project, Regression, Run
from dashboard.postgresql import nonempty_lists
from dashboard.postgresql.compiled_queries import NOW, CompiledQuery, Parameter
from dashboard.postgresql.prepared_statements import preparing_statements
from dashboard.querysets import regressions
from dashboard.querysets.deferred_joins import is_among, read_with_details
from dashboard.querysets.runs import RUNS_OF_KEYS, runs_with_related
from dashboard.querysets.visibility import ProjectVisibility, VisibilityRule
from tests.dashboard import factories
from tests.pages import builders

pytestmark = pytest.mark.django_db


def test_it_is_put_together_once_and_asked_with_each_value() -> None:
    first, second = builders.create_project("first"), builders.create_project("second")
    commits = [builders.create_commits(project, 3) for project in (first, second)]
    built = []

    def build() -> QuerySet[Commit]:
        built.append(1)
        rows = Commit.objects.filter(project=Parameter("project"), position__gt=Parameter("above"))
        return rows.select_related("project").order_by("-position")

    query = CompiledQuery(build)
    for project, own in zip((first, second), commits, strict=True):
        for above in (own[0].position, own[1].position):
            expected = [commit for commit in reversed(own) if commit.position > above]
            with CaptureQueriesContext(connection) as queries:
                found = query.read_rows(project=project.pk, above=above)
                assert [commit.project.slug for commit in found] == [project.slug] * len(expected)
            assert found == expected
            assert len(queries) == 1
    assert len(built) == 1


def test_each_shape_is_a_statement_of_its_own() -> None:
    project = builders.create_project()
    commits = builders.create_commits(project, 4)
    query = CompiledQuery(lambda order, most: Commit.objects.order_by(order)[:most])
    assert query.read_rows("position", 2) == commits[:2]
    assert query.read_rows("-position", 3) == commits[:0:-1]
    assert query.read_rows("position", 2) == commits[:2]


def test_a_value_that_is_missing_is_an_error() -> None:
    query = CompiledQuery(lambda: Commit.objects.filter(position=Parameter("position")))
    with pytest.raises(KeyError, match="position"):
        query.read_rows()


def test_a_moment_may_be_reckoned_with() -> None:
    builders.create_machine("seen", timedelta(seconds=5))
    builders.create_machine("silent", timedelta(hours=1))
    from dashboard.querysets.projects import silent_machines

    query = CompiledQuery(lambda: silent_machines(NOW))
    now = timezone.now()
    for moment in (now, now + timedelta(hours=2), now - timedelta(hours=2)):
        assert query.read_rows(now=moment) == list(silent_machines(moment))


def test_what_can_hold_nothing_lists_nothing() -> None:
    query = CompiledQuery(lambda: Commit.objects.filter(pk__in=[]))
    assert query.read_rows() == []
    assert query.exists_statement() is None


def test_values_and_windows_and_groups() -> None:
    project = builders.create_project()
    builders.create_commits(project, 3)
    ranked = Commit.objects.annotate(rank=Window(RowNumber(), order_by="-position"))
    query = CompiledQuery(
        lambda: (
            ranked.filter(rank__lte=Parameter("most", IntegerField()))
            .order_by("rank")
            .values_list("subject", "rank")
        )
    )
    newest = Commit.objects.order_by("-position")
    assert query.read_rows(most=2) == [(newest[0].subject, 1), (newest[1].subject, 2)]
    counted = Commit.objects.order_by().values("project").annotate(number=Count("pk"))
    assert CompiledQuery(lambda: counted).read_rows() == [{"project": project.pk, "number": 3}]


@pytest.mark.django_db(transaction=True)
def test_threads_that_ask_at_once_get_their_own() -> None:
    own = {slug: builders.create_commits(builders.create_project(slug), 3) for slug in ("a", "b", "c")}
    query = CompiledQuery(lambda: Commit.objects.filter(project__slug=Parameter("slug")).order_by("position"))

    def read(slug: str) -> list[Commit]:
        try:
            return query.read_rows(slug=slug)
        finally:
            connection.close()

    asked = [*own] * 10
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(read, asked)) == [own[slug] for slug in asked]


def test_rows_are_picked_in_their_order_with_their_details_in_one_query() -> None:
    commits = builders.create_measured_commits(5)
    rows = Run.objects.filter(commit__in=commits[1:]).order_by("-commit__position")[:3]
    with CaptureQueriesContext(connection) as queries:
        picked = read_with_details(RUNS_OF_KEYS, rows)
        assert [run.commit for run in picked] == commits[:1:-1]
        assert {run.configuration.case.project.slug for run in picked} == {"snake"}
    assert len(queries) == 1
    assert [run.pk for run in picked] == [run.pk for run in rows]
    newest = Run.objects.order_by("-pk")[:1].union(Run.objects.order_by("pk")[:1])
    assert set(runs_with_related().filter(is_among(newest))) == {rows.model.objects.earliest("pk"), picked[0]}


def test_a_percent_sign_in_a_value_stays_what_it_is() -> None:
    commit = builders.create_commits(builders.create_project(), 1, "100%s off % of it")[0]
    query = CompiledQuery(
        lambda: Commit.objects.filter(pk__in_array=Parameter("keys"), subject__contains="%s off %")
    )
    assert query.read_rows(keys=[commit.pk]) == [commit]
    assert query.read_rows(keys=Commit.objects.filter(subject__contains="%s").values("pk")) == [commit]


@pytest.mark.parametrize("kind", ["nobody", "member", "stranger", "operator"])
def test_who_sees_what_is_the_same_composed_or_not(kind: str) -> None:
    public = builders.create_project("public", visibility=Project.Visibility.PUBLIC)
    private = builders.create_project("private", visibility=Project.Visibility.PRIVATE)
    builders.create_project("gone", removed_slug="gone")
    user = User.objects.create_user("ada")
    if kind == "member":
        Membership.objects.create(user=user, project=private, role=Membership.Role.VIEWER)
    sees_private = kind in ("member", "operator")
    for token in (None, private.pk, public.pk):
        rule = VisibilityRule(every=kind == "operator", own=kind != "nobody", by_token=token is not None)
        visibility = ProjectVisibility(rule, None if kind == "nobody" else user.pk, token)
        visible = {public, private} if sees_private else {public}
        expected = visible if token is None else {project for project in visible if project.pk == token}
        assert set(visibility.rows()) == expected
        query = CompiledQuery(lambda rule: rule.given_projects())
        assert set(query.read_rows(rule, **visibility.values)) == expected


def test_every_filter_counts_what_it_lists() -> None:
    """Of regressions in every state, triaged in every way, recovered and withdrawn, imported and measured."""
    first, other = builders.create_stepped_regression(), builders.create_project("other")
    ways = product(Regression.State, Regression.Triaged, (None, timezone.now()), (None, first.last_good))
    for state, triaged, withdrawn_at, recovered_by in ways:
        copy_regression(
            first, state=state, triaged=triaged, withdrawn_at=withdrawn_at, recovered_by=recovered_by
        )
    everyone = ProjectVisibility(VisibilityRule(every=True, own=False, by_token=False), None, None)
    for origin in (Run.Origin.MEASURED, Run.Origin.IMPORTED):
        Run.objects.update(origin=origin)
        for project in (None, first.project, other):
            projects = Project.objects.filter(pk=project.pk) if project else Project.objects.all()
            listed = {
                name: regressions.filter_regressions(name, projects).count() for name in regressions.FILTERS
            }
            assert regressions.count_by_filter(everyone, project) == listed
            for name in ("open", "all"):
                newest = regressions.newest_of_filter(name, everyone, project, 5)
                assert newest == list(regressions.filter_regressions(name, projects)[:5])
            if project != other:
                assert bool(listed["open"]) == (origin == Run.Origin.MEASURED)
                assert bool(listed["imported"]) == (origin == Run.Origin.IMPORTED)
    # They stand at one commit, which the end of the transaction would refuse.
    Regression.objects.all().delete()


def copy_regression(row: Regression, **fields: object) -> Regression:
    made = Regression.objects.get(pk=row.pk)
    made.pk = None
    for name, value in fields.items():
        setattr(made, name, value)
    made.save(force_insert=True)
    return made


def test_lists_without_rows_cost_one_query_together() -> None:
    commits = builders.create_commits(builders.create_project(), 2)
    lists = {
        "commits": CompiledQuery(
            lambda: Commit.objects.filter(position__gte=Parameter("least")).order_by("pk")
        ),
        "runs": CompiledQuery(lambda: Run.objects.all()),
        "never": CompiledQuery(lambda: Run.objects.none()),
    }
    with CaptureQueriesContext(connection) as queries:
        found = nonempty_lists.read_nonempty(lists, least=0)
    assert found == {"commits": commits, "runs": [], "never": []}
    assert len(queries) == 2


def test_it_is_planned_once_for_a_connection_and_for_all_values() -> None:
    project = builders.create_project()
    commits = builders.create_commits(project, 4)
    query = CompiledQuery(
        lambda: Commit.objects.filter(subject__contains="7000%", position__gt=Parameter("above")).order_by(
            "pk"
        )
    )
    Commit.objects.filter(pk=commits[3].pk).update(subject="7000% faster")
    for above, expected in ((0, commits[3:]), (70_000, []), (2, commits[3:])):
        assert query.read_rows(above=above) == expected
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(generic_plans), sum(custom_plans) FROM pg_prepared_statements"
            " WHERE strpos(statement, '%7000') > 0"
        )
        # A number that needs more bytes is of another type, and has a statement of its own.
        assert cursor.fetchone() == (3, 0)


@pytest.mark.parametrize(("divisor", "left"), [(1, 2), (0, 0)])
def test_what_is_prepared_outlives_its_transaction_unless_it_failed(divisor: int, left: int) -> None:
    other = connection.copy()
    with closing(other):
        other.set_autocommit(False)
        with suppress(DataError), preparing_statements(other), other.cursor() as cursor:
            cursor.execute("SELECT 1 AS outlives")
            cursor.execute(f"SELECT 1 / {divisor} AS outlives")
        if divisor:
            other.savepoint_rollback(other.savepoint())
        other.rollback()
        with other.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%AS outlives'")
            assert cursor.fetchone() == (left,)


@pytest.mark.parametrize("is_binary", [False, True])
def test_a_column_that_changes_its_type_is_read_again_at_once(is_binary: bool) -> None:
    other = connection.copy()

    def read_number() -> Any:
        with preparing_statements(other, binary=is_binary), other.cursor() as cursor:
            cursor.execute("SELECT number FROM altered")
            return cursor.fetchone()

    def alter_column(kind: str) -> None:
        # Outside of what prepares: psycopg doesn't notice, as if another process altered it.
        with other.cursor() as cursor:
            cursor.execute(f"ALTER TABLE altered ALTER number TYPE {kind} USING number::{kind}")

    with closing(other):
        with other.cursor() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE altered AS SELECT 7 AS number")
        assert read_number() == (7,)
        alter_column("text")
        assert read_number() == ("7",)
        alter_column("int")
        other.set_autocommit(False)
        with pytest.raises(OperationalError) as passing:
            read_number()
        assert not fails_each_time(passing.value)
        other.rollback()
        assert read_number() == (7,)


def test_a_connection_keeps_what_many_pages_ask() -> None:
    for number in range(120):
        filters = {"subject": f"kept {number}", "pk": Parameter("pk")}
        CompiledQuery(partial(Commit.objects.filter, **filters)).read_rows(pk=0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%''kept %'")
        assert cursor.fetchone() == (120,)


def test_behind_a_pooler_nothing_is_prepared(settings: Any) -> None:
    settings.PACELINE_PREPARED_STATEMENTS = False
    commits = builders.create_commits(builders.create_project(), 2)
    query = CompiledQuery(lambda: Commit.objects.filter(subject__endswith="nowhere", pk=Parameter("pk")))
    assert query.read_rows(pk=commits[0].pk) == []
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%nowhere%'")
        assert cursor.fetchone() == (0,)


@pytest.mark.parametrize("is_prepared", [True, False])
def test_numbers_come_in_their_own_format_to_the_last_bit(settings: Any, is_prepared: bool) -> None:
    settings.PACELINE_PREPARED_STATEMENTS = is_prepared
    value, samples = 0.1 + 0.2, [1 / 3, 5e-324, -0.0, 1.7976931348623157e308]
    (commit,) = builders.create_commits(builders.create_project(), 1)
    run = factories.create_run(commit, factories.create_case(commit.project))
    series = factories.get_series(run, "step_time")
    Point.objects.create(series=series, run=run, position=7, value=value, samples=samples, tainted=True)
    query: CompiledQuery[Any] = CompiledQuery(
        lambda: Point.objects.filter(series__in_array=Parameter("series")).values_list(
            "series_id", "position", "value", "samples", "tainted", "series__metric__name"
        ),
        binary=True,
    )
    ((key, *row),) = query.read_values(tuple, series=[series.pk])
    assert key == series.pk
    assert repr(row) == repr([7, value, samples, True, "step_time"])
