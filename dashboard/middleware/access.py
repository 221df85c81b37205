"""Every request is held to the table of rules before its view is called: a view can't forget it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse

from dashboard.access.errors import TokenRefused
from dashboard.access.rules import (
    OPERATION_RULES,
    PROJECT_ACTIONS,
    Audience,
    Rule,
    find_project,
    is_allowed,
    rule_of_match,
)
from dashboard.access.sentences import PAGES_ONLY, SIGNED_OUT, refusal_sentence
from dashboard.access.visitors import Visitor, visitor_of
from dashboard.api.host_requests import refuse_unknown_host
from dashboard.models import Action, Project
from dashboard.page_cache.revisions import SeenRevision
from dashboard.problem_details import (
    NEEDS_TOKEN,
    NOT_HERE,
    allowed_methods,
    answer_problem,
    is_for_scripts,
    method_sentence,
    refuse_method,
)
from dashboard.projects.names import current_slug


class AccessMiddleware:
    """Before CSRF's: a request that bears a token needs no cookie of it, where the rule takes tokens."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if not isinstance(response, HttpResponseNotAllowed):
            return response
        looked_at = request.method in ("GET", "HEAD")
        return (lead_to_page(request) if looked_at else None) or explain_methods(request, response)

    def process_view(
        self, request: HttpRequest, _view: Any, _arguments: Any, named: dict[str, Any]
    ) -> HttpResponseBase | None:
        match, method = request.resolver_match, request.method or "GET"
        rule = rule_of_match(match, method) if match else None
        if rule is None and match and match.view_name in OPERATION_RULES:
            return refuse_method(method, OPERATION_RULES[match.view_name])
        if rule is None:
            return show_refusal(request, "Nobody may use this address: no rule says who may.")
        if rule.who == Audience.HOST_TOKEN:
            return refuse_unknown_host(request)
        if rule.who in (Audience.JOIN_CODE, Audience.SIGNED_HOOK):
            return None
        if not rule.identifies:
            # Nothing is written there: whoever posts learns of the method, not of a page that they lack.
            request.__dict__["_dont_enforce_csrf_checks"] = True
            return None
        request.__dict__["takes_tokens"] = rule.api
        try:
            visitor = visitor_of(request)
        except TokenRefused as refused:
            return answer_problem(HTTPStatus.UNAUTHORIZED, str(refused))
        if visitor.token is not None:
            if not rule.api:
                return answer_problem(HTTPStatus.FORBIDDEN, PAGES_ONLY)
            # Nobody's session counts beside a token, and no browser sends one by itself.
            request.user = AnonymousUser()
            request.__dict__["_dont_enforce_csrf_checks"] = True
        return self.hold_to_rule(request, visitor, rule, named)

    def hold_to_rule(
        self, request: HttpRequest, visitor: Visitor, rule: Rule, named: dict[str, Any]
    ) -> HttpResponseBase | None:
        seen_at = time.monotonic()
        project = find_project(rule, named) if rule.found_by else None
        former = ""
        if project is None and rule.found_by == "slug" and (renamed := current_slug(named["slug"])):
            # The view gets what it was asked for by the name that it knows.
            former, named["slug"] = named["slug"], renamed
            project = find_project(rule, named)
        if project is not None:
            request.__dict__["shown_revision"] = SeenRevision.of(project.__dict__["revision"], seen_at)
        # Views of a project needn't look it up again: `dashboard.pages.requested_project`.
        request.__dict__["_project"] = project
        if is_hidden(visitor, rule, project):
            if rule.api:
                return answer_problem(HTTPStatus.NOT_FOUND, NOT_HERE)
            raise Http404(NOT_HERE)
        if is_allowed(visitor, rule, project):
            return redirect_to_name(request, named) if former and not rule.api else None
        if rule.api:
            anonymous = visitor.user is None
            status = HTTPStatus.UNAUTHORIZED if anonymous else HTTPStatus.FORBIDDEN
            return answer_problem(
                status, NEEDS_TOKEN if anonymous else refusal_sentence(visitor, rule, project)
            )
        if visitor.user is None:
            if request.method not in ("GET", "HEAD"):
                messages.warning(request, SIGNED_OUT)
            return redirect_to_login(address_after_sign_in(request, rule, named))
        return show_refusal(request, refusal_sentence(visitor, rule, project))


def redirect_to_name(request: HttpRequest, named: Mapping[str, Any]) -> HttpResponseBase | None:
    """From a page below a project's former name to where it is now; None for a form, which is taken."""
    match = request.resolver_match
    if match is None or request.method not in ("GET", "HEAD"):
        return None
    query = request.META.get("QUERY_STRING", "")
    address = reverse(match.view_name, kwargs=dict(named))
    # For now: the name may be given up, and become another project's.
    return HttpResponseRedirect(f"{address}?{query}" if query else address)


def lead_to_page(request: HttpRequest) -> HttpResponseBase | None:
    """From the address of a form, which takes no look, to the page that has the form: who types it again, or
    comes back to it, isn't left with an empty page. None where it has no such page."""
    match = request.resolver_match
    rule = rule_of_match(match, "GET") if match else None
    if match is None or rule is None or not rule.after_sign_in:
        return None
    return HttpResponseRedirect(address_after_sign_in(request, rule, match.kwargs))


def explain_methods(request: HttpRequest, refused: HttpResponseNotAllowed) -> HttpResponse:
    """What Django answers with an empty page: which methods there are."""
    method, allowed = request.method or "GET", refused.headers["Allow"].split(", ")
    if is_for_scripts(request) or is_probed(request):
        return refuse_method(method, allowed)
    sentence = method_sentence(method, allowed_methods(allowed))
    page = render(request, "refused.html", {"problem": sentence}, status=HTTPStatus.METHOD_NOT_ALLOWED)
    page.headers["Allow"] = refused.headers["Allow"]
    return page


def is_probed(request: HttpRequest) -> bool:
    """Whether monitors ask there, to whom no page is shown."""
    match = request.resolver_match
    rule = rule_of_match(match, "GET") if match else None
    return rule is not None and not rule.identifies


def show_refusal(request: HttpRequest, sentence: str) -> HttpResponse:
    """The page of one sentence that says who can grant it. Rendered here: raising logs a traceback."""
    return render(request, "403.html", {"exception": sentence}, status=HTTPStatus.FORBIDDEN)


def is_hidden(visitor: Visitor, rule: Rule, project: Project | None) -> bool:
    """Whether the address looks like one where nothing is: there is nothing, or nothing for this visitor."""
    if rule.who not in PROJECT_ACTIONS:
        return False
    if project is None:
        return True
    # A token of another project sees as much as nobody does.
    knows = Visitor() if visitor.token and visitor.token.project_id != project.pk else Visitor(visitor.user)
    return not knows.may(Action.VIEW, project)


def address_after_sign_in(request: HttpRequest, rule: Rule, named: Mapping[str, Any]) -> str:
    """Where signing in leads: what was posted is gone then."""
    if rule.after_sign_in:
        arguments = {"slug": named["slug"]} if rule.found_by == "slug" else dict(named)
        try:
            return reverse(rule.after_sign_in, kwargs=arguments)
        except NoReverseMatch:
            # A list, in which the one stands that the address is about.
            return reverse(rule.after_sign_in)
    return request.get_full_path()
