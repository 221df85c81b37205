"""The sections of what administrators of the site keep: each is an address, and a tab of the shell around."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard.access import visitor_of
from dashboard.access.rules import is_offered
from dashboard.pages.settings.sections import Section

# A new section needs a line here, its address, and its rule in dashboard/access/rules.py.
SITE_SECTIONS = (
    Section("site-accounts", "Accounts"),
    Section("site-jobs", "Failed jobs"),
    Section("site-audit", "Audit log"),
)


def site_context(request: HttpRequest, section: str) -> dict[str, Any]:
    visitor = visitor_of(request)
    offered = [entry for entry in SITE_SECTIONS if is_offered(visitor, entry.view_name)]
    return {"sections": offered, "section": section}
