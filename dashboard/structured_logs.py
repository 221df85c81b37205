"""Log lines that say what they belong to: a request, a task, a run. Without Django, since hosts log so too.

`log_context(run=12)` names what the lines of a block belong to; a thread that the block starts begins anew.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

FORMATS = ("line", "json")
HEADER = "X-Request-ID"
# What a proxy gives is taken where it can't be mistaken for anything else in a line.
CLEAN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
META_KEY = "paceline.request_id"
# A task's id is a UUID, of which the beginning tells it from its neighbours in a line.
SHOWN_TASK_CHARACTERS = 8

Ids = Mapping[str, str | int]

_ids: ContextVar[Ids] = ContextVar("log_ids", default=MappingProxyType({}))


def current_ids() -> Ids:
    """What the lines that are logged now belong to: name -> id."""
    return _ids.get()


def enter_context(**ids: str | int) -> Token[Ids]:
    """Name what follows, beside what was named before; hand the token to `leave_context`."""
    return _ids.set({**_ids.get(), **ids})


def leave_context(token: Token[Ids]) -> None:
    _ids.reset(token)


@contextmanager
def log_context(**ids: str | int) -> Iterator[None]:
    """Name what the lines of the block belong to, as in `log_context(run=12)`."""
    token = enter_context(**ids)
    try:
        yield
    finally:
        leave_context(token)


class ContextFilter(logging.Filter):
    """Gives each record its ids, and passes all of them."""

    def filter(self, record: logging.LogRecord) -> bool:
        ids = {**request_ids(record), **_ids.get()}
        record.__dict__.update(ids=ids, shown_ids=show_ids(ids))
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time (UTC), level, logger, message, ids; exception where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": format_time(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **record.__dict__.get("ids", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        elif record.exc_text:
            line["exception"] = record.exc_text
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps(line, default=str)


def format_time(seconds: float) -> str:
    """A Unix time as ISO 8601 writes it, in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def request_ids(record: logging.LogRecord) -> Ids:
    """The request that Django gives its own records, some of which it logs when the middleware has ended."""
    meta = getattr(record.__dict__.get("request"), "META", {})
    return {"request": meta[META_KEY]} if META_KEY in meta else {}


def show_ids(ids: Ids) -> str:
    """The ids as they stand in a line of text, with a space before them; empty where there are none."""
    shown = [
        f"{name}={str(value)[:SHOWN_TASK_CHARACTERS] if name == 'task' else value}"
        for name, value in ids.items()
    ]
    return f" [{' '.join(shown)}]" if shown else ""


def logging_settings(level: str, log_format: str) -> dict[str, Any]:
    """For logging.config.dictConfig: everything from `level` on to stderr, in one of FORMATS."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"context": {"()": ContextFilter}},
        "formatters": {
            "line": {"format": "%(asctime)s %(levelname)s %(name)s%(shown_ids)s: %(message)s"},
            "json": {"()": JsonFormatter},
        },
        "handlers": {
            "console": {"class": "logging.StreamHandler", "filters": ["context"], "formatter": log_format}
        },
        # gunicorn has given its logger a handler with a format of its own.
        "loggers": {"gunicorn.error": {"handlers": [], "propagate": True}},
        "root": {"handlers": ["console"], "level": level},
    }


def identify_requests(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware: an id for each request, in its log lines and in the answer's X-Request-ID."""

    def answer_request(request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        request_id = given if CLEAN_ID.fullmatch(given) else secrets.token_hex(6)
        request.META[META_KEY] = request_id
        with log_context(request=request_id):
            response = get_response(request)
        response.headers[HEADER] = request_id
        return response

    return answer_request
