"""What the house forbids, watched while tests run: git under a lock or in a page view, a second writer."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.handlers.base import BaseHandler
from django.db import connection
from django.db.models import QuerySet
from django.db.models.signals import post_delete, pre_save
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dashboard.models import Regression
from dashboard.repositories import git

PRODUCT = Path(git.__file__).parent.parent
WRITER = PRODUCT / "regressions" / "apply.py"
MIGRATIONS = PRODUCT / "migrations"
WRITES = ("update", "bulk_create", "bulk_update", "_raw_delete")


def transaction_depth() -> int:
    """How many transactions and savepoints are open."""
    return connection.in_atomic_block + len(connection.savepoint_ids)


@contextmanager
def watched_git(monkeypatch: pytest.MonkeyPatch, forbidden: Callable[[], bool]) -> Iterator[list[str]]:
    """The git processes that were started while they are forbidden."""
    started: list[str] = []
    run_child = git.run_child

    def run_watched(command: list[str], **options: Any) -> Any:
        if forbidden():
            started.append(" ".join(command))
        return run_child(command, **options)

    with monkeypatch.context() as patch:
        patch.setattr(git, "run_child", run_watched)
        yield started


@contextmanager
def watched_views(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The git processes that were started while a page was looked at, of a live server too."""
    viewing = threading.local()
    get_response = BaseHandler.get_response

    def answer_watched(handler: BaseHandler, request: HttpRequest) -> HttpResponseBase:
        viewing.page = request.method in ("GET", "HEAD")
        try:
            return get_response(handler, request)
        finally:
            viewing.page = False

    with monkeypatch.context() as patch:
        patch.setattr(BaseHandler, "get_response", answer_watched)
        with watched_git(monkeypatch, lambda: getattr(viewing, "page", False)) as started:
            yield started


def writing_file() -> Path | None:
    """The file of the product that writes just now; None where a test or a factory does."""
    frame = sys._getframe()
    while frame := frame.f_back:
        # A path only of what is found: a hundred frames lie below each write.
        if frame.f_code.co_filename.startswith(f"{PRODUCT}/"):
            return Path(frame.f_code.co_filename)
    return None


@contextmanager
def watched_writers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The files that wrote a regression and aren't its writer."""
    writers: list[str] = []

    def note_writer(**_: Any) -> None:
        file = writing_file()
        if file is not None and file != WRITER and MIGRATIONS not in file.parents:
            writers.append(file.relative_to(PRODUCT).as_posix())

    def watch_method(name: str) -> None:
        method = getattr(QuerySet, name)

        @functools.wraps(method)
        def write_watched(rows: QuerySet[Any], *arguments: Any, **options: Any) -> Any:
            if rows.model is Regression:
                note_writer()
            return method(rows, *arguments, **options)

        patch.setattr(QuerySet, name, write_watched)

    with monkeypatch.context() as patch:
        for name in WRITES:
            watch_method(name)
        pre_save.connect(note_writer, sender=Regression)
        post_delete.connect(note_writer, sender=Regression)
        try:
            yield writers
        finally:
            pre_save.disconnect(note_writer, sender=Regression)
            post_delete.disconnect(note_writer, sender=Regression)
