"""What to paste elsewhere for one series, regression or run; and the addresses that were made for it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard.access import visitor_of
from dashboard.models import PictureLink, Series
from dashboard.pages.form_fields import parse_key
from dashboard.pages.sharing.shared_pictures import is_public
from dashboard.pictures import Subject, describe_subject, link_token, make_link, revoke_link
from dashboard.pictures.drawing import project_of
from dashboard.querysets.regressions import regressions_with_related
from dashboard.querysets.runs import runs_with_related
from dashboard.querysets.series import series_with_related

MOST_LISTED = 50
UNMARKED = str.maketrans({"[": "(", "]": ")", '"': "'", "<": " ", ">": " ", "&": "+", "\\": "/"})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def share_series_page(request: HttpRequest, pk: int) -> HttpResponse:
    return render_sharing(request, "series", get_object_or_404(series_with_related(), pk=pk))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def share_regression_page(request: HttpRequest, pk: int) -> HttpResponse:
    return render_sharing(request, "regression", get_object_or_404(regressions_with_related(), pk=pk))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def share_run_page(request: HttpRequest, pk: int) -> HttpResponse:
    return render_sharing(request, "run", get_object_or_404(runs_with_related(), pk=pk))


def render_sharing(request: HttpRequest, name: str, subject: Subject) -> HttpResponse:
    """The form's field: `revoke`, the number of a link; without it a link is made."""
    project = project_of(subject)
    links = PictureLink.objects.filter(project=project, revoked_at=None, **{name: subject})
    if request.method == "POST":
        if "revoke" in request.POST:
            row = get_object_or_404(links, pk=parse_key(request.POST["revoke"]))
            revoke_link(visitor_of(request), row)
            messages.success(request, "The address is revoked: it shows nothing any more.")
        else:
            make_link(visitor_of(request), subject)
        return redirect(f"{name}-share", subject.pk)
    title = describe_subject(subject)[0]
    context: dict[str, Any] = {
        "subject": subject,
        "name": name,
        "title": title,
        "project": project,
        "is_public": is_public(project),
        "links": [shared_addresses(subject, row) for row in links.select_related("made_by")[:MOST_LISTED]],
        "pasted": pasted_texts(subject, title, own_addresses(name, subject)) if is_public(project) else [],
        "picture": reverse(f"{name}-picture", args=[subject.pk, "svg"]),
    }
    return render(request, "sharing/share.html", context)


def own_addresses(name: str, subject: Subject) -> dict[str, str]:
    """By what it is: the pictures of a public project at its own addresses."""
    kinds = {kind: reverse(f"{name}-picture", args=[subject.pk, kind]) for kind in ("svg", "png")}
    if isinstance(subject, Series):
        kinds["badge"] = reverse("series-badge", args=[subject.pk])
        kinds["embed"] = reverse("series-embed", args=[subject.pk])
    return {kind: settings.PACELINE_URL + address for kind, address in kinds.items()}


def shared_addresses(subject: Subject, link: PictureLink) -> dict[str, Any]:
    """A link with the texts to paste by it."""
    token = link_token(link)
    kinds = {kind: reverse("shared-picture", args=[token, kind]) for kind in ("svg", "png")}
    if isinstance(subject, Series):
        kinds["badge"] = reverse("shared-badge", args=[token])
    kinds["embed"] = reverse("shared-page", args=[token])
    addresses = {kind: settings.PACELINE_URL + address for kind, address in kinds.items()}
    texts = pasted_texts(subject, describe_subject(subject)[0], addresses)
    return {"link": link, "pasted": [("For a chat", addresses["embed"]), *texts]}


def pasted_texts(subject: Subject, title: str, addresses: dict[str, str]) -> list[tuple[str, str]]:
    """(what for, text) of each way to show it elsewhere."""
    page = settings.PACELINE_URL + subject.get_absolute_url()
    # What ends a Markdown text or an attribute can't be in a name there.
    plain = title.translate(UNMARKED).strip()
    texts = []
    if "badge" in addresses:
        texts.append(("Badge, Markdown", f"[![{plain}]({addresses['badge']})]({page})"))
    texts.append(("Picture, Markdown", f"[![{plain}]({addresses['svg']})]({page})"))
    texts.append(("Picture, PNG", addresses["png"]))
    if "embed" in addresses:
        frame = f'<iframe src="{addresses["embed"]}" width="640" height="400" title="{plain}"></iframe>'
        texts.append(("Frame, HTML", frame))
    return texts
