"""A host's request: its token, its message, and the answer where either can't be used."""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import UnreadablePostError
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from dashboard import hosts
from dashboard.host_protocol import MessageError, MessageFields, read_message
from dashboard.hosts import HostRefused, JoinRefused
from dashboard.ingest import BadDocument
from dashboard.leases import LeaseLost
from dashboard.models import Machine
from dashboard.postgresql.lost_connections import is_database_away
from dashboard.repositories import RepositoryBusy, RepositoryError
from dashboard.runs import WrongState

# Of a message. A document is read by its own view, up to what documents may have.
LARGEST_MESSAGE = 8 * 1024 * 1024
# To each failure the status that tells a host what to do; those of 5xx it tries again.
STATUSES: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (MessageError, HTTPStatus.BAD_REQUEST),
    (JoinRefused, HTTPStatus.FORBIDDEN),
    (HostRefused, HTTPStatus.UPGRADE_REQUIRED),
    (LeaseLost, HTTPStatus.CONFLICT),
    (WrongState, HTTPStatus.CONFLICT),
    (BadDocument, HTTPStatus.UNPROCESSABLE_ENTITY),
    (RepositoryBusy, HTTPStatus.SERVICE_UNAVAILABLE),
    (RepositoryError, HTTPStatus.FAILED_DEPENDENCY),
)
UNKNOWN_HOST = "This host's token is unknown or was revoked."

View = Callable[..., HttpResponseBase]


class TokenRefused(Exception):  # noqa: N818 - reads as a fact
    """The request names no token of a machine."""


def host_call(act: Callable[[Machine, MessageFields], dict[str, Any]]) -> View:
    """A view that calls `act` with the machine whose token is sent and the message; JSON both ways."""

    @post_only
    def answer(request: HttpRequest) -> HttpResponse:
        machine = requesting_machine(request)
        return JsonResponse(act(machine, read_message(read_body(request, LARGEST_MESSAGE))))

    return functools.update_wrapper(answer, act)


def post_only(view: View) -> View:
    """Take POST alone, from no browser; a failure that a host can act on is one sentence of JSON."""

    @never_cache
    @csrf_exempt
    def answer(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponseBase:
        if request.method != "POST":
            refused = refuse_request(HTTPStatus.METHOD_NOT_ALLOWED, "This address takes POST.")
            refused.headers["Allow"] = "POST"
            return refused
        return answer_readably(view, request, *arguments, **named)

    return functools.update_wrapper(answer, view)


def answer_readably(view: View, request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponseBase:
    try:
        return view(request, *arguments, **named)
    except TokenRefused:
        return refuse_request(HTTPStatus.UNAUTHORIZED, UNKNOWN_HOST)
    except UnreadablePostError:
        return refuse_request(HTTPStatus.BAD_REQUEST, "The message ended before its end.")
    except tuple(kind for kind, _ in STATUSES) as error:
        return refuse_request(
            next(status for kind, status in STATUSES if isinstance(error, kind)), str(error)
        )
    except (OperationalError, InterfaceError) as error:
        if not is_database_away(error):
            raise
        # What a database says names users and addresses.
        return refuse_request(HTTPStatus.SERVICE_UNAVAILABLE, "The database doesn't answer.")


def refuse_request(status: HTTPStatus, sentence: str) -> JsonResponse:
    return JsonResponse({"detail": sentence}, status=status)


def refuse_unknown_host(request: HttpRequest) -> HttpResponseBase | None:
    """The answer to a request without a machine's token; None where it bears one."""

    def find_machine(asked: HttpRequest) -> HttpResponse:
        requesting_machine(asked)
        return HttpResponse()

    answer = answer_readably(find_machine, request)
    return None if answer.status_code == HTTPStatus.OK else answer


def requesting_machine(request: HttpRequest) -> Machine:
    """The machine whose token the request carries; TokenRefused."""
    attributes: dict[str, Any] = request.__dict__
    if attributes.get("_machine") is None:
        attributes["_machine"] = hosts.machine_with_token(
            sent_token(request.headers.get("Authorization", ""))
        )
    machine: Machine | None = attributes["_machine"]
    if machine is None:
        raise TokenRefused
    return machine


def sent_token(header: str) -> str:
    """The token of an Authorization header: a bearer's, or the password that git sends; empty for others."""
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except ValueError:
            return ""
    return ""


def read_body(request: HttpRequest, most: int) -> bytes:
    """The body, at most so many bytes; MessageError where it is larger."""
    data = request.read(most + 1)
    if len(data) > most:
        raise MessageError(f"The message is larger than {most} bytes.")
    return data
