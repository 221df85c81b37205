"""Text is sent compressed. What could be guessed from its size is masked: see the class."""

from __future__ import annotations

import gzip
import re
import secrets

import brotli
from django.http import HttpRequest
from django.http.response import HttpResponse, HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers

COMPRESSED_TYPES = (
    "text/html",
    "application/json",
    "application/atom+xml",
    "text/csv",
    "text/plain",
    "image/svg+xml",
)
BROTLI, GZIP = "br", "gzip"
# Milliseconds and kB of a page of 132 kB: brotli 1.4 and 31.5 at 3, 2.2 and 29.4 at 4; gzip 2.6 and 34.2
# at 4, 3.8 and 32.7 at 6.
LEVELS = {BROTLI: 3, GZIP: 4}
FEWEST_BYTES = 200
# What a client refuses has the quality 0.
ACCEPTED = {name: re.compile(rf"\b{name}\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))") for name in LEVELS}
PADDING_BYTES = 100


def choose_encoding(request: HttpRequest) -> str:
    """The best one that the client takes; empty for none."""
    accepted = request.headers.get("Accept-Encoding", "")
    return next((name for name in LEVELS if ACCEPTED[name].search(accepted)), "")


def compress_text(text: bytes, encoding: str) -> bytes:
    """The same bytes for the same text, in one of LEVELS."""
    if encoding == BROTLI:
        packed: bytes = brotli.compress(text, mode=brotli.MODE_TEXT, quality=LEVELS[BROTLI])
        return packed
    return gzip.compress(text, LEVELS[GZIP], mtime=0)


class CompressPages(GZipMiddleware):
    """By brotli, else as Django's own does, for texts that are whole.

    Who can have a page show what they choose, and sees how large it is, could guess a secret in it (BREACH).
    The secret that pages have is the token of forms: Django masks it anew in each answer, and this middleware
    adds up to a hundred random bytes, to gzip's own header or, beside brotli, as a header of the answer. What
    is streamed, such as a repository to a host, stays as it is.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if response.streaming or kind not in COMPRESSED_TYPES:
            return response
        if isinstance(response, HttpResponse) and choose_encoding(request) == BROTLI:
            return send_by_brotli(response)
        compressed: HttpResponseBase = super().process_response(request, response)
        return compressed


def send_by_brotli(response: HttpResponse) -> HttpResponse:
    """The answer compressed, unless it is so already or too short."""
    if len(response.content) < FEWEST_BYTES or response.has_header("Content-Encoding"):
        return response
    patch_vary_headers(response, ("Accept-Encoding",))
    response.content = compress_text(response.content, BROTLI)
    response.headers["Content-Encoding"] = BROTLI
    response.headers["Content-Length"] = str(len(response.content))
    padding = secrets.token_hex(PADDING_BYTES // 2)
    response.headers["Padding"] = padding[: 1 + secrets.randbelow(PADDING_BYTES)]
    # The bytes differ from those that the strong one names.
    etag = response.get("ETag", "")
    if etag.startswith('"'):
        response.headers["ETag"] = f"W/{etag}"
    return response
