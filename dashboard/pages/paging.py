"""Long lists, a page at a time; which page is in the URL."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest


def requested_page(request: HttpRequest, items: QuerySet[Any], size: int, name: str = "page") -> Page[Any]:
    """The page that the URL's `name` asks for; a number beyond the end gives the last page."""
    return Paginator(items, size).get_page(request.GET.get(name))


def parse_whole_number(request: HttpRequest, name: str, default: int, most: int) -> int:
    """A number in the URL, at least 0 and at most `most`; Http404 where it is no number."""
    raw = request.GET.get(name, "")
    if not raw:
        return default
    # Longer ones are beyond any row, and Python refuses to read the longest.
    if not (raw.isascii() and raw.isdigit() and len(raw) < 19):
        raise Http404(f"{name} must be a whole number.")
    return min(int(raw), most)
