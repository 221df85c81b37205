"""The webhook of a forge. Each delivery has its effect once: its identity and what it causes are one
transaction."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from dashboard.forges.deliveries import LARGEST_BODY, read_delivery
from dashboard.forges.errors import ForgeError, UnknownSender
from dashboard.forges.events import (
    CommentEvent,
    Event,
    OtherEvent,
    PingEvent,
    PullRequestEvent,
    PushEvent,
    WebhookDelivery,
)
from dashboard.forges.signals import comment_received
from dashboard.models import ForgeConnection, ForgeDelivery, Project, Trigger
from dashboard.projects.names import find_named_project
from dashboard.secrets import is_lost
from dashboard.triggers.open_pull_requests import note_pull_request, send_event
from dashboard.triggers.posted_bodies import (
    REPEATED,
    HookError,
    RepeatedDelivery,
    read_posted_body,
    refuse_request,
)
from dashboard.triggers.receiving import TriggerOrigin, receive_trigger
from dashboard.triggers.refs import HEADS, TAGS, ignored_ref, stored_ref

NOT_SIGNED = (
    "This isn't signed with the secret of a project of this name that is connected with a forge: "
    "connect_forge --renew-secret makes a new one."
)


@csrf_exempt
def receive_forge_hook(request: HttpRequest, slug: str) -> JsonResponse:
    """POST only. 202 with one sentence under `message`, and the id of a trigger; else `error`."""
    try:
        connection, delivery = authenticate_delivery(request, slug)
        return JsonResponse(take_delivery(connection, delivery), status=202)
    except RepeatedDelivery:
        return JsonResponse({"message": REPEATED}, status=200)
    except (ForgeError, HookError) as error:
        return refuse_request(error.status, str(error))


def authenticate_delivery(request: HttpRequest, slug: str) -> tuple[ForgeConnection, WebhookDelivery]:
    """The connection and what its forge says. Nothing of a body is parsed before its signature holds."""
    body = read_posted_body(request, "A webhook", LARGEST_BODY)
    project = find_named_project(slug)
    connection = ForgeConnection.objects.select_related("project").filter(project=project).first()
    # All alike: a name of a private project isn't distinguished from one that is free.
    if connection is None or is_lost(connection.webhook_secret):
        raise ForgeError(401, NOT_SIGNED)
    try:
        delivery = read_delivery(connection.kind, request.headers, body, connection.webhook_secret)
    except UnknownSender as error:
        raise ForgeError(401, NOT_SIGNED) from error
    # A hook of a whole organization tells of its other repositories too.
    if delivery.repository.lower() not in ("", connection.repository.lower()):
        raise ForgeError(
            422, f"{slug} is connected with {connection.repository}, not with {delivery.repository}."
        )
    return connection, delivery


def take_delivery(connection: ForgeConnection, delivery: WebhookDelivery) -> dict[str, Any]:
    """The effect of a delivery, all of it or none. Raises RepeatedDelivery."""
    with transaction.atomic():
        keep_identity(connection.project, delivery.identity)
        answers = [take_event(connection, event) for event in delivery.events]
    # Of a push to several branches, what was asked for is reported rather than what was left.
    return next((answer for answer in answers if "trigger" in answer), answers[0])


def keep_identity(project: Project, identity: str) -> None:
    """A second request with this identity waits here for the end of the first one's transaction."""
    try:
        with transaction.atomic():
            ForgeDelivery.objects.create(project=project, identity=identity)
    except IntegrityError:
        raise RepeatedDelivery from None


def take_event(connection: ForgeConnection, event: Event) -> dict[str, Any]:
    project = connection.project
    match event:
        case PushEvent():
            return take_push(project, event)
        case PullRequestEvent():
            note_pull_request(connection, event)
            send_event(project, event)
            return {"message": f"Pull request {event.number} is known as {event.action}."}
        case CommentEvent():
            comment_received.send(Project, project=project, event=event)
            return {"message": f"The comment on {event.number} was read."}
        case PingEvent():
            return {"message": f"{project} hears its forge."}
        case OtherEvent():
            return {"message": f"Nothing is done about {event.name or 'this event'}."}


def take_push(project: Project, push: PushEvent) -> dict[str, Any]:
    if ignored := ignored_ref(project, push.ref):
        return {"message": ignored}
    if push.deleted or not push.after:
        name = push.ref.removeprefix(HEADS).removeprefix(TAGS)
        return {"message": f"{name} was deleted: there is nothing to measure."}
    origin = TriggerOrigin(Trigger.Source.FORGE, stored_ref(project, push.ref))
    trigger = receive_trigger(project, origin, pushed_revisions(push))
    return {
        "message": f"The commits of this push are measured by trigger {trigger.pk}.",
        "trigger": trigger.pk,
    }


def pushed_revisions(push: PushEvent) -> dict[str, Any]:
    """The commits that a push brought. Whether history was rewritten is seen in the repository, later."""
    moved_on = push.before and not push.created and push.before != push.after
    if moved_on and not push.ref.startswith(TAGS):
        return {"range": f"{push.before}..{push.after}"}
    return {"commit": push.after}
