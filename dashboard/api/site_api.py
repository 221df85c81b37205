"""The site's API: its operations, how their requests are read, and what is answered where one can't be.

An operation is a function of a router in ROUTERS. Who may use it says dashboard/access/rules.py by the name
of its address and its method: the middleware has asked that before it is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from typing import Any

import orjson
from django.core.exceptions import ImproperlyConfigured, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from ninja import NinjaAPI, Router
from ninja.errors import HttpError, ValidationError
from ninja.operation import PathView
from ninja.parser import Parser
from ninja.renderers import BaseRenderer
from ninja.utils import replace_path_param_notation

from dashboard.api import (
    channels,
    checks,
    claims,
    commits,
    comparisons,
    documents,
    experiments,
    machines,
    members,
    project_settings,
    projects,
    regressions,
    run_processes,
    runs,
    series,
    tokens,
)
from dashboard.api.etags import add_etag
from dashboard.api.shapes import UNKNOWN_FIELD
from dashboard.host_protocol import holds_unstorable
from dashboard.problem_details import NOT_HERE, ApiError, answer_problem

VERSION = "1"
ROUTERS: tuple[Router, ...] = (
    *(projects.router, project_settings.router, series.router, commits.router, runs.router),
    *(experiments.router, regressions.router, machines.router, channels.router, members.router),
    *(tokens.router, documents.router, checks.router, run_processes.router, comparisons.router),
    claims.router,
)
JSON_TYPE = "application/json"
MOST_ERRORS = 10
# By pydantic's type of a problem what is said in other words.
PROBLEMS = {
    "missing": "it is missing.",
    "extra_forbidden": "there is no field of that name.",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "it must be an object."),
    "list_type": "it must be a list.",
    "string_type": "it must be a text.",
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "it must be a whole number."
    ),
    **dict.fromkeys(("float_type", "float_parsing"), "it must be a number."),
    **dict.fromkeys(("bool_type", "bool_parsing"), "it must be true or false."),
}
SUBJECT = re.compile(r"^(Input|String|List|Value) should")
DESCRIPTION = """\
What the pages of this site show, and what people do there, for scripts.

Send a token of the project: `Authorization: Bearer plt_...`. What is public needs none. Lists have pages: \
`next` is the address of the next one. Each answer to GET has an `ETag`; who sends that as `If-None-Match` \
is answered 304 while nothing has changed. An error is a problem (RFC 9457) whose `detail` is one sentence.\
"""


class JsonParser(Parser):
    """Bodies as orjson reads them: neither NaN nor nesting without end."""

    def parse_body(self, request: HttpRequest) -> Any:
        body = orjson.loads(request.body)
        # Postgres has no text for it.
        if b"\\u0000" in request.body and holds_unstorable(body):
            raise _refuse_nul(body)
        return body


def _refuse_nul(body: Any) -> ApiError:
    members = body.items() if isinstance(body, dict) else ()
    field = next((name for name, value in members if holds_unstorable(value)), "")
    if not field or holds_unstorable(field):
        return ApiError(HTTPStatus.BAD_REQUEST, "The body has a NUL in a text.")
    return ApiError(HTTPStatus.BAD_REQUEST, f"{field[:40]}: there is a NUL in it.", field[:40])


class JsonRenderer(BaseRenderer):
    media_type = JSON_TYPE

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> Any:  # noqa: ARG002
        return orjson.dumps(data)


def build_api() -> NinjaAPI:
    # Neither page nor description of its own: dashboard/api/description.py has both.
    made = NinjaAPI(
        title="Paceline",
        version=VERSION,
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        urls_namespace="api",
        parser=JsonParser(),
        renderer=JsonRenderer(),
    )
    for kind, answer in EXCEPTION_ANSWERS.items():
        made.add_exception_handler(kind, answer)
    for router in ROUTERS:
        made.add_router("", router)
    return made


def _answer_api_error(_request: HttpRequest, error: Any) -> HttpResponse:
    return answer_problem(error.status, error.detail, error.field, error.headers)


def _answer_missing(_request: HttpRequest, _error: Any) -> HttpResponse:
    return answer_problem(HTTPStatus.NOT_FOUND, NOT_HERE)


def _answer_invalid(_request: HttpRequest, error: Any) -> HttpResponse:
    """One sentence on the first field that is wrong; where several are, each in `errors`."""
    errors = [
        {"field": field_name(problem["loc"]), "detail": problem_sentence(problem)} for problem in error.errors
    ]
    first = errors[0]
    members: dict[str, Any] = {"errors": errors[:MOST_ERRORS]} if len(errors) > 1 else {}
    return answer_problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, f"{first['field']}: {first['detail']}", first["field"], **members
    )


def field_name(location: tuple[Any, ...]) -> str:
    """`limit`, `actions.0`: without what an operation calls the argument that holds it."""
    source, *rest = location
    inner = rest[1:] if source == "body" else rest
    return ".".join(map(str, inner)) or str(source)


def problem_sentence(problem: dict[str, Any]) -> str:
    """What pydantic says, as a sentence in the manner of the site."""
    kind, sentence = problem["type"], str(problem["msg"]).removeprefix("Value error, ").rstrip(".")
    if kind in PROBLEMS:
        return PROBLEMS[kind]
    if kind == UNKNOWN_FIELD:
        return sentence
    if kind == "literal_error":
        # Nothing, which is the default, is nobody's choice.
        sentence = sentence.replace("'', ", "", 1).replace("'' or ", "", 1)
    return f"{SUBJECT.sub('it must', sentence).replace(' after validation', '')}."


def _answer_http_error(_request: HttpRequest, error: Any) -> HttpResponse:
    """Ninja's own: a body that can't be read."""
    cause = error.__cause__
    if isinstance(cause, ApiError):
        return answer_problem(cause.status, cause.detail, cause.field)
    return answer_problem(error.status_code, "The body is no JSON that can be read.")


def _answer_large(_request: HttpRequest, _error: Any) -> HttpResponse:
    return answer_problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is larger than the site reads.")


def _answer_unreadable(_request: HttpRequest, _error: Any) -> HttpResponse:
    return answer_problem(HTTPStatus.BAD_REQUEST, "The request can't be read to its end.")


EXCEPTION_ANSWERS: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
    ApiError: _answer_api_error,
    Http404: _answer_missing,
    ValidationError: _answer_invalid,
    HttpError: _answer_http_error,
    RequestDataTooBig: _answer_large,
    SuspiciousOperation: _answer_unreadable,
    UnreadablePostError: _answer_unreadable,
}


class OperationsView:
    """All operations at one address. Not exempt from CSRF as Ninja's view is: a session needs its token here
    as on every page."""

    def __init__(self, path_view: PathView) -> None:
        self.path_view = path_view
        self.answer: Callable[..., HttpResponseBase] = path_view.get_view()
        self.methods = frozenset(method for operation in path_view.operations for method in operation.methods)

    def __call__(self, request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        if request.method == "HEAD":
            # The server leaves the body out.
            request.method = "GET"
        if problem := self.find_problem(request):
            return problem
        response = self.answer(request, **arguments)
        return add_etag(request, response) if request.method == "GET" else response

    def find_problem(self, request: HttpRequest) -> HttpResponse | None:
        operation = next(row for row in self.path_view.operations if request.method in row.methods)
        known: set[str] = set()
        reads_json = False
        for model in operation.models:
            if model.__ninja_param_source__ == "query":
                known |= set(model.__ninja_flatten_map__)
            reads_json |= model.__ninja_param_source__ == "body"
        for name, values in request.GET.lists():
            problem = ""
            if name not in known:
                problem = "there is no parameter of that name here."
            elif len(values) > 1:
                problem = "it is given more than once."
            if problem:
                return answer_problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name[:40]}: {problem}", name[:40])
        if reads_json and request.content_type != JSON_TYPE and request.headers.get("Content-Length") != "0":
            sentence = f"Send the body as {JSON_TYPE}: it is {(request.content_type or 'of no type')[:60]!r}."
            return answer_problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, sentence)
        return None


@cache
def api_patterns() -> list[URLPattern]:
    """One for each address, whatever its methods: Ninja itself makes one for each method."""
    views = [view for router in api._get_bound_routers() for view in router.path_operations.items()]
    routes = [replace_path_param_notation(written) for written, _ in views]
    if len(set(routes)) < len(routes):
        raise ImproperlyConfigured("The operations at one address of the API belong in one router.")
    return [
        path(route, OperationsView(path_view), name=path_view.url_name)
        for route, (_, path_view) in zip(routes, views, strict=True)
    ]


api = build_api()
