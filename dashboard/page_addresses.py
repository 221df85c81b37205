"""The addresses of pages of numbered things, fast: a page links to hundreds of runs, series and commits.

Django's `reverse` looks at all patterns of a name each time. Here it is asked once for what stands around the
last argument.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from django.urls import get_script_prefix, reverse

# It fits what numbers, hashes and names are matched with, and occurs in no address by chance.
PLACE = "98765432109876543210"
# What stands in an address as it is.
UNQUOTED = re.compile(r"[A-Za-z0-9_-]+")


def page_address(name: str, *arguments: Any) -> str:
    """What `reverse(name, args=arguments)` says, of at least one argument that the page's pattern fits.

    That it fits is not looked at.
    """
    *leading, last = arguments
    text = str(last)
    if not isinstance(last, int) and not (isinstance(last, str) and UNQUOTED.fullmatch(text)):
        # Something may have to be quoted, or is missing.
        return reverse(name, args=arguments)
    before, after = _around_last(get_script_prefix(), name, *leading)
    return f"{before}{text}{after}"


@lru_cache(maxsize=10_000)
def _around_last(_script_prefix: str, name: str, *leading: Any) -> tuple[str, str]:
    before, after = reverse(name, args=[*leading, PLACE]).split(PLACE)
    return before, after
