"""git's smart HTTP for hosts, read only: gitprotocol-http(5)."""

from __future__ import annotations

import zlib
from http import HTTPStatus
from typing import IO

from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache

from dashboard.api.host_requests import (
    answer_readably,
    post_only,
    read_body,
    refuse_request,
    requesting_machine,
)
from dashboard.host_protocol import MessageError
from dashboard.hosts import commit_service

# What a client wants and has: 100,000 hashes.
LARGEST_REQUEST = 8 * 1024 * 1024
SERVICE = "git-upload-pack"
ANNOUNCEMENT = b"001e# service=git-upload-pack\n0000"
LONGEST_VERSION = 100


@never_cache
def advertise_refs(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The refs, and what the server can do."""
    if request.method != "GET" or request.GET.get("service") != SERVICE:
        return refuse_request(HTTPStatus.FORBIDDEN, "Repositories are read by git's smart HTTP only.")
    return answer_readably(_advertise_refs, request, slug)


def _advertise_refs(request: HttpRequest, slug: str) -> HttpResponse:
    project = commit_service.measured_project(requesting_machine(request), slug)
    version = _protocol_version(request)
    answer = commit_service.serve_repository(project.mirror, ["--http-backend-info-refs"], b"", version)
    with answer:
        return HttpResponse(
            ANNOUNCEMENT + answer.read(), content_type=f"application/x-{SERVICE}-advertisement"
        )


@post_only
def upload_pack(request: HttpRequest, slug: str) -> HttpResponseBase:
    """What the client wants, as a pack."""
    project = commit_service.measured_project(requesting_machine(request), slug)
    body = read_body(request, LARGEST_REQUEST)
    if request.headers.get("Content-Encoding") == "gzip":
        body = _unpack_body(body)
    answer: IO[bytes] = commit_service.serve_repository(project.mirror, [], body, _protocol_version(request))
    return FileResponse(answer, content_type=f"application/x-{SERVICE}-result")


def _protocol_version(request: HttpRequest) -> str:
    version = request.headers.get("Git-Protocol", "")
    return version if version.isascii() and version.isprintable() and len(version) <= LONGEST_VERSION else ""


def _unpack_body(body: bytes) -> bytes:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        data = unpacker.decompress(body, LARGEST_REQUEST)
    except zlib.error as error:
        raise MessageError("The request is no gzip data.") from error
    if unpacker.unconsumed_tail:
        raise MessageError(f"The request is larger than {LARGEST_REQUEST} bytes.")
    return data
