from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from whitenoise.middleware import WhiteNoiseMiddleware

from dashboard.static_files.names import HashedFile, list_hashed_files
from dashboard.static_files.packing import pack_file


class ServeStaticFiles(WhiteNoiseMiddleware):
    """Each file by its plain name, kept for a minute, and its hashed one, for ever; the site's packed."""

    hashed_urls: Mapping[str, HashedFile] = {}

    def add_files_from_finders(self) -> None:
        own, packed = settings.CHECKOUT / "dashboard" / "static", settings.PACELINE_HOME / "static"
        self.hashed_urls = {
            self.static_prefix + file.hashed_name: file for file in list_hashed_files().values()
        }
        super().add_files_from_finders()
        for url, file in self.hashed_urls.items():
            path = pack_file(file, packed) if own in file.path.parents else file.path
            self.add_file_to_dictionary(url, str(path))

    def immutable_file_test(self, _path: Any, url: str) -> bool:
        return url in self.hashed_urls
