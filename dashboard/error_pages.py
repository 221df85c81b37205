"""The answers to what no view answers: pages for people, problems for the API."""

from __future__ import annotations

import re
import sys
from http import HTTPStatus

from django.conf import settings
from django.core.exceptions import BadRequest, RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseServerError
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template import loader
from django.views import defaults

from dashboard.middleware.browser_security import CONTENT_SECURITY_POLICY, format_policy, hash_source
from dashboard.postgresql.lost_connections import is_database_away
from dashboard.problem_details import NOT_HERE, answer_problem, is_api_request, is_for_scripts
from dashboard.structured_logs import current_ids

RETRY_SECONDS = 10
# What Django refuses to read of a form, before its page is asked.
UNREADABLE_FORMS = (
    (
        RequestDataTooBig,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"What was sent is larger than the {settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20} MiB that the site "
        "reads. Nothing was changed: go back, and send less.",
    ),
    (
        (TooManyFieldsSent, TooManyFilesSent),
        HTTPStatus.BAD_REQUEST,
        "What was sent has more fields or files than any form of this site. Nothing was changed.",
    ),
)
OWN_STYLE = re.compile("<style>(.*?)</style>", re.DOTALL)
OF_DJANGO = re.compile(r"No \w+ matches the given query\.")


def show_server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500 with the id by which the log tells what went wrong; 503 where the database doesn't answer.

    Called while the exception is being handled.
    """
    if is_database_away(sys.exception()):
        return show_no_database(request)
    known = current_ids().get("request")
    if is_for_scripts(request):
        sentence = "The site failed at this: its log says why, by the id of the request."
        return answer_problem(HTTPStatus.INTERNAL_SERVER_ERROR, sentence, request=known)
    # Without the request: context processors ask the database, which may be what went wrong.
    page = loader.get_template("500.html").render({"request_id": known})
    return HttpResponseServerError(page)


def show_no_database(request: HttpRequest) -> HttpResponse:
    """For people a page that needs no other file, and loads itself again, unless something was sent."""
    headers = {"Retry-After": str(RETRY_SECONDS)}
    if is_for_scripts(request):
        sentence = "The database doesn't answer: ask again in a moment."
        return answer_problem(HTTPStatus.SERVICE_UNAVAILABLE, sentence, headers=headers)
    shown = {"retry_seconds": RETRY_SECONDS, "was_sent": request.method not in ("GET", "HEAD")}
    page = loader.get_template("503.html").render(shown)
    styles = tuple(map(hash_source, OWN_STYLE.findall(page)))
    policy = CONTENT_SECURITY_POLICY | {"style-src": styles}
    headers["Content-Security-Policy"] = format_policy(policy)
    return HttpResponse(page, status=HTTPStatus.SERVICE_UNAVAILABLE, headers=headers)


def show_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if is_api_request(request):
        return answer_problem(HTTPStatus.NOT_FOUND, NOT_HERE)
    # Django's own sentence names a class of the code: it tells nobody anything.
    is_django_sentence = OF_DJANGO.fullmatch(str(exception))
    if request.__dict__.get("takes_tokens"):
        # Asked for by scripts, as points.csv is: they get what they get where the middleware refuses.
        return answer_problem(HTTPStatus.NOT_FOUND, NOT_HERE if is_django_sentence else str(exception))
    return defaults.page_not_found(request, Http404(NOT_HERE) if is_django_sentence else exception)


def show_bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if is_api_request(request):
        return answer_problem(HTTPStatus.BAD_REQUEST, "The request can't be read.")
    if isinstance(exception, BadRequest):
        # Said by a view, of a field of its address.
        if request.__dict__.get("takes_tokens"):
            return answer_problem(HTTPStatus.BAD_REQUEST, str(exception))
        return render(request, "refused.html", {"problem": str(exception)}, status=HTTPStatus.BAD_REQUEST)
    for kind, status, sentence in UNREADABLE_FORMS:
        if isinstance(exception, kind):
            return render(request, "refused.html", {"problem": sentence}, status=status)
    return HttpResponseBadRequest("The request can't be read.", content_type="text/plain")


def show_forged_request(request: HttpRequest, reason: str = "") -> HttpResponseBase:  # noqa: ARG001 (Django's)
    """Of a session that writes: what it sent doesn't show that it came from a page of this site."""
    if is_api_request(request):
        sentence = "A session needs a CSRF token to write; a token needs none: Authorization: Bearer plt_..."
        return answer_problem(HTTPStatus.FORBIDDEN, sentence)
    sentence = (
        "What you sent came from a page that is older than your session, or your browser keeps no cookies. "
        "Nothing was changed: go back, load the page again, and send it once more."
    )
    return render(request, "403.html", {"exception": sentence}, status=HTTPStatus.FORBIDDEN)
