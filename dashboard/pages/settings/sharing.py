"""A project elsewhere: sites that may frame its charts, pictures that are shared, all of it as a file."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.access import AuditAction, record_action, visitor_of
from dashboard.archive import archive_name, compress_lines, write_archive
from dashboard.models import PictureLink, Project
from dashboard.pages.form_fields import parse_key, read_sent_text
from dashboard.pages.settings.sections import settings_context
from dashboard.pictures import describe_subject, revoke_link
from dashboard.project_setup.changing import change_settings
from dashboard.project_setup.errors import SetupError

SECTION = "project-sharing"
MOST_LISTED = 100
LONGEST_ORIGINS = 4000


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sharing_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The forms' fields: `embed_origins`, or `revoke` with the number of a link."""
    context = settings_context(request, slug, SECTION)
    project: Project = context["project"]
    if request.method != "POST":
        return render_settings(request, context, project.embed_origins)
    if "revoke" in request.POST:
        links = PictureLink.objects.filter(project=project, revoked_at=None)
        revoke_link(visitor_of(request), get_object_or_404(links, pk=parse_key(request.POST["revoke"])))
        messages.success(request, "The address is revoked: it shows nothing any more.")
        return redirect(SECTION, slug)
    typed = read_sent_text(request.POST, "embed_origins")
    try:
        if len(typed) > LONGEST_ORIGINS:
            raise SetupError(f"The sites have more than {LONGEST_ORIGINS} letters together.", "embed_origins")
        change_settings(visitor_of(request), project, {"embed_origins": "\n".join(typed.split())})
    except SetupError as error:
        return render_settings(request, context, typed, str(error))
    messages.success(request, "Saved.")
    return redirect(SECTION, slug)


def render_settings(
    request: HttpRequest, context: dict[str, Any], typed: str, refused: str = ""
) -> HttpResponse:
    rows = PictureLink.objects.filter(project=context["project"], revoked_at=None).select_related(
        "made_by",
        *("series__configuration__case__project", "series__metric", "series__latest"),
        *("regression__series__configuration__case", "regression__series__metric", "regression__project"),
        *("regression__first_bad", "regression__culprit", "run__configuration__case__project", "run__commit"),
    )
    shown = {
        "links": [(link, describe_subject(link.subject)[0]) for link in rows[:MOST_LISTED]],
        "typed": typed,
        "refused": refused,
    }
    return render(request, "settings/sharing.html", {**context, **shown}, status=400 if refused else 200)


@require_POST
def export_project(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    """Everything of the project, as it is written: nothing of it is held here."""
    project = get_object_or_404(Project, slug=slug)
    record_action(visitor_of(request), AuditAction.RESULTS_EXPORTED, project, project)
    return StreamingHttpResponse(
        compress_lines(write_archive(project)),
        content_type="application/gzip",
        headers={
            "Content-Disposition": f'attachment; filename="{archive_name(project)}"',
            "Cache-Control": "no-store",
        },
    )
