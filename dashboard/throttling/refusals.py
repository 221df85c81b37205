"""The answer to who comes too often: 429, when to come again, one sentence."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.problem_details import answer_problem, is_api_request


def refuse_for_now(request: HttpRequest, seconds: int, what: str = "requests") -> HttpResponse:
    """As a page for browsers, as a problem of the API."""
    sentence = f"Too many {what}: try again in {waiting_time(seconds)}."
    if is_api_request(request):
        response = answer_problem(HTTPStatus.TOO_MANY_REQUESTS, sentence)
    else:
        context = {"sentence": sentence}
        response = render(request, "429.html", context, status=HTTPStatus.TOO_MANY_REQUESTS)
    response["Retry-After"] = str(seconds)
    response["Cache-Control"] = "no-store"
    return response


def waiting_time(seconds: int) -> str:
    """`1 second`, `90 seconds`, `15 minutes`."""
    if seconds > 120:
        return f"{-(-seconds // 60)} minutes"
    return "1 second" if seconds == 1 else f"{seconds} seconds"
