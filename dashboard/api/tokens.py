"""Tokens: what a script learns about its own."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus

from django.http import HttpRequest
from ninja import Router, Schema

from dashboard.access import visitor_of
from dashboard.api.problems import NEEDS_TOKEN, ApiError

router = Router(tags=["tokens"])


class OwnToken(Schema):
    """What a token may do, in which project, and until when."""

    name: str
    project: str
    actions: list[str]
    made_by: str
    expires_at: datetime


@router.get("token", url_name="api-token", operation_id="describe_token", response=OwnToken)
def describe_token(request: HttpRequest) -> OwnToken:
    """What the token that the request bears may do, in which project, and until when."""
    visitor = visitor_of(request)
    token = visitor.token
    if token is None:
        raise ApiError(HTTPStatus.UNAUTHORIZED, NEEDS_TOKEN)
    return OwnToken(
        name=token.name,
        project=token.project.slug,
        actions=[action for action in token.actions if visitor.may(action, token.project)],
        made_by=token.made_by.get_username(),
        expires_at=token.expires_at,
    )
