"""ETags: who has the newest answer already gets 304 and no body."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_cache_control, patch_vary_headers


def make_etag(*parts: object) -> str:
    """Of what identifies a version: other parts give another one."""
    return hash_body("\0".join(map(str, parts)).encode())


def hash_body(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def answer_version(
    request: HttpRequest, etag: str, render: Callable[[], HttpResponseBase]
) -> HttpResponseBase:
    """`render` is called for who doesn't have this version: what is large isn't read for the others."""
    known = get_conditional_response(request, etag)
    response = render() if known is None else known
    response["ETag"] = etag
    keep_for_visitor(response)
    return response


def add_etag(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """The answer with the ETag of its body, unless it has one; or 304."""
    if "ETag" in response or response.status_code != 200 or not isinstance(response, HttpResponse):
        return response
    etag = hash_body(response.content)
    response["ETag"] = etag
    keep_for_visitor(response)
    known: HttpResponseBase = get_conditional_response(request, etag, response=response) or response
    return known


def keep_for_visitor(response: HttpResponseBase) -> None:
    """Kept by whom it was answered alone, who asks each time whether it is still the newest."""
    patch_cache_control(response, private=True, no_cache=True)
    patch_vary_headers(response, ["Authorization", "Cookie"])
