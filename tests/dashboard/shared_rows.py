"""Rows that many tests of a module begin with, made once: each test works in a savepoint behind them.

And folders beside them, which each test leaves as it found them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from django.db import connection, transaction
from pytest_django.plugin import DjangoDbBlocker

from tests import guards

Made = TypeVar("Made")


@contextmanager
def watch_product() -> Iterator[None]:
    """What the product does meanwhile is held to what `tests.guards` forbids, as in each test."""
    outside = guards.transaction_depth()
    with (
        pytest.MonkeyPatch.context() as patch,
        guards.watched_git(patch, lambda: guards.transaction_depth() > outside) as git,
        guards.watched_writers(patch) as writers,
    ):
        yield
        assert (git, writers) == ([], [])


@contextmanager
def share_rows(blocker: DjangoDbBlocker, make: Callable[[], Made]) -> Iterator[Made]:
    """What `make` returns, in a transaction around those of the tests, which is rolled back behind them."""
    around = transaction.atomic()
    with blocker.unblock():
        around.__enter__()
    try:
        with blocker.unblock(), watch_product():
            made = make()
            # Once: what is still to be checked would be in each test.
            connection.check_constraints()
        yield made
    finally:
        with blocker.unblock():
            transaction.set_rollback(True)
            around.__exit__(None, None, None)


@contextmanager
def restored_folders(kept: Path, *folders: Path) -> Iterator[None]:
    """What a test does to the folders is undone behind it; `kept` is a new folder."""
    copies = {folder: kept / str(number) for number, folder in enumerate(folders)}
    for folder, copy in copies.items():
        shutil.copytree(folder, copy, symlinks=True)
    yield
    for folder, copy in copies.items():
        shutil.rmtree(folder)
        shutil.copytree(copy, folder, symlinks=True)
