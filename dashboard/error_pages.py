"""The page of an error that nobody foresaw."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseServerError
from django.template import loader

from dashboard.structured_logs import current_ids


def show_server_error(_request: HttpRequest) -> HttpResponseServerError:
    """Answer 500 with the id by which the log tells what went wrong."""
    # Without the request: context processors ask the database, which may be what went wrong.
    page = loader.get_template("500.html").render({"request_id": current_ids().get("request")})
    return HttpResponseServerError(page)
