"""The addresses of static files in templates: their hashed names."""

from __future__ import annotations

from django.conf import settings
from django.contrib.staticfiles.storage import StaticFilesStorage

from dashboard.static_files.names import list_hashed_files


class HashedFilesStorage(StaticFilesStorage):
    """Gives templates the hashed names; with DEBUG the plain ones, since files change then."""

    def url(self, name: str | None) -> str:
        known = None if settings.DEBUG else list_hashed_files().get(name or "")
        return super().url(known.hashed_name if known else name)
