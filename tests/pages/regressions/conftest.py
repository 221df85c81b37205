"""The regression that most tests of these pages look at, made once for each module that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from dashboard.models import Regression
from tests.dashboard.shared_rows import share_rows
from tests.pages import builders


@pytest.fixture(scope="module")
def stepped_regression(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[int]:
    """Its key. All tests of such a module see its rows: none of them begins with an empty database."""
    with share_rows(django_db_blocker, lambda: builders.create_stepped_regression().pk) as made:
        yield made


@pytest.fixture
def suspected(stepped_regression: int, db: None) -> Regression:
    return Regression.objects.get(pk=stepped_regression)


@pytest.fixture
def confirmed(suspected: Regression) -> Regression:
    suspected.state = Regression.State.CONFIRMED
    suspected.save(update_fields=["state"])
    return suspected
