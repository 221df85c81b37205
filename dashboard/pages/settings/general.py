"""The general settings of a project: its repository, how it is watched, and who may read it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.access import visitor_of
from dashboard.models import Project, RepositoryTest
from dashboard.pages.form_fields import read_text
from dashboard.pages.settings import repository_form
from dashboard.pages.settings.sections import settings_context
from dashboard.project_setup.changing import change_repository, change_settings, parse_number
from dashboard.project_setup.errors import SetupError
from dashboard.project_setup.renaming import give_up_name, rename_project
from dashboard.secrets import is_lost

Visibility = Project.Visibility

SAVED = {
    Visibility.PUBLIC: "Everybody who reaches this site may read the project now.",
    Visibility.PRIVATE: "Its members alone may read the project now.",
}
SECTION = "project-settings"
LONGEST_NAME = 60


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def general_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The forms' fields: `visibility`, `poll_minutes`, `slug` (a new name), or `given_up` (a former one)."""
    context = settings_context(request, slug, SECTION)
    project: Project = context["project"]
    if request.method != "POST":
        return render_general(request, context)
    try:
        if "slug" in request.POST:
            return rename_by_form(request, project)
        if "given_up" in request.POST:
            return give_up_by_form(request, project)
        values, success_text = read_general(request)
        change_settings(visitor_of(request), project, values)
    except SetupError as error:
        return render_general(request, context, error)
    messages.success(request, success_text)
    return redirect(SECTION, slug)


def rename_by_form(request: HttpRequest, project: Project) -> HttpResponse:
    """Raises SetupError."""
    name = read_text(request.POST, "slug").strip()
    if rename_project(visitor_of(request), project, name):
        messages.success(request, f"The project is called {name} now, and still answers to {project.slug}.")
    return redirect(SECTION, name)


def give_up_by_form(request: HttpRequest, project: Project) -> HttpResponse:
    name = read_text(request.POST, "given_up")
    if give_up_name(visitor_of(request), project, name):
        messages.success(request, f"Nothing leads here by the name {name} any more.")
    return redirect(SECTION, project.slug)


def read_general(request: HttpRequest) -> tuple[dict[str, Any], str]:
    """(what is to be stored, the text that says so). Raises SetupError."""
    if "poll_minutes" in request.POST:
        minutes = int(parse_number(request.POST["poll_minutes"], "poll_minutes", whole=True))
        success_text = (
            f"The site looks for new commits every {minutes} minutes." if minutes else "It looks no more."
        )
        return {"poll_minutes": minutes}, success_text
    wanted = request.POST.get("visibility", "")
    if wanted not in Visibility.values:
        raise SetupError(f"visibility: must be one of {', '.join(Visibility.values)}.", "visibility")
    return {"visibility": wanted}, SAVED[Visibility(wanted)]


def render_general(
    request: HttpRequest,
    context: dict[str, Any],
    error: SetupError | None = None,
    typed: dict[str, str] | None = None,
) -> HttpResponse:
    project: Project = context["project"]
    known = {"repository": project.repository, "branch": project.branch}
    errors = {
        "visibility": "",
        "poll_minutes": "",
        "slug": "",
        **({error.field: str(error)} if error else {}),
    }
    shown = {
        **context,
        **repository_form.form_context(request, typed or known, error),
        "errors": errors,
        "poll_minutes": request.POST.get("poll_minutes", str(project.poll_minutes))[:20],
        "credentials": describe_credentials(project),
        "name": request.POST.get("slug", project.slug)[:LONGEST_NAME],
        "former_names": list(project.former_names.all()),
    }
    return render(request, "settings/general.html", shown, status=400 if error else 200)


def describe_credentials(project: Project) -> str:
    """Whose password is kept; never the password itself."""
    if is_lost(project.credentials):
        return "The user and password can't be read any more: give them again."
    if not project.credentials:
        return "No user and password are kept."
    user, colon, _ = project.credentials.partition(":")
    # A token may stand where the user does.
    return f"User {unquote(user)} and a password are kept." if colon else "A token is kept."


@never_cache
@require_POST
def test_repository(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's fields are those of `repository_form`, and `forget` for the credentials."""
    context = settings_context(request, slug, SECTION)
    project: Project = context["project"]
    try:
        test = repository_form.request_same_test(request, project)
        test = test or repository_form.request_typed_test(request, project)
    except SetupError as error:
        return render_general(request, context, error, repository_form.typed_fields(request))
    return redirect("project-repository-test", slug, test.pk)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tested_repository_page(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """What the test found; POST fetches from there from now on."""
    context = settings_context(request, slug, SECTION)
    test = own_test(request, slug, pk)
    if request.method == "POST":
        try:
            changed = change_repository(visitor_of(request), test)
        except SetupError as error:
            messages.error(request, str(error))
            return redirect("project-repository-test", slug, pk)
        messages.success(
            request, "It is fetched from there now." if changed else "Nothing had to be changed."
        )
        return redirect(SECTION, slug)
    shown = {
        **context,
        **repository_form.tested_context(test, reverse("project-repository-status", args=[slug, pk])),
    }
    return render(request, "settings/repository.html", shown)


def own_test(request: HttpRequest, slug: str, pk: int) -> RepositoryTest:
    rows = RepositoryTest.objects.select_related("project")
    return get_object_or_404(rows, pk=pk, project__slug=slug, requested_by=request.user)


@never_cache
@require_safe
def repository_status_fragment(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    """Asked for again and again while the test is under way; then the whole page."""
    test = own_test(request, slug, pk)
    return repository_form.render_status(request, test, reverse("project-repository-status", args=[slug, pk]))
