"""Finds static files by their hashed names, for servers that ask Django's finders."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder

from dashboard.static_files.names import list_hashed_files


@cache
def paths_by_hashed_name() -> dict[str, str]:
    return {file.hashed_name: str(file.path) for file in list_hashed_files().values()}


class HashedNamesFinder(BaseFinder):
    """By hashed names, for servers that ask finders alone, such as that of Django's tests."""

    def find(self, path: str, find_all: bool = False, **_former: Any) -> Any:
        found = paths_by_hashed_name().get(path)
        return [found] if found and find_all else found or []

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[Any]:  # noqa: ARG002
        """None: the others list each file once."""
        return []
