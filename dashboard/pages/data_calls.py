"""Which call of the API gives the data of which page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode


@dataclass(frozen=True, slots=True)
class DataCall:
    """`view_name`: of the call, whose address has the arguments of the page's. `kept`: of the page's query
    what the call takes too; `query`: what it takes beside; `asked`: arguments of the page that it takes in
    its query, by their names there.
    """

    view_name: str
    kept: tuple[str, ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    asked: Mapping[str, str] = field(default_factory=dict)


# A new page that shows data needs a line here.
DATA_CALLS = {
    "overview": DataCall("api-projects"),
    "project": DataCall("api-series-list", query=(("headline", "true"),)),
    "project-runs": DataCall("api-runs"),
    "project-commits": DataCall("api-commits"),
    "project-triggers": DataCall("api-triggers"),
    "project-costs": DataCall("api-commits"),
    "project-experiments": DataCall("api-experiments", kept=("state", "purpose")),
    "commit": DataCall("api-commit"),
    "project-trigger": DataCall("api-trigger"),
    "project-heatmap": DataCall("api-series-list", query=(("headline", "true"),)),
    "project-noise": DataCall("api-series-list", query=(("headline", "true"),)),
    "project-trust": DataCall("api-regressions", asked={"slug": "project"}),
    "project-regressions": DataCall("api-regressions", kept=("state",), asked={"slug": "project"}),
    "project-claims": DataCall("api-claims"),
    "benchmark-claims": DataCall("api-claims", kept=("show",), asked={"benchmark": "benchmark"}),
    "claim": DataCall("api-claim-measurements"),
    "project-settings": DataCall("api-project-settings"),
    "project-measuring": DataCall("api-project-settings"),
    "project-policy": DataCall("api-project-settings"),
    "project-manifest": DataCall("api-project-settings"),
    "project-kept-file": DataCall("api-project-settings"),
    "project-members": DataCall("api-members"),
    "project-tokens": DataCall("api-tokens"),
    "project-channels": DataCall("api-channels"),
    "project-channel": DataCall("api-channel"),
    "project-audit": DataCall("api-project-audit", kept=("action",)),
    "site-audit": DataCall("api-audit", kept=("action",)),
    "series": DataCall("api-points", kept=("until",)),
    "run": DataCall("api-run"),
    "experiment": DataCall("api-experiment"),
    "project-checks": DataCall("api-checks"),
    "check": DataCall("api-check"),
    "regressions": DataCall("api-regressions", kept=("state", "project")),
    "regression": DataCall("api-regression"),
    "machines": DataCall("api-machines"),
    "machine": DataCall("api-machine"),
    "deliveries": DataCall("api-deliveries", kept=("channel",)),
}


def data_address(request: HttpRequest) -> str:
    """Of the call that gives the data of the page that is asked for; empty where there is none."""
    match = request.resolver_match
    call = DATA_CALLS.get(match.view_name) if match else None
    if match is None or call is None:
        return ""
    kept = [(name, request.GET[name]) for name in call.kept if request.GET.get(name)]
    asked = [(parameter, match.kwargs[name]) for name, parameter in call.asked.items()]
    query = urlencode([*call.query, *asked, *kept])
    arguments = {name: value for name, value in match.kwargs.items() if name not in call.asked}
    address = reverse(call.view_name, kwargs=arguments)
    return f"{address}?{query}" if query else address
