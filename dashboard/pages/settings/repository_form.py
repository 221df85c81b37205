"""The form that names a repository and what its test found, for a new project and for one that moves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django_htmx.http import HttpResponseClientRefresh

from dashboard.access import Action, visitor_of
from dashboard.access.rules import ADD_PROJECT_PERMISSION
from dashboard.models import Project, RepositoryTest
from dashboard.pages.form_fields import parse_key, read_text
from dashboard.project_setup import repository_test_sentences as sentences
from dashboard.project_setup.allowed_repositories import PERMISSION, read_address
from dashboard.project_setup.errors import SetupError
from dashboard.project_setup.manifests import PlannedBenchmark, plan_benchmarks, read_manifest_text
from dashboard.project_setup.repository_tests import request_test
from dashboard.sentences.formatting import numbers

FIELDS = ("repository", "user", "password", "branch")
LONGEST = 2000
# After so long without a worker the page says that none may be running.
PATIENCE = timedelta(seconds=20)


def typed_fields(request: HttpRequest) -> dict[str, str]:
    """What stands in the form's fields: the password isn't sent back."""
    typed = {name: read_text(request.POST, name)[: LONGEST + 1] for name in FIELDS}
    return {**typed, "password": ""}


def fields_of(test: RepositoryTest) -> dict[str, str]:
    return {"repository": test.repository, "user": "", "password": "", "branch": test.branch}


def request_typed_test(request: HttpRequest, project: Project | None = None) -> RepositoryTest:
    """Test what was typed. Raises SetupError. A project's own address keeps its credentials."""
    known = project.repository if project else ""
    address, credentials = read_address(
        request.POST.get("repository", ""),
        request.POST.get("user", ""),
        request.POST.get("password", "").strip("\r\n"),
        local_allowed=names_folders(request),
        key_allowed=uses_site_key(request),
        known=known,
    )
    # Never those of one address for another: they would be sent to whoever answers there.
    if project and address == known and not credentials and not request.POST.get("forget"):
        credentials = project.credentials
    return request_test(
        visitor_of(request).user,  # type: ignore[arg-type]  # The table of rules lets nobody else in.
        address,
        credentials,
        read_text(request.POST, "branch").strip(),
        project,
    )


def request_same_test(request: HttpRequest, project: Project | None = None) -> RepositoryTest | None:
    """A test of another branch, or the same once more; None where the form names no earlier test."""
    key = parse_key(request.POST.get("again", ""))
    user = visitor_of(request).user
    if user is None or not key:
        return None
    before = RepositoryTest.objects.filter(pk=key, requested_by=user, project=project).first()
    if before is None:
        raise SetupError("The test of before is forgotten: give the address again.", "repository")
    branch = read_text(request.POST, "branch").strip()
    return request_test(user, before.repository, before.credentials, branch, project)


def names_folders(request: HttpRequest) -> bool:
    """Whether the visitor may name a folder of the site's own machine."""
    user = visitor_of(request).user
    return bool(user and user.is_superuser) or bool(getattr(settings, PERMISSION))


def uses_site_key(request: HttpRequest) -> bool:
    """Whether the visitor may have the site read whatever its own ssh key reads."""
    return visitor_of(request).may(Action.ADMINISTER_SITE, permission=ADD_PROJECT_PERMISSION)


def address_hint(request: HttpRequest) -> str:
    """What the visitor may name."""
    forms = ["https://host/team/code.git"]
    if uses_site_key(request):
        forms.append("git@host:team/code.git")
    if names_folders(request):
        forms.append("a folder of the site's machine")
    return forms[0] if len(forms) == 1 else f"{', '.join(forms[:-1])} or {forms[-1]}"


def form_context(request: HttpRequest, typed: Mapping[str, str], error: SetupError | None) -> dict[str, Any]:
    return {
        "typed": {**dict.fromkeys(FIELDS, ""), **typed},
        "address_errors": {
            **dict.fromkeys(FIELDS, ""),
            **({error.field: str(error)} if error else {}),
        },
        "address_hint": address_hint(request),
        "test": None,
    }


def tested_context(test: RepositoryTest, status_address: str) -> dict[str, Any]:
    """What is known of the repository; nothing is read from it here."""
    facts = test.facts
    benchmarks, refused = read_benchmarks(facts.get("manifest"))
    commit = facts.get("commit") or {}
    return {
        "test": test,
        "status_address": status_address,
        "sentence": sentences.outcome_sentence(test),
        "advice": sentences.outcome_advice(test),
        "reason": facts.get("reason", ""),
        "unanswered": not test.started_at and timezone.now() - test.created_at > PATIENCE,
        "branches": facts.get("branches", []),
        "more_branches": facts.get("branch_count", 0) - len(facts.get("branches", [])),
        "chosen_branch": facts.get("branch", ""),
        "commit": commit,
        "committed_at": parse_datetime(commit.get("committed_at", "")) if commit else None,
        "benchmarks": benchmarks,
        "manifest_refused": (sentences.manifest_sentence(test) or refused) if test.is_readable else "",
        **benchmark_totals(benchmarks),
    }


def read_benchmarks(text: str | None) -> tuple[list[PlannedBenchmark], str]:
    """The benchmarks of a manifest, and what is wrong with it."""
    try:
        return (plan_benchmarks(text), "") if text else ([], "")
    except SetupError as error:
        return [], str(error)


def benchmark_totals(benchmarks: list[PlannedBenchmark]) -> dict[str, Any]:
    seconds = sum(benchmark.longest_seconds * len(benchmark.cases) for benchmark in benchmarks)
    return {
        "case_count": sum(len(benchmark.cases) for benchmark in benchmarks),
        "longest": numbers.format_duration(seconds) if seconds else "",
    }


def render_status(request: HttpRequest, test: RepositoryTest, status_address: str) -> HttpResponseBase:
    if test.outcome:
        return HttpResponseClientRefresh()
    return render(request, "settings/repository_test.html", tested_context(test, status_address))


def render_preview(request: HttpRequest) -> HttpResponse:
    """The cases of the manifest that stands in the form's field, or what is wrong with it."""
    try:
        benchmarks = plan_benchmarks(read_manifest_text(request.POST.get("manifest", "")))
    except SetupError as error:
        context: dict[str, Any] = {"benchmarks": [], "manifest_refused": str(error), **benchmark_totals([])}
    else:
        context = {"benchmarks": benchmarks, "manifest_refused": "", **benchmark_totals(benchmarks)}
    return render(request, "settings/manifest_preview.html", context)
