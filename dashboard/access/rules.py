"""One table says who may use which address. A middleware holds every request to it; pages offer by it.

A new address needs a line in RULES, an operation of the API one in OPERATION_RULES: without it nobody may use
it, and a system check says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet
from django.urls import ResolverMatch

from dashboard.access.visitors import Visitor
from dashboard.models import Action, Check, Claim, Delivery, Experiment, Project, Regression, Run, Series
from dashboard.page_cache.revisions import PROJECT_REVISION
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter


class Audience(StrEnum):
    """Whom an address is for."""

    ANYBODY = "anybody"
    SIGNED_IN = "whoever is signed in"
    VIEW = "whoever may view the project"
    OPERATE = "operators of the project"
    ADMINISTER = "admins of the project"
    SITE_ADMINISTRATOR = "administrators of the site"
    STAFF = "staff, with Django's permissions"
    HOST_TOKEN = "a host, by its token"  # noqa: S105 - no token
    JOIN_CODE = "a host, by a join code"
    SIGNED_HOOK = "a git hook, by its signature"


# What a visitor must be able to do in the project that the address is about.
PROJECT_ACTIONS = {
    Audience.VIEW: Action.VIEW,
    Audience.OPERATE: Action.OPERATE,
    Audience.ADMINISTER: Action.ADMINISTER,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """`found_by`: a key of LOOKUPS, by which the address names its project. `permission`: of Django's; it
    allows the same in every project that its holder may view. `api`: takes tokens. `after_sign_in`: the page,
    of the same arguments, to which signing in leads where the address itself takes no look. `spans_projects`:
    shows what the visitor may view of all projects. `identifies`: False where nobody is asked who they are,
    since that takes the database.
    """

    who: Audience
    found_by: str = ""
    permission: str = ""
    api: bool = False
    after_sign_in: str = ""
    spans_projects: bool = False
    identifies: bool = True


# (model, the way from it to its project) by what an address names. The argument is `pk`, but for a slug.
LOOKUPS: dict[str, tuple[Any, str]] = {
    "slug": (Project, "pk"),
    "run": (Run, "configuration__case__project"),
    "series": (Series, "configuration__case__project"),
    "regression": (Regression, "project"),
    "experiment": (Experiment, "project"),
    "claim": (Claim, "project"),
    "check": (Check, "project"),
    "delivery": (Delivery, "channel__project"),
}

TRIAGE_PERMISSION = "dashboard.add_triage"
ADD_MACHINE_PERMISSION = "dashboard.add_machine"
CHANGE_MACHINE_PERMISSION = "dashboard.change_machine"
ADD_PROJECT_PERMISSION = "dashboard.add_project"
CHANGE_CHANNEL_PERMISSION = "dashboard.change_channel"

ANYBODY = Rule(Audience.ANYBODY)
MONITORED = Rule(Audience.ANYBODY, identifies=False)
SPANNING = Rule(Audience.ANYBODY, spans_projects=True)
HOST = Rule(Audience.HOST_TOKEN)
VIEW_PROJECT = Rule(Audience.VIEW, "slug")
ADMINISTER_PROJECT = Rule(Audience.ADMINISTER, "slug")
VIEW_RUN = Rule(Audience.VIEW, "run")
VIEW_EXPERIMENT = Rule(Audience.VIEW, "experiment")
KEEP_CHANNELS = Rule(
    Audience.ADMINISTER, "slug", permission=CHANGE_CHANNEL_PERMISSION, after_sign_in="project-channels"
)
ADD_PROJECT = Rule(Audience.SITE_ADMINISTRATOR, permission=ADD_PROJECT_PERMISSION)
ADMINISTER_SITE = Rule(Audience.SITE_ADMINISTRATOR)
OWN_ACCOUNT = Rule(Audience.SIGNED_IN)
TRIAGE = Rule(Audience.OPERATE, "regression", permission=TRIAGE_PERMISSION, after_sign_in="regression")

RULES: dict[str, Rule] = {
    "healthz": MONITORED,
    "api-description": Rule(Audience.ANYBODY, api=True),
    "api-docs": ANYBODY,
    "readyz": MONITORED,
    "metrics": Rule(Audience.ANYBODY, api=True, spans_projects=True),
    **dict.fromkeys(("sign-in", "sign-out", "account_login", "account_logout"), ANYBODY),
    **dict.fromkeys(("openid_connect_login", "openid_connect_callback", "mfa_authenticate"), ANYBODY),
    **{
        f"account_{name}": ANYBODY
        for name in (
            *("inactive", "reset_password", "reset_password_done"),
            *("reset_password_from_key", "reset_password_from_key_done"),
        )
    },
    **dict.fromkeys(("account", "socialaccount_connections"), OWN_ACCOUNT),
    "usersessions_list": Rule(Audience.SIGNED_IN, after_sign_in="account"),
    **{f"account_{name}": OWN_ACCOUNT for name in ("change_password", "set_password", "reauthenticate")},
    **{
        f"mfa_{name}": OWN_ACCOUNT
        for name in (
            *("index", "reauthenticate", "activate_totp", "deactivate_totp"),
            *("view_recovery_codes", "generate_recovery_codes", "download_recovery_codes"),
        )
    },
    "overview": SPANNING,
    "search": SPANNING,
    "queue": SPANNING,
    "work": SPANNING,
    "regressions": SPANNING,
    "deliveries": SPANNING,
    "delivery-resend": Rule(Audience.OPERATE, "delivery", after_sign_in="deliveries"),
    "machines": SPANNING,
    "machine": SPANNING,
    "machine-status": SPANNING,
    "machine-code": Rule(
        Audience.SITE_ADMINISTRATOR,
        permission=ADD_MACHINE_PERMISSION,
        after_sign_in="machines",
        spans_projects=True,
    ),
    "machine-state": Rule(
        Audience.SITE_ADMINISTRATOR, permission=CHANGE_MACHINE_PERMISSION, after_sign_in="machine"
    ),
    "project": VIEW_PROJECT,
    "project-runs": VIEW_PROJECT,
    "waiting-cancel": Rule(Audience.OPERATE, "slug"),
    "remeasuring-cancel": Rule(Audience.OPERATE, "slug", after_sign_in="project-runs"),
    "project-live-runs": VIEW_PROJECT,
    "project-commits": VIEW_PROJECT,
    "commit": VIEW_PROJECT,
    **dict.fromkeys(
        ("project-regressions", "project-heatmap", "project-noise", "project-trust"), VIEW_PROJECT
    ),
    "measure-missing": Rule(Audience.OPERATE, "slug", after_sign_in="project-commits"),
    "read-commits": Rule(Audience.OPERATE, "slug", after_sign_in="project-commits"),
    "project-triggers": VIEW_PROJECT,
    "project-trigger": VIEW_PROJECT,
    "project-trigger-status": VIEW_PROJECT,
    "project-trigger-cancel": Rule(Audience.OPERATE, "slug", after_sign_in="project-triggers"),
    "project-costs": VIEW_PROJECT,
    "project-compare": VIEW_PROJECT,
    # A script may fetch them with a token.
    "project-compare-markdown": Rule(Audience.VIEW, "slug", api=True),
    "project-compare-csv": Rule(Audience.VIEW, "slug", api=True),
    "project-compare-flame": Rule(Audience.VIEW, "slug", api=True),
    "project-compare-metrics": Rule(Audience.VIEW, "slug", api=True),
    "project-experiments": VIEW_PROJECT,
    "project-claims": VIEW_PROJECT,
    "benchmark-claims": VIEW_PROJECT,
    "claims-measure": Rule(Audience.OPERATE, "slug", after_sign_in="project-claims"),
    "claim": Rule(Audience.VIEW, "claim"),
    # The site's machine fetches what is named there, and the hosts run its code.
    "project-new": ADD_PROJECT,
    "project-new-tested": ADD_PROJECT,
    "project-new-status": ADD_PROJECT,
    "project-new-manifest": Rule(
        Audience.SITE_ADMINISTRATOR, permission=ADD_PROJECT_PERMISSION, after_sign_in="project-new"
    ),
    "project-settings": ADMINISTER_PROJECT,
    "project-policy": ADMINISTER_PROJECT,
    "project-retention": ADMINISTER_PROJECT,
    "project-repository": Rule(Audience.ADMINISTER, "slug", after_sign_in="project-settings"),
    "project-repository-test": ADMINISTER_PROJECT,
    "project-repository-status": ADMINISTER_PROJECT,
    "project-measuring": ADMINISTER_PROJECT,
    "project-manifest": ADMINISTER_PROJECT,
    "project-kept-file": ADMINISTER_PROJECT,
    "project-manifest-difference": Rule(Audience.ADMINISTER, "slug", after_sign_in="project"),
    "project-forge": ADMINISTER_PROJECT,
    "project-forge-test": Rule(Audience.ADMINISTER, "slug", after_sign_in="project-forge"),
    "project-hook": ADMINISTER_PROJECT,
    "project-sharing": ADMINISTER_PROJECT,
    "project-export": Rule(Audience.ADMINISTER, "slug", after_sign_in="project-sharing"),
    "project-removal": ADMINISTER_PROJECT,
    "project-members": ADMINISTER_PROJECT,
    "project-member": Rule(Audience.ADMINISTER, "slug", after_sign_in="project"),
    "project-tokens": ADMINISTER_PROJECT,
    "project-token-revoke": Rule(Audience.ADMINISTER, "slug", after_sign_in="project"),
    "project-audit": ADMINISTER_PROJECT,
    **dict.fromkeys(("site-audit", "site-accounts", "site-account", "site-jobs"), ADMINISTER_SITE),
    "trigger": Rule(Audience.OPERATE, "slug", after_sign_in="project"),
    **dict.fromkeys(("series", "series-part"), Rule(Audience.VIEW, "series")),
    **dict.fromkeys(("series-csv", "series-json"), Rule(Audience.VIEW, "series", api=True)),
    "run": VIEW_RUN,
    "run-status": VIEW_RUN,
    "run-frames": VIEW_RUN,
    "run-log": Rule(Audience.VIEW, "run", api=True),
    "run-document": Rule(Audience.VIEW, "run", api=True),
    "run-cancel": Rule(Audience.OPERATE, "run", after_sign_in="run"),
    "experiment-new": Rule(Audience.OPERATE, "slug"),
    "experiment": VIEW_EXPERIMENT,
    "experiment-status": VIEW_EXPERIMENT,
    "experiment-cancel": Rule(Audience.OPERATE, "experiment", after_sign_in="experiment"),
    "regression": Rule(Audience.VIEW, "regression"),
    "regression-triage": TRIAGE,
    "regression-snooze": TRIAGE,
    "project-checks": VIEW_PROJECT,
    "check": Rule(Audience.VIEW, "check"),
    "check-status": Rule(Audience.VIEW, "check"),
    "check-change": Rule(Audience.OPERATE, "check", after_sign_in="check"),
    "project-channels": KEEP_CHANNELS,
    "project-channel-new": KEEP_CHANNELS,
    "project-channel": KEEP_CHANNELS,
    "project-channel-change": KEEP_CHANNELS,
    "project-channel-rules": KEEP_CHANNELS,
    "project-channel-test": KEEP_CHANNELS,
    # A reader of feeds may send a token.
    "project-feed": Rule(Audience.VIEW, "slug", api=True),
    # A README shows them to everybody, where the project is public.
    **dict.fromkeys(
        ("series-picture", "series-badge", "series-embed"), Rule(Audience.VIEW, "series", api=True)
    ),
    "regression-picture": Rule(Audience.VIEW, "regression", api=True),
    "run-picture": Rule(Audience.VIEW, "run", api=True),
    "run-flame": Rule(Audience.VIEW, "run", api=True),
    "run-telemetry": Rule(Audience.VIEW, "run", api=True),
    "run-step-times": Rule(Audience.VIEW, "run", api=True),
    "run-scaling": Rule(Audience.VIEW, "run", api=True),
    **dict.fromkeys(
        ("machine-calibration", "machine-sentinels"), Rule(Audience.ANYBODY, api=True, spans_projects=True)
    ),
    "experiment-picture": Rule(Audience.VIEW, "experiment", api=True),
    "claim-picture": Rule(Audience.VIEW, "claim", api=True),
    "series-share": Rule(Audience.OPERATE, "series"),
    "regression-share": Rule(Audience.OPERATE, "regression"),
    "run-share": Rule(Audience.OPERATE, "run"),
    # Their addresses are signed, and a member gave them to others.
    **dict.fromkeys(("shared-page", "shared-badge", "shared-picture"), ANYBODY),
    # Its address is signed, and known to whom a message was sent.
    "step-picture": ANYBODY,
    "hook": Rule(Audience.SIGNED_HOOK),
    "forge-hook": Rule(Audience.SIGNED_HOOK),
    "host-join": Rule(Audience.JOIN_CODE),
    "host-register": HOST,
    "host-heartbeat": HOST,
    "host-stopping": HOST,
    "host-claim": HOST,
    "host-bring-commit": HOST,
    "host-run-advance": HOST,
    "host-run-heartbeat": HOST,
    "host-run-fail": HOST,
    "host-run-document": HOST,
    "host-experiment-heartbeat": HOST,
    "host-experiment-pair": HOST,
    "host-experiment-profiles": HOST,
    "host-experiment-conclude": HOST,
    "host-git-refs": HOST,
    "host-git-upload-pack": HOST,
    **dict.fromkeys(("admin-sign-in", "admin-password"), ANYBODY),
    # Signing in to the tables of the administration.
    "admin:login": ANYBODY,
    "admin:password_change": ANYBODY,
}
# Of the API: by the name of an address the rule of each method that it takes.
API_SPANNING = Rule(Audience.ANYBODY, api=True, spans_projects=True)
API_VIEW = Rule(Audience.VIEW, "slug", api=True)
API_VIEW_SERIES = Rule(Audience.VIEW, "series", api=True)
API_VIEW_RUN = Rule(Audience.VIEW, "run", api=True)
API_VIEW_EXPERIMENT = Rule(Audience.VIEW, "experiment", api=True)
API_OPERATE = Rule(Audience.OPERATE, "slug", api=True)
API_ADMINISTER = Rule(Audience.ADMINISTER, "slug", api=True)
API_CHANNELS = Rule(Audience.ADMINISTER, "slug", permission=CHANGE_CHANNEL_PERMISSION, api=True)

OPERATION_RULES: dict[str, dict[str, Rule]] = {
    "api-token": {"GET": Rule(Audience.SIGNED_IN, api=True)},
    "api-projects": {"GET": API_SPANNING},
    "api-project": {"GET": API_VIEW},
    "api-project-settings": {"GET": API_ADMINISTER},
    "api-cases": {"GET": API_VIEW},
    "api-series-list": {"GET": API_VIEW},
    "api-series": {"GET": API_VIEW_SERIES},
    "api-points": {"GET": API_VIEW_SERIES},
    "api-changes": {"GET": API_VIEW_SERIES},
    "api-comparison": {"GET": API_VIEW},
    "api-commits": {"GET": API_VIEW},
    "api-commit": {"GET": API_VIEW},
    "api-triggers": {"GET": API_VIEW},
    "api-trigger": {"GET": API_VIEW},
    "api-trigger-cancel": {"POST": API_OPERATE},
    "api-runs": {"GET": API_VIEW, "POST": API_OPERATE},
    "api-remeasuring-cancel": {"POST": API_OPERATE},
    "api-waiting-cancel": {"POST": API_OPERATE},
    "api-documents": {"POST": API_OPERATE},
    "api-run": {"GET": API_VIEW_RUN},
    "api-run-document": {"GET": API_VIEW_RUN},
    "api-run-log": {"GET": API_VIEW_RUN},
    "api-run-processes": {"GET": API_VIEW_RUN},
    "api-run-cancel": {"POST": Rule(Audience.OPERATE, "run", api=True)},
    "api-experiments": {"GET": API_VIEW, "POST": API_OPERATE},
    "api-experiment": {"GET": API_VIEW_EXPERIMENT},
    "api-pairs": {"GET": API_VIEW_EXPERIMENT},
    "api-experiment-cancel": {"POST": Rule(Audience.OPERATE, "experiment", api=True)},
    "api-claims": {"GET": API_VIEW, "POST": API_OPERATE},
    "api-claim-measurements": {"GET": Rule(Audience.VIEW, "claim", api=True)},
    "api-checks": {"GET": API_VIEW, "POST": API_OPERATE},
    "api-check": {"GET": Rule(Audience.VIEW, "check", api=True)},
    "api-check-cancel": {"POST": Rule(Audience.OPERATE, "check", api=True)},
    "api-regressions": {"GET": API_SPANNING},
    "api-regression": {"GET": Rule(Audience.VIEW, "regression", api=True)},
    "api-regression-triage": {
        "POST": Rule(Audience.OPERATE, "regression", permission=TRIAGE_PERMISSION, api=True)
    },
    "api-deliveries": {"GET": API_SPANNING},
    "api-machines": {"GET": API_SPANNING},
    "api-machine": {"GET": API_SPANNING},
    "api-channels": {"GET": API_CHANNELS, "POST": API_CHANNELS},
    "api-channel": {"GET": API_CHANNELS, "PATCH": API_CHANNELS, "DELETE": API_CHANNELS},
    "api-channel-test": {"POST": API_CHANNELS},
    "api-members": {"GET": API_ADMINISTER},
    "api-project-audit": {"GET": API_ADMINISTER},
    "api-tokens": {"GET": API_ADMINISTER, "POST": API_ADMINISTER},
    "api-token-revoke": {"DELETE": API_ADMINISTER},
    "api-audit": {"GET": Rule(Audience.SITE_ADMINISTRATOR, api=True)},
}
# Of whole namespaces. The administration asks for Django's permissions by itself.
NAMESPACE_RULES: dict[str, Rule] = {"admin": Rule(Audience.STAFF)}


def rule_of(view_name: str, method: str = "GET") -> Rule | None:
    """Of the name of an address, as `reverse` takes it; None where the table has none.

    `method` tells the operations of the API apart that have one address.
    """
    if view_name in OPERATION_RULES:
        return OPERATION_RULES[view_name].get("GET" if method == "HEAD" else method)
    return RULES.get(view_name) or NAMESPACE_RULES.get(
        view_name.partition(":")[0] if ":" in view_name else ""
    )


def find_project(rule: Rule, arguments: Mapping[str, Any]) -> Project | None:
    """The project that an address with these arguments is about, in one query; None where there is none.

    With the revision of what its pages show, for dashboard/page_cache.
    """
    key = arguments["slug" if LOOKUPS[rule.found_by][0] is Project else "pk"]
    return next(iter(_FOUND_PROJECT.read_rows(rule.found_by, key=key)), None)


def _build_found_project(found_by: str) -> QuerySet[Project]:
    model, way = LOOKUPS[found_by]
    projects = Project.objects.filter(removed_slug="").defer("manifest").annotate(revision=PROJECT_REVISION)
    if model is Project:
        return projects.filter(slug=Parameter("key"))
    return projects.filter(pk__in=model.objects.filter(pk=Parameter("key")).values(way))


_FOUND_PROJECT = CompiledQuery(_build_found_project)


def is_allowed(visitor: Visitor, rule: Rule, project: Project | None = None) -> bool:
    """Whether the visitor may use an address of this rule, about this project where it is about one."""
    if rule.who in PROJECT_ACTIONS:
        return visitor.may(PROJECT_ACTIONS[rule.who], project, rule.permission)
    if rule.who == Audience.SITE_ADMINISTRATOR:
        return visitor.may(Action.ADMINISTER_SITE, permission=rule.permission)
    if rule.who == Audience.SIGNED_IN:
        return visitor.user is not None
    if rule.who == Audience.STAFF:
        return visitor.token is None and visitor.user is not None and visitor.user.is_staff
    # What proves itself otherwise is asked for that by its own check.
    return True


def is_offered(visitor: Visitor, view_name: str, project: Project | None = None) -> bool:
    """Whether a page shows the button or link that leads there."""
    rule = rule_of(view_name)
    return rule is not None and is_allowed(visitor, rule, project)


def rule_of_match(match: ResolverMatch, method: str) -> Rule | None:
    return rule_of(match.view_name, method)
