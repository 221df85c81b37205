"""The body of a request that a git hook or a forge posts, read before anything is known of who sent it."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.http.request import UnreadablePostError

REPEATED = "This delivery was received before."


class RepeatedDelivery(Exception):  # noqa: N818 - reads as a fact
    """This delivery had its effect already."""


class HookError(Exception):
    """Why a request is refused: an HTTP status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def read_posted_body(request: HttpRequest, sender: str, largest: int) -> bytes:
    """The body of a POST by `sender`, such as "A hook", of `largest` bytes at most. Raises HookError."""
    if request.method != "POST":
        raise HookError(405, f"{sender} sends POST.")
    try:
        body = request.read(largest + 1)
    except UnreadablePostError:
        raise HookError(400, "The request ended before its body did.") from None
    if len(body) > largest:
        raise HookError(413, f"{sender}'s request has {largest} bytes at most.")
    return body


def refuse_request(status: int, sentence: str) -> JsonResponse:
    response = JsonResponse({"error": sentence}, status=status)
    if status == 405:
        response["Allow"] = "POST"
    return response
