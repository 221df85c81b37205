"""Pictures, badges and bare pages for other places: by rights, or by an address that a member made."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.middleware.browser_security import CONTENT_SECURITY_POLICY, format_policy
from dashboard.models import PictureLink, Project, Series
from dashboard.pictures import (
    KINDS,
    Picture,
    Subject,
    badge_of_series,
    describe_subject,
    find_link,
    picture_of,
)
from dashboard.querysets.regressions import regressions_with_related
from dashboard.querysets.runs import runs_with_related
from dashboard.querysets.series import series_with_related

# Services that show pictures ask again after so long: what changed is there by then.
KEPT_SECONDS = 300
LONGEST_LABEL = 60


@require_safe
def series_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:  # noqa: ARG001
    series = get_object_or_404(series_with_related(), pk=pk)
    return answer_picture(series, kind, series.case.project)


@require_safe
def regression_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:  # noqa: ARG001
    regression = get_object_or_404(regressions_with_related(), pk=pk)
    return answer_picture(regression, kind, regression.project)


@require_safe
def run_picture(request: HttpRequest, pk: int, kind: str) -> HttpResponse:  # noqa: ARG001
    run = get_object_or_404(runs_with_related(), pk=pk)
    return answer_picture(run, kind, run.case.project)


@require_safe
def series_badge(request: HttpRequest, pk: int) -> HttpResponse:
    """`label`: what stands on its left."""
    series = get_object_or_404(series_with_related(), pk=pk)
    return answer_badge(request, series, is_public=is_public(series.case.project))


@require_safe
def series_embed(request: HttpRequest, pk: int) -> HttpResponse:
    series = get_object_or_404(series_with_related(), pk=pk)
    image = reverse("series-picture", args=[pk, "svg"])
    return render_bare(request, series, series.case.project, image, image.removesuffix("svg") + "png")


@require_safe
def shared_picture(request: HttpRequest, token: str, kind: str) -> HttpResponse:  # noqa: ARG001
    """What was shared is shown, whoever asks: until it is revoked."""
    return answer_picture(load_subject(find_shared(token)), kind, None)


@require_safe
def shared_badge(request: HttpRequest, token: str) -> HttpResponse:
    subject = load_subject(find_shared(token))
    if not isinstance(subject, Series):
        raise Http404("Only a series has a badge.")
    return answer_badge(request, subject, is_public=True)


@require_safe
def shared_page(request: HttpRequest, token: str) -> HttpResponse:
    """A page of the picture alone, which chats preview and permitted sites may frame."""
    link = find_shared(token)
    image, preview = (reverse("shared-picture", args=[token, kind]) for kind in ("svg", "png"))
    response = render_bare(request, load_subject(link), link.project, image, preview)
    response.headers["X-Robots-Tag"] = "noindex"
    return response


def find_shared(token: str) -> PictureLink:
    link = find_link(token)
    if link is None:
        raise Http404("There is no such picture, or its address was revoked.")
    return link


def load_subject(link: PictureLink) -> Subject:
    """What the link shows, with what a picture of it reads."""
    key = link.subject.pk
    if link.series_id:
        return series_with_related().get(pk=key)
    if link.regression_id:
        return regressions_with_related().get(pk=key)
    return runs_with_related().get(pk=key)


def is_public(project: Project | None) -> bool:
    """True for what was shared by its address, too, which has no project here."""
    return project is None or project.visibility == Project.Visibility.PUBLIC


def answer_picture(subject: Subject, kind: str, project: Project | None) -> HttpResponse:
    if kind not in KINDS:
        raise Http404(f"A picture is one of {', '.join(KINDS)}.")
    return send_picture(picture_of(subject, kind), public=is_public(project))


def answer_badge(request: HttpRequest, series: Series, *, is_public: bool) -> HttpResponse:
    label = request.GET.get("label", "")[:LONGEST_LABEL]
    return send_picture(Picture(badge_of_series(series, label), "image/svg+xml"), public=is_public)


def send_picture(picture: Picture, *, public: bool) -> HttpResponse:
    scope = "public" if public else "private"
    headers = {"Cache-Control": f"{scope}, max-age={KEPT_SECONDS}"}
    if public:
        # Pages of other sites may show it.
        headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return HttpResponse(picture.body, content_type=picture.content_type, headers=headers)


def render_bare(
    request: HttpRequest, subject: Subject, project: Project, image: str, preview: str
) -> HttpResponse:
    """A page without the site around it; only the sites that the project permits may frame it."""
    title, sentence = describe_subject(subject)
    context: dict[str, Any] = {
        "title": title,
        "image": image,
        "subject": subject,
        "preview": {
            "title": title,
            "sentence": sentence,
            "url": settings.PACELINE_URL + request.path,
            "image": settings.PACELINE_URL + preview,
        },
    }
    response = render(request, "sharing/embed.html", context)
    ancestors = tuple(project.embed_origins.split()) or ("'none'",)
    policy = CONTENT_SECURITY_POLICY | {"frame-ancestors": ancestors}
    response.headers["Content-Security-Policy"] = format_policy(policy)
    return response
