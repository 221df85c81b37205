"""Answers a page out of memory where nothing that it shows was written since it was made."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Hashable
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib.messages import get_messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.utils.cache import get_conditional_response
from django.utils.http import parse_http_date_safe

from dashboard.access.visitors import visitor_of
from dashboard.api.etags import keep_for_visitor
from dashboard.middleware.compression import choose_encoding, compress_text
from dashboard.page_cache.arrivals import arrival_time
from dashboard.page_cache.cached_views import CACHED
from dashboard.page_cache.handover import PageHandover
from dashboard.page_cache.memory import CachedPage, PageMemory
from dashboard.page_cache.revisions import SeenRevision, read_revision
from dashboard.static_files.names import digest_hashed_names

# Pages say "3 min ago", and who has been silent: what changes by time alone is made again after so long.
OLDEST_SECONDS = 60.0
# The prefix is a group, no look-behind: the search goes by it, where a look-behind is tried at each byte.
TOKEN = re.compile(rb'(name="csrfmiddlewaretoken" value=")[A-Za-z0-9]{64}(?=")')
# In a cached page, where the token of each answer goes. Drawn anew: nobody can write it into a page.
TOKEN_PLACE = secrets.token_hex(32).encode()

View = Callable[..., HttpResponseBase]


class CachePages:
    """The last middleware: who may see the page has been asked before, at each request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.memory = PageMemory(settings.PACELINE_PAGE_MEMORY_MB * 1_000_000)
        self.handover = PageHandover(settings.HANDED_PAGES, digest_hashed_names())

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: View, arguments: Any, named: dict[str, Any]
    ) -> HttpResponseBase | None:
        if not self.memory.most_bytes or not may_be_cached(request):
            return None
        known = request.__dict__
        revision = known["shown_revision"] if "shown_revision" in known else read_revision()
        if revision is None:
            return None
        key, came_at = page_key(request), needed_since(request)
        page = self.memory.find_page(key, revision, came_at, time.monotonic() - OLDEST_SECONDS)
        if page is None:
            with self.memory.making_lock(key), self.handover.locked_place(key) as place:
                oldest = time.monotonic() - OLDEST_SECONDS
                page = self.memory.find_page(key, revision, came_at, oldest)
                page = page or place.read_page(revision, came_at, oldest)
                if page is None:
                    response = answer_whole(request, view, arguments, named)
                    page = describe_page(request, response, revision)
                    if page is None:
                        return response
                    place.leave_page(page)
                self.memory.store_page(key, page)
        return answer_page(request, page)


def may_be_cached(request: HttpRequest) -> bool:
    """Without what is shown once, and without the parts that a script asks for."""
    match = request.resolver_match
    if (
        request.method not in ("GET", "HEAD")
        or match is None
        or match.view_name not in CACHED
        or "HX-Request" in request.headers
    ):
        return False
    return len(get_messages(request)) == 0


def page_key(request: HttpRequest) -> Hashable:
    visitor = visitor_of(request)
    user = visitor.user.pk if visitor.user else None
    token = visitor.token.pk if visitor.token else None
    encoding = choose_encoding(request)
    return request.scheme, request.get_host(), request.get_full_path(), user, token, encoding


def needed_since(request: HttpRequest) -> float:
    """Monotonic seconds: a page that was right then, or later, is right for this request.

    For who is signed in it is now: what they wrote a moment ago must be there, and nobody shares their pages.
    """
    visitor = visitor_of(request)
    is_known = visitor.user is not None or visitor.token is not None
    return time.monotonic() if is_known else arrival_time(request)


def answer_whole(request: HttpRequest, view: View, arguments: Any, named: dict[str, Any]) -> HttpResponseBase:
    """What the view answers to who has no earlier version."""
    conditions: dict[str, Any] = {
        name: request.META.pop(name)
        for name in ("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE")
        if name in request.META
    }
    try:
        return view(request, *arguments, **named)
    finally:
        request.META.update(conditions)


def describe_page(
    request: HttpRequest, response: HttpResponseBase, revision: SeenRevision
) -> CachedPage | None:
    """None where the answer is for this request alone."""
    if response.status_code != HTTPStatus.OK or response.cookies or not isinstance(response, HttpResponse):
        return None
    body, tokens = TOKEN.subn(rb"\g<1>", response.content)
    # Who asked for a token left this behind; one that stands elsewhere than in a form couldn't be replaced.
    if bool(request.META.get("CSRF_COOKIE_NEEDS_UPDATE")) != bool(tokens):
        return None
    digest, encoding = hashlib.sha256(body).hexdigest(), choose_encoding(request)
    if tokens:
        body = TOKEN.sub(rb"\g<1>" + TOKEN_PLACE, response.content)
    return CachedPage(
        revision=revision.number,
        made_at=time.monotonic(),
        newest_at=revision.seen_at,
        body=body,
        packed=compress_text(body, encoding) if encoding and not tokens else b"",
        headers={name: value for name, value in response.headers.items() if name != "ETag"},
        digest=digest,
        token_place=TOKEN_PLACE if tokens else b"",
    )


def answer_page(request: HttpRequest, page: CachedPage) -> HttpResponseBase:
    """With a token of this request; 304 to who has the page."""
    token = get_token(request) if page.token_place else ""
    secret = request.META.get("CSRF_COOKIE", "") if page.token_place else ""
    etag = f'"{hashlib.sha256(f"{page.digest} {secret}".encode()).hexdigest()[:32]}"'
    if page.token_place:
        response = HttpResponse(page.body.replace(page.token_place, token.encode()))
    elif page.packed:
        response = HttpResponse(page.packed, headers={"Content-Encoding": choose_encoding(request)})
    else:
        response = HttpResponse(page.body)
    for name, value in page.headers.items():
        response.headers[name] = value
    response.headers["ETag"] = etag
    keep_for_visitor(response)
    if not page.token_place:
        response.headers["Vary"] = f"{response.headers['Vary']}, Accept-Encoding"
    modified = parse_http_date_safe(page.headers.get("Last-Modified", ""))
    known: HttpResponseBase = get_conditional_response(request, etag, modified, response) or response
    return known
