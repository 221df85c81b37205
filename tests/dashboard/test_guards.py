"""The guards that watch all tests beside this one see what they are there for."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from dashboard import repositories
from dashboard.models import Project, Regression
from tests import guards
from tests.dashboard import factories


@pytest.fixture
def regression(project: Project) -> Regression:
    return factories.create_regression(factories.create_commits(project, 3), 1, "step_time", 1)


def test_git_in_a_transaction_is_seen(tracked: Project, git_in_transactions: list[str]) -> None:
    tracked.mirror.fetch()
    assert git_in_transactions == []
    with transaction.atomic():
        repositories.select_commits(tracked.mirror, {"last": 1})
    assert git_in_transactions
    git_in_transactions.clear()


@pytest.mark.django_db(transaction=True)
def test_git_in_the_only_transaction_is_seen(tmp_path: object, git_in_transactions: list[str]) -> None:
    assert not connection.in_atomic_block
    mirror = Project.objects.create(slug="snakes", repository="/nowhere").mirror
    with transaction.atomic(), pytest.raises(repositories.RepositoryError):
        mirror.lines("log")
    assert len(git_in_transactions) == 1
    git_in_transactions.clear()


def write_by(path: str, code: str, regression: Regression) -> None:
    """Run code as if it stood in this file of the product."""
    names = {"regression": regression, "Regression": Regression}
    exec(compile(code, str(guards.PRODUCT / path), "exec"), names)  # noqa: S102


@pytest.mark.parametrize(
    "code",
    [
        "regression.save()",
        "Regression.objects.filter(pk=regression.pk).update(phase='act')",
        "Regression.objects.bulk_update([regression], ['phase'])",
        "Regression.objects.bulk_create([])",
        "regression.delete()",
        "regression.project.delete()",
        "Regression.objects.all().delete()",
        "regression.project.regressions.update(phase='act')",
    ],
)
def test_a_second_writer_is_seen(regression: Regression, second_writers: list[str], code: str) -> None:
    write_by("pages/planted.py", code, regression)
    assert set(second_writers) == {"pages/planted.py"}
    second_writers.clear()


@pytest.mark.parametrize("path", ["regressions/apply.py", "migrations/0099_planted.py"])
def test_its_writer_may_write(regression: Regression, second_writers: list[str], path: str) -> None:
    write_by(path, "regression.save()", regression)
    assert second_writers == []


def test_others_may_read_and_lock(regression: Regression, second_writers: list[str]) -> None:
    code = "list(Regression.objects.select_for_update()); regression.refresh_from_db()"
    write_by("pages/planted.py", code, regression)
    assert second_writers == []
