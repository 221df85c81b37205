"""Text is sent compressed. What could be guessed from its size is masked: see the class."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

COMPRESSED_TYPES = (
    "text/html",
    "application/json",
    "application/atom+xml",
    "text/csv",
    "text/plain",
    "image/svg+xml",
)


class CompressPages(GZipMiddleware):
    """Django's own, for texts that are whole.

    Who can have a page show what they choose, and sees how large it is, could guess a secret in it (BREACH).
    The secret that pages have is the token of forms: Django masks it anew in each answer, and this middleware
    adds up to a hundred random bytes. What is streamed, such as a repository to a host, stays as it is.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if response.streaming or kind not in COMPRESSED_TYPES:
            return response
        compressed: HttpResponseBase = super().process_response(request, response)
        return compressed
