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
MOST_PADDING = 100


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


def compress_masked(text: bytes) -> bytes:
    """By brotli, with a block of random length that unpacks to nothing.

    RFC 7932, section 9.2: a block of metadata begins with the bits 0 (more follows), 11 (no symbols), 0, 01
    (its length in one byte) and that length less one, up to a byte's end; 3 is an empty last block.
    """
    packer = brotli.Compressor(mode=brotli.MODE_TEXT, quality=LEVELS[BROTLI])
    packed: bytes = packer.process(text) + packer.flush()
    length = 1 + secrets.randbelow(MOST_PADDING)
    head = (0b010110 | (length - 1) << 6).to_bytes(2, "little")
    return packed + head + secrets.token_bytes(length) + b"\x03"


class CompressPages(GZipMiddleware):
    """By brotli, else as Django's own does, for texts that are whole.

    Who can have a page show what they choose, and sees how large it is, could guess a secret in it (BREACH).
    The secret that pages have is the token of forms: Django masks it anew in each answer, and this middleware
    adds up to a hundred random bytes, in gzip's header or in a block of brotli's that unpacks to nothing.
    What is streamed, such as a repository to a host, stays as it is.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if response.streaming or kind not in COMPRESSED_TYPES:
            return response
        encoding = choose_encoding(request)
        if not encoding:
            patch_vary_headers(response, ("Accept-Encoding",))
            return response
        if isinstance(response, HttpResponse) and encoding == BROTLI:
            return send_by_brotli(response)
        compressed: HttpResponseBase = super().process_response(request, response)
        return compressed


def send_by_brotli(response: HttpResponse) -> HttpResponse:
    """The answer compressed, unless it is so already or too short."""
    if len(response.content) < FEWEST_BYTES or response.has_header("Content-Encoding"):
        return response
    patch_vary_headers(response, ("Accept-Encoding",))
    response.content = compress_masked(response.content)
    response.headers["Content-Encoding"] = BROTLI
    response.headers["Content-Length"] = str(len(response.content))
    # The bytes differ from those that the strong one names.
    etag = response.get("ETag", "")
    if etag.startswith('"'):
        response.headers["ETag"] = f"W/{etag}"
    return response
