"""The manifest of a project: the repository's, or one that the site keeps, with its cases."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models.functions import Length
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.access import Actor, visitor_of
from dashboard.host_protocol import files_version
from dashboard.models import Project, RepositoryTest
from dashboard.pages.form_fields import OVERTAKEN, sent_version, text_version
from dashboard.pages.settings import repository_form
from dashboard.pages.settings.sections import settings_context
from dashboard.project_setup import repository_test_sentences as sentences
from dashboard.project_setup.changing import keep_manifest
from dashboard.project_setup.errors import SetupError
from dashboard.project_setup.manifests import EXAMPLE, compare_texts, plan_benchmarks, read_manifest_text
from dashboard.project_setup.repository_tests import request_test

SECTION = "project-manifest"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def manifest_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's fields: `manifest`, `text_version` of what it was made from, and `action`: preview, keep or
    use-repository."""
    context = settings_context(request, slug, SECTION)
    project: Project = context["project"]
    if request.method != "POST":
        return render_manifest(request, context, project.manifest, text_version(project.manifest))
    action = request.POST.get("action", "")
    if action == "use-repository":
        keep_manifest(visitor_of(request), project, "")
        messages.success(request, "The repository's manifest counts from now on.")
        return redirect(SECTION, slug)
    version = sent_version(request.POST, project.manifest)
    try:
        text = read_manifest_text(request.POST.get("manifest", ""))
        benchmarks = plan_benchmarks(text)
        if action == "keep":
            stored = keep_written(visitor_of(request), project, text, version)
            if text != stored and version != text_version(stored):
                return render_manifest(request, context, text, text_version(stored), OVERTAKEN)
            messages.success(
                request, "It was kept already." if text == stored else "It is kept, and counts from now on."
            )
            return redirect(SECTION, slug)
    except SetupError as error:
        return render_manifest(request, context, request.POST.get("manifest", ""), version, str(error))
    preview = {"benchmarks": benchmarks, **repository_form.benchmark_totals(benchmarks)}
    return render_manifest(
        request, context, text, version, preview={**preview, **difference_context(request, project, text)}
    )


def keep_written(actor: Actor, project: Project, text: str, version: str) -> str:
    """The manifest that was kept until now, which stays where it isn't of the `version` that was changed."""
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).values_list("manifest", flat=True)
        stored = str(locked.get(pk=project.pk))
        if version == text_version(stored):
            keep_manifest(actor, project, text)
    return stored


def difference_context(request: HttpRequest, project: Project, text: str) -> dict[str, Any]:
    """What a manifest differs in from the one in force. The repository's has to be read by a worker first."""
    if project.manifest:
        return {
            "difference": compare_texts(project.manifest, text),
            "reading": None,
            "compared": "the one kept now",
        }
    user = visitor_of(request).user
    if user is None or not project.repository:
        return {"difference": None, "reading": None, "compared": ""}
    test = request_test(user, project.repository, project.credentials, project.branch, project)
    return {"difference": None, "reading": test, "compared": ""}


def render_manifest(
    request: HttpRequest,
    context: dict[str, Any],
    text: str,
    version: str,
    refused: str = "",
    preview: dict[str, Any] | None = None,
) -> HttpResponse:
    project: Project = context["project"]
    files = list(project.kept_files.annotate(size=Length("text")))
    shown = {
        **context,
        "kept": bool(project.manifest),
        "files": files,
        "version": files_version({file.path: file.text for file in files}),
        "text": text or EXAMPLE,
        "text_version": version,
        "refused": refused,
        "preview": preview is not None,
        # Of the preview's fragment.
        "manifest_refused": "",
        "benchmarks": [],
        "difference": None,
        "reading": None,
        "compared": "",
        "unknown": "",
        **(preview or {}),
    }
    return render(request, "settings/manifest.html", shown, status=400 if refused else 200)


@never_cache
@require_POST
def difference_fragment(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The difference between the form's `manifest` and the newest commit's, once that has been read."""
    rows = RepositoryTest.objects.filter(project__slug=slug, requested_by=visitor_of(request).user)
    test = get_object_or_404(rows, pk=pk)
    written = request.POST.get("manifest", "").replace("\r\n", "\n")
    known = test.facts.get("manifest")
    context = {
        "reading": None if test.outcome else test,
        "project": test.project,
        "difference": compare_texts(known, written) if known else None,
        "compared": f"paceline.toml of {test.facts['commit']['hash'][:10]}" if known else "",
        "unknown": difference_refusal(test),
    }
    return render(request, "settings/manifest_difference.html", context)


def difference_refusal(test: RepositoryTest) -> str:
    """Why there is nothing to compare with; empty while it is read, and where there is."""
    if not test.outcome:
        return ""
    return sentences.manifest_sentence(test) if test.is_readable else sentences.outcome_sentence(test)
