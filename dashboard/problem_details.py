"""What an address of the API answers where it can't do as asked: problem details, RFC 9457."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import add_never_cache_headers
from pydantic import BaseModel, Field

PREFIX = "/api/v1/"
PROBLEM_TYPE = "application/problem+json"
NOT_HERE = "There is nothing at this address."
NEEDS_TOKEN = "Send a token: Authorization: Bearer plt_..."  # noqa: S105 - no token


class FieldProblem(BaseModel):
    """What is wrong with one field of a request."""

    field: str
    detail: str


class Problem(BaseModel):
    """Why a request wasn't answered as asked."""

    type: str = Field(description="`about:blank`: the status says what kind of problem it is.")
    title: str = Field(description="The name of the status.")
    status: int
    detail: str = Field(description="One sentence for people.")
    field: str | None = Field(None, description="The field that is wrong, where it is one.")
    errors: list[FieldProblem] | None = Field(None, description="All of them, where several are wrong.")
    request: str | None = Field(None, description="Of an error of the site: the id that its log has.")


class ApiError(Exception):
    """Raised by an operation: it is answered with this status and sentence."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        field: str = "",
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field, self.headers = status, detail, field, headers or {}


def is_api_request(request: HttpRequest) -> bool:
    return request.path.startswith(PREFIX)


def is_for_scripts(request: HttpRequest) -> bool:
    """Whether the address is of the API, or takes its tokens too, as points.csv does."""
    return is_api_request(request) or bool(request.__dict__.get("takes_tokens"))


def answer_problem(
    status: int, detail: str, field: str = "", headers: Mapping[str, str] | None = None, **members: Any
) -> HttpResponse:
    """`members`: further ones of Problem. No cache keeps the answer."""
    known = HTTPStatus(status)
    problem = {"type": "about:blank", "title": known.phrase, "status": status, "detail": detail, **members}
    if field:
        problem["field"] = field
    # Without Problem's own defaults: what isn't said is left out.
    body = Problem.model_validate(problem).model_dump_json(exclude_unset=True)
    response = HttpResponse(body, content_type=PROBLEM_TYPE, status=status, headers=dict(headers or {}))
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="paceline"'
    add_never_cache_headers(response)
    return response


def allowed_methods(methods: Iterable[str]) -> list[str]:
    """In the order in which they are listed: what takes GET takes HEAD."""
    known = sorted(set(methods) - {"HEAD"})
    if "GET" in known:
        known.insert(known.index("GET") + 1, "HEAD")
    return known


def method_sentence(method: str, known: Sequence[str]) -> str:
    return f"This address takes {' and '.join(known)}, not {method}."


def refuse_method(method: str, allowed: Iterable[str]) -> HttpResponse:
    known = allowed_methods(allowed)
    sentence = method_sentence(method, known)
    return answer_problem(HTTPStatus.METHOD_NOT_ALLOWED, sentence, headers={"Allow": ", ".join(known)})
