"""The files that the site keeps beside a project's manifest: each is shown and changed, many are uploaded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard.access import visitor_of
from dashboard.host_protocol.kept_files import LARGEST_FILE, LONGEST_PATH
from dashboard.models import Project
from dashboard.pages.form_fields import OVERTAKEN, read_text, text_version
from dashboard.pages.settings.sections import settings_context
from dashboard.projects.kept_files import (
    FileOvertakenError,
    KeptFileError,
    decode_file,
    keep_files,
    read_kept_files,
)

ACTIONS = ("keep", "remove", "upload")
SECTION = "project-manifest"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def kept_file_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One file, named by `path` in the address. The form's fields: `path`, `text`, or `files` with `folder`;
    and `action`: keep, remove or upload. `former` is the path that a kept file had, `text_version` tells of
    which text the form was made.
    """
    context = settings_context(request, slug, SECTION)
    project: Project = context["project"]
    if request.method != "POST":
        path = request.GET.get("path", "")
        kept = project.kept_files.filter(path=path).first()
        text, former = (kept.text, kept.path) if kept else ("", "")
        return render_file(request, context, path, text, text_version(text), former=former)
    action, former = request.POST.get("action", ""), read_text(request.POST, "former")
    path, text = request.POST.get("path", "").strip(), request.POST.get("text", "")
    version = request.POST.get("text_version", "")
    try:
        changed = read_changes(request, action, path, text, former)
        check = partial(check_kept, changed, action=action, path=path, former=former, version=version)
        keep_files(visitor_of(request), project, changed, check)
    except KeptFileError as error:
        if isinstance(error, FileOvertakenError):
            version = text_version(read_kept_files(project).get(former, ""))
        return render_file(request, context, path, text, version, former=former, refused=str(error))
    names = ", ".join(changed)
    done = "is no longer kept" if action == "remove" else "counts from now on"
    messages.success(request, f"{names} {done}.")
    return redirect(SECTION, slug)


def check_kept(
    changed: Mapping[str, str | None],
    kept: Mapping[str, str],
    *,
    action: str,
    path: str,
    former: str,
    version: str,
) -> None:
    """Whether what the form was made from is still so. Raises KeptFileError."""
    is_sent_again = action == "keep" and all(kept.get(name) == text for name, text in changed.items())
    if action == "upload" or is_sent_again:
        return
    if action == "remove" and (former or path) not in kept:
        raise KeptFileError(f"path: no file {(former or path)[:LONGEST_PATH]!r} is kept.")
    if action == "keep" and path != former and path in kept:
        raise KeptFileError(f"path: {path} is kept already: open it to change it, or remove it first.")
    if former and version and version != text_version(kept.get(former, "")):
        raise FileOvertakenError(OVERTAKEN)


def read_changes(
    request: HttpRequest, action: str, path: str, text: str, former: str
) -> dict[str, str | None]:
    """By its path what becomes of each file that the form names. Raises KeptFileError."""
    if action not in ACTIONS:
        raise KeptFileError(f"action: must be one of {', '.join(ACTIONS)}.")
    if action == "remove":
        return {former or path: None}
    if action == "upload":
        folder = request.POST.get("folder", "").strip().strip("/")
        uploaded = [file for file in request.FILES.getlist("files") if file.name]
        if not uploaded:
            raise KeptFileError("Choose at least one file.")
        named = {f"{folder}/{file.name}" if folder else str(file.name): file for file in uploaded}
        return {name: decode_file(name, file.read(LARGEST_FILE + 1)) for name, file in named.items()}
    moved: dict[str, str | None] = {former: None} if former and former != path else {}
    return {**moved, path: decode_file(path, text.encode("utf-8", "surrogatepass"))}


def render_file(
    request: HttpRequest,
    context: dict[str, object],
    path: str,
    text: str,
    version: str,
    *,
    former: str,
    refused: str = "",
) -> HttpResponse:
    shown = {**context, "path": path, "text": text, "text_version": version, "former": former}
    shown["refused"] = refused
    return render(request, "settings/kept_file.html", shown, status=400 if refused else 200)
