"""Which requests are limited, each by the rate of its group: PACELINE_RATES."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from dashboard.access.rules import OPERATION_RULES
from dashboard.access.visitors import visitor_of
from dashboard.throttling.keys import network_of
from dashboard.throttling.rates import Rate, count_request
from dashboard.throttling.refusals import refuse_for_now

READS = ("GET", "HEAD")
# Name of an address -> (its group, the methods that are counted). What else the API is asked is of its own.
LIMITED_REQUESTS: dict[str, tuple[str, tuple[str, ...]]] = {
    # These make machines work.
    "trigger": ("triggers", ("POST",)),
    "measure-missing": ("triggers", ("POST",)),
    "project-new-tested": ("triggers", ("POST",)),
    "experiment-new": ("experiments", ("POST",)),
    "claims-measure": ("experiments", ("POST",)),
    "check-change": ("experiments", ("POST",)),
    "api-runs": ("triggers", ("POST",)),
    "api-experiments": ("experiments", ("POST",)),
    "api-claims": ("experiments", ("POST",)),
    "api-checks": ("experiments", ("POST",)),
    "machine-code": ("codes", ("POST",)),
    # A commit that isn't known is fetched for its document. A script posts one of each case.
    "api-documents": ("documents", ("POST",)),
    # These let the site fetch, or ask a forge.
    "project-new": ("repositories", ("POST",)),
    "project-repository": ("repositories", ("POST",)),
    "project-manifest": ("repositories", ("POST",)),
    "read-commits": ("repositories", ("POST",)),
    "project-forge": ("repositories", ("POST",)),
    "project-forge-test": ("repositories", ("POST",)),
    # These send a message to whomever the channel names.
    "project-channel-change": ("messages", ("POST",)),
    "api-channel-test": ("messages", ("POST",)),
    # These try secrets, or send mail.
    "account_reset_password": ("passwords", ("POST",)),
    "account_reset_password_from_key": ("passwords", (*READS, "POST")),
    "account_change_password": ("passwords", ("POST",)),
    "account_reauthenticate": ("passwords", ("POST",)),
    "mfa_authenticate": ("passwords", ("POST",)),
    "mfa_reauthenticate": ("passwords", ("POST",)),
    "mfa_activate_totp": ("passwords", ("POST",)),
    # These ask the provider.
    "openid_connect_login": ("provider", ("POST",)),
    "openid_connect_callback": ("provider", READS),
    # These read much: documents, profiles, a history.
    "series": ("pages", READS),
    "run-document": ("pages", READS),
    "series-part": ("pages", READS),
    "series-csv": ("pages", READS),
    "series-json": ("pages", READS),
    "run": ("pages", READS),
    "run-frames": ("pages", READS),
    "run-log": ("pages", READS),
    "regression": ("pages", READS),
    "experiment": ("pages", READS),
    "machine": ("pages", READS),
    "project-compare": ("pages", READS),
    "project-compare-markdown": ("pages", READS),
    "project-compare-csv": ("pages", READS),
    "search": ("pages", READS),
    # Lists that are looked through for words.
    "project-runs": ("pages", READS),
    "project-commits": ("pages", READS),
    "project-regressions": ("pages", READS),
    "regressions": ("pages", READS),
    # These draw a picture anew each time.
    "project-compare-metrics": ("pages", READS),
    "project-compare-flame": ("pages", READS),
    "run-flame": ("pages", READS),
    "run-telemetry": ("pages", READS),
    "run-step-times": ("pages", READS),
    "run-scaling": ("pages", READS),
    "machine-calibration": ("pages", READS),
    "machine-sentinels": ("pages", READS),
    "experiment-picture": ("pages", READS),
    "claim-picture": ("pages", READS),
    "run-picture": ("pages", READS),
    "series-picture": ("pages", READS),
    "regression-picture": ("pages", READS),
    "shared-picture": ("pages", READS),
    "step-picture": ("pages", READS),
}


def find_group(view_name: str, method: str) -> str:
    """By whose rate a request is counted; empty where it isn't."""
    group, methods = LIMITED_REQUESTS.get(view_name, ("", ()))
    if method in methods:
        return group
    return "api" if view_name in OPERATION_RULES else ""


class LimitRequests:
    """The middleware that answers 429 to who comes too often."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, _view: Any, _arguments: Any, _named: Any
    ) -> HttpResponse | None:
        match = request.resolver_match
        group = find_group(match.view_name if match else "", request.method or "GET")
        rate: Rate | None = settings.PACELINE_RATES.get(group)
        if rate is None:
            return None
        seconds = count_request(rate, group, requester_key(request))
        return refuse_for_now(request, seconds) if seconds else None


def requester_key(request: HttpRequest) -> str:
    """Who asks: the account that signed in or made the token, where there is one, else the address."""
    token = visitor_of(request).token
    if token is not None:
        return f"account {token.made_by_id}"
    if request.user.is_authenticated:
        return f"account {request.user.pk}"
    return f"address {network_of(request.META.get('REMOTE_ADDR', ''))}"
