"""The project that an address is about: the middleware has looked it up to hold the request to its rule."""

from __future__ import annotations

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from dashboard.models import Project


def requested_project(request: HttpRequest, slug: str) -> Project:
    """Without its manifest, which is read where somebody asks for it. Http404 where there is none."""
    found: Project | None = request.__dict__.get("_project")
    if found is not None and found.slug == slug:
        return found
    return get_object_or_404(Project.objects.defer("manifest"), slug=slug)
