"""Serves static files by plain and by hashed names, the site's own compressed."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from django.conf import settings
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import Redirect

from dashboard.static_files.names import HashedFile, list_hashed_files
from dashboard.static_files.packing import pack_file


class ServeStaticFiles(WhiteNoiseMiddleware):
    """Each file by its plain name, kept for a minute, and its hashed one, for ever; the site's packed."""

    # Of this process: they are looked at once, however often the middleware is made, as tests do.
    known_files: ClassVar[dict[str, Any]] = {}

    def add_files_from_finders(self) -> None:
        if not self.known_files:
            own, packed = settings.CHECKOUT / "dashboard" / "static", settings.PACELINE_HOME / "static"
            super().add_files_from_finders()
            for url, file in self.hashed_urls.items():
                path = pack_file(file, packed) if own in file.path.parents else file.path
                self.add_file_to_dictionary(url, str(path))
            # Browsers ask for it by themselves where no page names the icon: at a file, an answer of the API.
            self.files["/favicon.ico"] = Redirect(f"{self.static_prefix}icon.svg")
            self.known_files.update(self.files)
        self.files.update(self.known_files)

    @cached_property
    def hashed_urls(self) -> dict[str, HashedFile]:
        return {self.static_prefix + file.hashed_name: file for file in list_hashed_files().values()}

    def immutable_file_test(self, _path: Any, url: str) -> bool:
        return url in self.hashed_urls
