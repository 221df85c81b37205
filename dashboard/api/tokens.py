"""Tokens of scripts: what one's own may do, and those of a project. A token itself is shown once."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import BaseModel, Field

from dashboard.access import AccessError, make_token, revoke_token, visitor_of
from dashboard.access.token_making import DEFAULT_DAYS, LONGEST_NAME, MOST_DAYS
from dashboard.api.listing import ListedPage, PageQuery, read_page
from dashboard.api.shapes import Body, OneOf
from dashboard.models import ApiToken, Project
from dashboard.models.access import PROJECT_ACTIONS
from dashboard.problem_details import NEEDS_TOKEN, ApiError

router = Router(tags=["tokens"])

MADE_BY_PEOPLE = "Tokens are made by people: sign in, and make it on the project's settings."


class OwnToken(BaseModel):
    """What a token may do, in which project, and until when."""

    name: str
    project: str
    actions: list[str]
    made_by: str
    expires_at: datetime


class TokenRow(BaseModel):
    """A token of a project; of the token itself its first letters."""

    id: int
    name: str
    prefix: str
    state: str = Field(description="`active`, `expired` or `revoked`.")
    actions: list[str] = Field(description="As far as its maker may.")
    made_by: str
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None


class TokenPage(ListedPage):
    items: list[TokenRow]


class NewToken(TokenRow):
    """A token that was made."""

    token: str = Field(description="Nothing shows it again.")


class TokenBody(Body):
    """A token to make. Whatever else it may, it may view."""

    name: str = Field(min_length=1, max_length=LONGEST_NAME, description="What bears it.")
    actions: list[Annotated[str, OneOf(PROJECT_ACTIONS)]] = Field(
        default_factory=list, max_length=len(PROJECT_ACTIONS), description="As far as you may."
    )
    days: int = Field(DEFAULT_DAYS, ge=1, le=MOST_DAYS, description="Until it expires.")


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


@router.get(
    "projects/{slug:slug}/tokens", url_name="api-tokens", operation_id="list_tokens", response=TokenPage
)
def list_tokens(request: HttpRequest, slug: str, query: Query[PageQuery]) -> dict[str, Any]:
    """The tokens of a project, newest first."""
    rows = ApiToken.objects.filter(project__slug=slug).select_related("made_by")
    return read_page(request, query, rows, ("-id",), describe_row)


@router.post(
    "projects/{slug:slug}/tokens",
    url_name="api-tokens",
    operation_id="make_token",
    response={HTTPStatus.CREATED: NewToken},
)
def create_token(request: HttpRequest, slug: str, body: TokenBody) -> NewToken:
    """Make a token; the answer alone has it. For people who are signed in: no token makes another."""
    visitor = visitor_of(request)
    if visitor.token is not None:
        raise ApiError(HTTPStatus.FORBIDDEN, MADE_BY_PEOPLE)
    project = get_object_or_404(Project, slug=slug)
    try:
        row, token = make_token(visitor, project, body.name, body.actions, body.days)
    except AccessError as error:
        field = str(error).partition(":")[0]
        raise ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), field) from error
    return NewToken(**token_members(row), token=token)


@router.delete(
    "projects/{slug:slug}/tokens/{int:pk}",
    url_name="api-token-revoke",
    operation_id="revoke_token",
    response={HTTPStatus.NO_CONTENT: None},
)
def revoke_project_token(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Make a token good for nothing from now on. 409 where it was revoked before."""
    row = get_object_or_404(ApiToken.objects.select_related("project"), pk=pk, project__slug=slug)
    if not revoke_token(visitor_of(request), row):
        raise ApiError(HTTPStatus.CONFLICT, f"The token {row.name} had been revoked already.")
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


def describe_row(token: ApiToken) -> TokenRow:
    return TokenRow(**token_members(token))


def token_members(token: ApiToken) -> dict[str, Any]:
    return {
        "id": token.pk,
        "name": token.name,
        "prefix": token.prefix,
        "state": token.state,
        "actions": token.actions,
        "made_by": token.made_by.get_username(),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
    }
