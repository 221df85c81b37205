"""No request waits while Python looks through everything that the site has imported.

A full collection walks every object that lives: two hundred thousand once all pages are imported, which takes
longer than a page, and one is due every few hundred requests. What is imported stays for good, so it is taken
out of the collector's sight once, before the first request.
"""

from __future__ import annotations

import gc

from django.urls import get_resolver

# Objects made since the last collection until the next one: a page makes tens of thousands, most of which are
# gone by themselves as soon as it is sent.
YOUNG_OBJECTS = 20_000


def freeze_imported_objects() -> None:
    """Import every page, and leave all that there is now out of later collections."""
    _import_pages()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])


def _import_pages() -> None:
    """The addresses name the views, which import the rest."""
    for _ in get_resolver().url_patterns:
        continue
