"""Adding a project: its repository is tested by a worker, then shown with what it would have measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.access import visitor_of
from dashboard.models import FormerName, Project, RepositoryTest
from dashboard.pages.form_fields import read_text
from dashboard.pages.settings import repository_form
from dashboard.project_setup.adding import WantedProject, add_tested_project
from dashboard.project_setup.duration_sentences import expected_sentence, expected_text
from dashboard.project_setup.errors import SetupError
from dashboard.project_setup.expected_durations import expect_benchmark, expect_benchmarks
from dashboard.project_setup.manifests import EXAMPLE, PlannedBenchmark, plan_benchmarks, read_manifest_text
from dashboard.querysets.durations import newest_durations
from dashboard.repositories import MOST_COMMITS

# How many of the newest commits are offered to be measured.
OFFERED = (1, 5, 20)
DEFAULT_CHOICE = "5"
OWN_NUMBER = "last"
LONGEST_NUMBER = 6
MOST_SUGGESTED = 60
FIELDS = ("slug", "visibility", "keeps", "manifest", "which", "last")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_project_page(request: HttpRequest) -> HttpResponse:
    """The form's fields are those of `repository_form`. A test of another branch names the test before it."""
    if request.method != "POST":
        return render_first_form(request, {}, None)
    try:
        test = repository_form.request_same_test(request) or repository_form.request_typed_test(request)
    except SetupError as error:
        return render_first_form(request, repository_form.typed_fields(request), error)
    return redirect("project-new-tested", test.pk)


def render_first_form(
    request: HttpRequest, typed: Mapping[str, str], error: SetupError | None
) -> HttpResponse:
    context = repository_form.form_context(request, typed, error)
    return render(request, "projects/new_project.html", context, status=400 if error else 200)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tested_project_page(request: HttpRequest, pk: int) -> HttpResponse:
    """What the test found. POST adds the project, and asks for its first runs."""
    test = own_test(request, pk)
    if request.method != "POST" or not test.is_readable:
        return render_tested(request, test, suggested_fields(test), None)
    written = read_fields(request.POST)
    names = request.POST.getlist("benchmarks")
    try:
        project = add_tested_project(visitor_of(request), test, read_wanted(test, written, names))
    except SetupError as error:
        return render_tested(request, test, {**written, "benchmarks": names}, error)
    messages.success(request, added_message(project, written))
    return redirect(project)


def added_message(project: Project, written: Mapping[str, str]) -> str:
    if not read_count(written):
        return f"{project} is added. Nothing is measured yet: ask for runs below."
    return (
        f"{project} is added, and you administer it. Its runs appear here once the repository has been read."
    )


def own_test(request: HttpRequest, pk: int) -> RepositoryTest:
    """The test that the visitor asked for: of others it isn't there, since its address may tell of them."""
    return get_object_or_404(RepositoryTest, pk=pk, project=None, requested_by=request.user)


def read_fields(form: Mapping[str, Any]) -> dict[str, str]:
    return {name: read_text(form, name) for name in FIELDS}


def suggested_fields(test: RepositoryTest) -> dict[str, Any]:
    """What the form begins with. Where no manifest can be used, nothing can be measured without one."""
    text = test.facts.get("manifest")
    usable = bool(text) and not repository_form.read_benchmarks(text)[1]
    return {
        "slug": suggested_slug(test.repository),
        "visibility": Project.Visibility.PUBLIC,
        "keeps": "" if usable else "yes",
        "manifest": EXAMPLE,
        "which": DEFAULT_CHOICE,
        "last": "10",
        "benchmarks": [],
    }


def suggested_slug(repository: str) -> str:
    """`code` of `https://host/team/Code.git`, or one with a number where that is taken."""
    last = re.split(r"[/:]", repository.rstrip("/"))[-1].removesuffix(".git")
    name = slugify(last)[: MOST_SUGGESTED - 4]
    now, before = (
        model.objects.filter(slug__startswith=name).values_list("slug", flat=True)
        for model in (Project, FormerName)
    )
    taken = {*now, *before, "new", ""}
    names = (name, *(f"{name}-{number}" for number in range(2, 100)))
    return next((candidate for candidate in names if candidate not in taken), "")


def read_wanted(test: RepositoryTest, written: Mapping[str, str], benchmarks: list[str]) -> WantedProject:
    """Raises SetupError."""
    if written["visibility"] not in Project.Visibility.values:
        raise SetupError(f"Visibility must be one of {', '.join(Project.Visibility.values)}.", "visibility")
    manifest = read_manifest_text(written["manifest"]) if written["keeps"] else ""
    if written["keeps"] and not manifest.strip():
        raise SetupError("The manifest is empty: write one, or let the repository's count.", "manifest")
    last = read_count(written)
    text = manifest or test.facts["manifest"]
    known = plan_benchmarks(text) if last and text else []
    # The boxes are those of the repository's manifest: another one's benchmarks are all measured.
    names = tuple(name for name in benchmarks if not written["keeps"])
    offered = {benchmark.name for benchmark in known}
    if known and (unknown := next((name for name in names if name not in offered), None)) is not None:
        raise SetupError(f"Benchmarks: the manifest has none called {unknown[:60]!r}.", "last")
    check_count(last, [benchmark for benchmark in known if not names or benchmark.name in names])
    return WantedProject(written["slug"].strip(), written["visibility"], manifest, last, names)


def read_count(written: Mapping[str, str]) -> int:
    text = written["last"].strip() if written["which"] == OWN_NUMBER else written["which"]
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise SetupError(f"The number of commits must be a whole number, 0 to {MOST_COMMITS}.", "last")
    count = int(text)
    if count > MOST_COMMITS:
        raise SetupError(f"At most {MOST_COMMITS} commits are measured at once.", "last")
    return count


def check_count(last: int, benchmarks: list[PlannedBenchmark]) -> None:
    runs = last * sum(len(benchmark.cases) for benchmark in benchmarks)
    if runs > settings.PACELINE_MOST_RUNS:
        raise SetupError(
            f"{last} commits would be {runs} runs, this site takes {settings.PACELINE_MOST_RUNS} at once: "
            "measure fewer.",
            "last",
        )


def render_tested(
    request: HttpRequest, test: RepositoryTest, fields: Mapping[str, Any], error: SetupError | None
) -> HttpResponse:
    context = {
        **repository_form.form_context(request, repository_form.fields_of(test), None),
        **repository_form.tested_context(test, reverse("project-new-status", args=[test.pk])),
        "fields": fields,
        "errors": {
            **dict.fromkeys((*FIELDS, "repository"), ""),
            **({error.field: str(error)} if error else {}),
        },
        **expected_context(request, test),
        "most_commits": MOST_COMMITS,
        "most_runs": settings.PACELINE_MOST_RUNS,
    }
    return render(request, "projects/new_project.html", context, status=400 if error else 200)


def expected_context(request: HttpRequest, test: RepositoryTest) -> dict[str, Any]:
    """How long each choice takes. Known of cases that another project of the same repository has measured."""
    benchmarks, _ = repository_form.read_benchmarks(test.facts.get("manifest"))
    same = visitor_of(request).visible_projects().filter(repository=test.repository)
    durations = newest_durations(same) if benchmarks else {}
    expected = expect_benchmarks(benchmarks, durations)
    return {
        "offered": [(str(count), expected_text(expected, count)) for count in OFFERED],
        "expected": expected_sentence(expected),
        "expected_of": [
            (benchmark, expected_text(expect_benchmark(benchmark, durations))) for benchmark in benchmarks
        ],
    }


@never_cache
@require_safe
def new_project_status_fragment(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Asked for again and again while the test is under way; then the whole page."""
    test = own_test(request, pk)
    return repository_form.render_status(request, test, reverse("project-new-status", args=[test.pk]))


@never_cache
@require_POST
def preview_manifest_fragment(request: HttpRequest) -> HttpResponse:
    """The cases of the manifest in the form's field `manifest`, or what is wrong with it."""
    return repository_form.render_preview(request)
