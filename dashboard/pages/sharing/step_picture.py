"""The picture of a step, for mails and chats: whoever has its address sees it, without a sign-in."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.alerts.pictures import draw_regression, regression_of_token
from dashboard.querysets.regressions import regressions_with_related

KEPT_SECONDS = 3600


@require_safe
def step_picture(request: HttpRequest, token: str) -> HttpResponse:  # noqa: ARG001
    key = regression_of_token(token)
    regression = regressions_with_related().filter(pk=key).first() if key else None
    drawn = draw_regression(regression) if regression else b""
    if not drawn:
        raise Http404("There is no such picture, or its time is over.")
    return HttpResponse(
        drawn,
        content_type="image/png",
        headers={"Cache-Control": f"private, max-age={KEPT_SECONDS}", "X-Robots-Tag": "noindex"},
    )
