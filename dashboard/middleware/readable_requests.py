"""Requests that no view could read are answered with one sentence before they come to one."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest

from dashboard.problem_details import answer_problem, is_api_request

GetResponse = Callable[[HttpRequest], HttpResponse]
LONGEST_SHOWN = 40


def refuse_unreadable_requests(get_response: GetResponse) -> GetResponse:
    """Return the middleware: 400 for a NUL in the address, which Postgres has no text for, and for a charset
    other than UTF-8, which HTML's forms don't have."""

    def answer_request(request: HttpRequest) -> HttpResponse:
        problem = _charset_problem(request) or _address_problem(request)
        if not problem:
            return get_response(request)
        if is_api_request(request):
            return answer_problem(HTTPStatus.BAD_REQUEST, problem)
        return HttpResponseBadRequest(problem, content_type="text/plain")

    return answer_request


def _charset_problem(request: HttpRequest) -> str:
    charset = (request.content_params or {}).get("charset")
    if charset is None or _is_utf8(charset):
        return ""
    return f"The request's charset is {charset[:LONGEST_SHOWN]!r}, must be utf-8."


def _is_utf8(charset: str) -> bool:
    try:
        return codecs.lookup(charset).name in ("utf-8", "ascii")
    except (LookupError, ValueError):
        return False


def _address_problem(request: HttpRequest) -> str:
    if "\0" in request.path:
        return "The address has a NUL."
    for name, values in request.GET.lists():
        if "\0" in name or any("\0" in value for value in values):
            return f"The address has a NUL in {name[:LONGEST_SHOWN]!r}."
    return ""
