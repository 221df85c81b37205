"""What a script learns about its own token."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.access import visitor_of


@never_cache
@require_safe
def describe_token(request: HttpRequest) -> JsonResponse:
    """What the token that the request bears may do, in which project, and until when."""
    token = visitor_of(request).token
    if token is None:
        return JsonResponse({"detail": "Send a token: Authorization: Bearer plt_..."}, status=401)
    allowed = [action for action in token.actions if visitor_of(request).may(action, token.project)]
    return JsonResponse(
        {
            "name": token.name,
            "project": token.project.slug,
            "actions": allowed,
            "made_by": token.made_by.get_username(),
            "expires_at": token.expires_at.isoformat(),
        }
    )
