"""No request and no judgement waits while Python looks through everything that the site has imported.

A full collection walks every object that lives: two hundred thousand once all pages are imported, which takes
longer than a page, and one is due every few hundred requests. Judging a run of many series makes so many
objects that one is due every time or two: it took a third of a judgement. What is imported stays for good, so
it is taken out of the collector's sight once: before the first request, after the first judgement. And to
import everything makes half a million objects, all of which stay: to look through the young ones at every 700
took an eighth of a web process's start.
"""

from __future__ import annotations

import functools
import gc
from importlib import import_module

# Objects made since the last collection until the next one: a page or a judgement makes tens of thousands,
# most of which are gone by themselves as soon as it is done.
YOUNG_OBJECTS = 20_000
# The same until something is frozen, while a process imports.
IMPORTED_OBJECTS = 100_000


def collect_rarely() -> None:
    """While a process starts, and until it freezes what it imported, if it ever does."""
    gc.set_threshold(IMPORTED_OBJECTS, *gc.get_threshold()[1:])


def freeze_imported_objects() -> None:
    """Import every page, and leave all that there is now out of later collections."""
    _import_pages()
    freeze_once()


@functools.cache
def freeze_once() -> None:
    """Leave all that there is now out of later collections. Called again it does nothing."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])


def _import_pages() -> None:
    """The addresses name the views, which import the rest, but for what is imported with its first value."""
    # Not above: the settings import this module, before Django can read them.
    from django.urls import get_resolver

    import_module("scipy.special")
    for _ in get_resolver().url_patterns:
        continue
