"""Every address of the site, asked for by every kind of visitor, of a public and of a private project."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from allauth.account.auth_backends import AuthenticationBackend
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import NoReverseMatch, get_resolver, reverse
from django.utils import timezone

from dashboard.access import Visitor, make_token
from dashboard.access.rules import ANYBODY, OPERATION_RULES, RULES, Audience, Rule, rule_of
from dashboard.access.system_checks import named_routes
from dashboard.models import ApiToken, Project, Run
from tests.dashboard.access.conftest import create_member
from tests.pages import builders
from tests.pages.check_builders import create_check
from tests.pages.claim_builders import create_claim
from tests.pages.conftest import shown_text
from tests.pages.experiment_builders import create_ended

pytestmark = pytest.mark.django_db

# What the arguments of each address may be: the names are those of `Site.keys`. A new address needs a line.
OF_PROJECT = (
    *("project", "project-runs", "project-live-runs", "project-commits", "project-triggers", "project-costs"),
    *("project-experiments", "experiment-new", "trigger", "hook", "host-git-refs", "host-git-upload-pack"),
    *("project-settings", "project-policy", "project-retention", "project-members", "project-tokens"),
    *("project-audit", "project-checks", "project-channels", "project-feed", "forge-hook"),
    *(
        "project-repository",
        "project-measuring",
        "project-manifest",
        "project-kept-file",
        "project-forge",
        "project-forge-test",
    ),
    *("project-hook", "project-removal", "project-sharing", "project-export"),
    *("api-project", "api-project-settings", "api-documents", "api-checks"),
    *("project-compare", "project-compare-markdown", "project-compare-csv", "api-comparison"),
    *("api-cases", "api-series-list", "api-commits", "api-triggers", "api-runs"),
    *("project-claims", "claims-measure", "api-claims", "measure-missing", "project-heatmap"),
    *("read-commits", "remeasuring-cancel", "api-remeasuring-cancel"),
    *("waiting-cancel", "api-waiting-cancel"),
    *("project-noise", "project-regressions", "project-trust"),
    *("api-experiments", "api-channels", "api-members", "api-project-audit", "api-tokens"),
)
EXAMPLES: dict[str, dict[str, str]] = {
    **{name: {"slug": "slug"} for name in OF_PROJECT},
    "project-member": {"slug": "slug", "member": "member"},
    "project-token-revoke": {"slug": "slug", "token": "token"},
    **{name: {"pk": "run"} for name in ("run", "run-status", "run-frames", "run-log", "run-cancel")},
    "run-document": {"pk": "run"},
    "commit": {"slug": "slug", "commit": "commit"},
    **{
        name: {"slug": "slug", "pk": "trigger"}
        for name in ("project-trigger", "project-trigger-status", "project-trigger-cancel")
    },
    **{name: {"pk": name.partition("-")[0]} for name in ("series", "regression", "regression-triage")},
    **{name: {"pk": "series"} for name in ("series-part", "series-csv", "series-json")},
    **{name: {"pk": "experiment"} for name in ("experiment", "experiment-status", "experiment-cancel")},
    **{name: {"pk": "check"} for name in ("check", "check-status", "check-change")},
    "benchmark-claims": {"slug": "slug", "benchmark": "benchmark"},
    **{name: {"pk": "claim"} for name in ("claim", "api-claim-measurements")},
    "regression-snooze": {"pk": "regression"},
    "site-account": {"pk": "number"},
    "delivery-resend": {"pk": "delivery"},
    "project-channel-new": {"slug": "slug", "kind": "kind"},
    **{
        name: {"slug": "slug", "pk": "channel"}
        for name in (
            *("project-channel", "project-channel-change", "project-channel-rules", "project-channel-test"),
        )
    },
    **{name: {"pk": "number"} for name in ("project-new-tested", "project-new-status")},
    **{
        name: {"slug": "slug", "pk": "number"}
        for name in (
            *("project-repository-test", "project-repository-status", "project-manifest-difference"),
        )
    },
    "step-picture": {"token": "picture"},
    **{f"{name}-share": {"pk": name} for name in ("series", "regression", "run")},
    **{f"{name}-picture": {"pk": name, "kind": "kind"} for name in ("series", "regression", "run")},
    **{f"series-{name}": {"pk": "series"} for name in ("badge", "embed")},
    **{f"shared-{name}": {"token": "picture"} for name in ("page", "badge")},
    **{
        name: {"pk": "run", "kind": "kind"}
        for name in ("run-flame", "run-telemetry", "run-step-times", "run-scaling")
    },
    **{f"{name}-picture": {"pk": name, "kind": "kind"} for name in ("experiment", "claim")},
    **{f"machine-{name}": {"pk": "machine", "kind": "drawing"} for name in ("calibration", "sentinels")},
    **{f"project-compare-{name}": {"slug": "slug", "kind": "kind"} for name in ("flame", "metrics")},
    "shared-picture": {"token": "picture", "kind": "kind"},
    "api-commit": {"slug": "slug", "commit": "commit"},
    **{name: {"slug": "slug", "pk": "trigger"} for name in ("api-trigger", "api-trigger-cancel")},
    "api-token-revoke": {"slug": "slug", "pk": "token"},
    **{name: {"slug": "slug", "pk": "channel"} for name in ("api-channel", "api-channel-test")},
    **{name: {"pk": "series"} for name in ("api-series", "api-points", "api-changes")},
    **{name: {"pk": "run"} for name in ("api-run", "api-run-document", "api-run-log", "api-run-cancel")},
    "api-run-processes": {"pk": "run"},
    **{name: {"pk": "experiment"} for name in ("api-experiment", "api-pairs", "api-experiment-cancel")},
    **{name: {"pk": "regression"} for name in ("api-regression", "api-regression-triage")},
    "api-machine": {"pk": "machine"},
    **{name: {"pk": "check"} for name in ("api-check", "api-check-cancel")},
    "account_reset_password_from_key": {"uidb36": "picture", "key": "picture"},
    **{name: {"pk": "machine"} for name in ("machine", "machine-status", "machine-state")},
}
# The administration's: by the name of the argument.
ADMINISTRATION = {"object_id": 1, "id": 1, "content_type_id": 1, "app_label": "dashboard", "url": "x"}
NAMELESS = {"admin:(?P<url>.*)$": "/admin/nothing/", "admin:<path:object_id>/": "/admin/dashboard/run/1/"}

LET_THROUGH, WRONG_METHOD = 299, 405
OK, IN, NO, GONE, BAD = LET_THROUGH, 302, 403, 404, 401
PEOPLE = ("anonymous", "viewer", "operator", "admin", "foreign admin", "superuser")
# Those of them who have ever more rights in the project.
BY_RIGHTS = tuple(name for name in PEOPLE if name != "foreign admin")
# By whom an address is for, and for private projects where that differs: what each of PEOPLE is answered.
EXPECTED: dict[Audience, tuple[int, ...]] = {
    Audience.ANYBODY: (OK, OK, OK, OK, OK, OK),
    Audience.SIGNED_IN: (IN, OK, OK, OK, OK, OK),
    Audience.VIEW: (OK, OK, OK, OK, OK, OK),
    Audience.OPERATE: (IN, NO, OK, OK, NO, OK),
    Audience.ADMINISTER: (IN, NO, NO, OK, NO, OK),
    Audience.SITE_ADMINISTRATOR: (IN, NO, NO, NO, NO, OK),
    Audience.STAFF: (IN, NO, NO, NO, NO, OK),
    Audience.HOST_TOKEN: (BAD, BAD, BAD, BAD, BAD, BAD),
    # Their views look for what proves them: `test_what_proves_itself` does.
    Audience.JOIN_CODE: (OK, OK, OK, OK, OK, OK),
    Audience.SIGNED_HOOK: (OK, OK, OK, OK, OK, OK),
}
EXPECTED_IN_PRIVATE: dict[Audience, tuple[int, ...]] = {
    Audience.VIEW: (GONE, OK, OK, OK, GONE, OK),
    Audience.OPERATE: (GONE, NO, OK, OK, GONE, OK),
    Audience.ADMINISTER: (GONE, NO, NO, OK, GONE, OK),
}
USELESS_TOKENS = ("expired token", "revoked token")
# Of addresses that take tokens: one of an admin that may do everything, one that may view, a foreign one.
TOKENS = ("token", "viewing token", "foreign token")
EXPECTED_OF_TOKENS: dict[Audience, tuple[int, int, int]] = {
    Audience.ANYBODY: (OK, OK, OK),
    Audience.SIGNED_IN: (OK, OK, OK),
    # Foreign to a public project: what anybody reads without a token. A private one is hidden from it.
    Audience.VIEW: (OK, OK, OK),
    Audience.OPERATE: (OK, NO, NO),
    Audience.ADMINISTER: (OK, NO, NO),
    # No token does anything on the whole site.
    Audience.SITE_ADMINISTRATOR: (NO, NO, NO),
}
METHODS = ("get", "post", "put", "patch", "delete")
# A hundred addresses of one rule.
METHODS_OF_ADMINISTRATION = ("get", "post")


def reach_view(get_response: Any) -> Any:
    """The last middleware: instead of the view it answers that the request came so far."""

    def answer_request(request: HttpRequest) -> HttpResponse:
        response: HttpResponse = get_response(request)
        return response

    def answer_for_view(*_: Any) -> HttpResponse:
        return HttpResponse(status=LET_THROUGH)

    answer_request.process_view = answer_for_view  # type: ignore[attr-defined]
    return answer_request


class Site:
    """A project with something at each address, one beside it, and every kind of visitor."""

    def __init__(self, visibility: str) -> None:
        line = builders.create_measured_commits(3)
        Project.objects.update(visibility=visibility)
        self.project = line[0].project
        other = builders.create_project("other", visibility=visibility)
        case = line[0].runs.get().case
        series = builders.headline_series(case)
        regression = builders.create_regression(series, line[0], line[1])
        run = Run.objects.filter(state="done").latest("pk")
        self.keys: dict[str, Any] = {
            "slug": self.project.slug,
            "run": run.pk,
            "series": series.pk,
            "regression": regression.pk,
            "experiment": create_ended(line[:2]).pk,
            "machine": run.machine_id,
            "check": create_check(line[:2]).pk,
            "claim": create_claim(line).pk,
            "benchmark": "walker",
            "delivery": builders.create_delivery(regression, "failed", address="a@example.org").pk,
            "channel": self.project.channels.create(kind="email", address="ada@example.org").pk,
            "commit": line[0].hash,
            "trigger": builders.create_refused_trigger(self.project).pk,
            **{"kind": "slack", "drawing": "svg", "picture": "x", "number": 1},
        }
        people: dict[str, User | None] = {
            role: create_member(role, role, self.project) for role in ("viewer", "operator", "admin")
        }
        people["foreign admin"] = create_member("foreigner", "admin", other)
        people["superuser"] = User.objects.create_superuser("root")
        self.clients = {name: Client() for name in PEOPLE}
        for name, person in people.items():
            self.clients[name].force_login(person)  # type: ignore[arg-type]
        self.make_tokens(people["admin"], people["foreign admin"], other)
        self.keys["member"] = self.project.memberships.get(role="viewer").pk
        self.keys["token"] = self.project.api_tokens.latest("pk").pk

    def make_tokens(self, admin: Any, foreigner: Any, other: Project) -> None:
        every = ("view", "operate", "administer")
        written = {
            "token": make_token(Visitor(admin), self.project, "all", every)[1],
            "viewing token": make_token(Visitor(admin), self.project, "view", ())[1],
            "foreign token": make_token(Visitor(foreigner), other, "all", every)[1],
            **{name: make_token(Visitor(admin), self.project, name, every)[1] for name in USELESS_TOKENS},
        }
        past = timezone.now() - timedelta(hours=1)
        ApiToken.objects.filter(name="expired token").update(expires_at=past)
        ApiToken.objects.filter(name="revoked token").update(revoked_at=past)
        self.clients |= {
            name: Client(headers={"Authorization": f"Bearer {token}"}) for name, token in written.items()
        }

    def address_of(self, name: str) -> str:
        if name in NAMELESS:
            return NAMELESS[name]
        if not name.startswith("admin:"):
            return reverse(name, kwargs={key: self.keys[of] for key, of in EXAMPLES.get(name, {}).items()})
        for keys in ((), ("object_id",), ("id",), ("app_label",), ("content_type_id", "object_id")):
            try:
                return reverse(name, kwargs={key: ADMINISTRATION[key] for key in keys})
            except NoReverseMatch:
                continue
        raise NoReverseMatch(name)


@pytest.fixture(params=["public", "private"])
def site(request: pytest.FixtureRequest, db: None) -> Site:
    return Site(request.param)


@pytest.fixture
def _views_not_called(
    settings: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two in three are refused, which would be logged each time.
    caplog.set_level(logging.ERROR, "django.request")
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.reach_view"]
    # A cached page is made by its view, before the last middleware.
    settings.PACELINE_PAGE_MEMORY_MB = 0
    settings.PACELINE_RATES = {}
    # Ten thousand requests: a session that asks no database.
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    # And people, whom no request changes, are read once each.
    read_user = cache(AuthenticationBackend().get_user)
    monkeypatch.setattr(AuthenticationBackend, "get_user", lambda _, key: read_user(key))


def all_names() -> list[str]:
    return sorted({route.name for route in named_routes(get_resolver().url_patterns)})


def expected_answers(rule: Rule | None, *, private: bool) -> dict[str, int]:
    """Status by the name of the visitor; without a rule, of a method that an address of the API lacks."""
    if rule is None:
        return dict.fromkeys((*PEOPLE, *TOKENS, *USELESS_TOKENS), WRONG_METHOD)
    by_person = EXPECTED[rule.who]
    if private:
        by_person = EXPECTED_IN_PRIVATE.get(rule.who, by_person)
    answers = dict(zip(PEOPLE, by_person, strict=True))
    if rule.who in (Audience.HOST_TOKEN, Audience.JOIN_CODE, Audience.SIGNED_HOOK) or not rule.identifies:
        return answers | dict.fromkeys((*TOKENS, *USELESS_TOKENS), by_person[0])
    answers |= dict.fromkeys(USELESS_TOKENS, BAD)
    if not rule.api:
        return answers | dict.fromkeys(TOKENS, NO)
    if answers["anonymous"] == IN:
        # A script can't sign in.
        answers["anonymous"] = BAD
    answers |= dict(zip(TOKENS, EXPECTED_OF_TOKENS[rule.who], strict=True))
    if private and rule.who in EXPECTED_IN_PRIVATE:
        answers["foreign token"] = GONE
    return answers


def first_of_each(answers: dict[str, int]) -> dict[str, int]:
    """One visitor for each answer: enough where another method of the address has the same rule."""
    found: dict[int, str] = {}
    for visitor, status in answers.items():
        found.setdefault(status, visitor)
    return {visitor: status for status, visitor in found.items()}


def nearest_to_limit(answers: dict[str, int]) -> dict[str, int]:
    """Who just may and who just may not: they tell the rule from each that lets others in.

    Enough where another address with arguments of the same kinds has the same rule.
    """
    found = first_of_each(answers)
    for rising in (BY_RIGHTS, TOKENS[1::-1]):
        for less, more in pairwise(rising):
            if answers[less] != answers[more]:
                found |= {visitor: answers[visitor] for visitor in (less, more)}
    return found


def find_differences(site: Site, names: Sequence[str]) -> Iterator[str]:
    private = site.project.visibility == Project.Visibility.PRIVATE
    asked_elsewhere: set[tuple[Rule | None, tuple[tuple[str, str], ...]]] = set()
    for name in names:
        arguments = tuple(sorted(EXAMPLES.get(name, {}).items()))
        asked: list[Rule | None] = []
        for method in METHODS_OF_ADMINISTRATION if name.startswith("admin:") else METHODS:
            rule = rule_of(name, method.upper())
            if rule is None and name not in OPERATION_RULES:
                yield f"{name} has no rule"
                break
            if private and rule is not None and not rule.found_by:
                # As with a public project.
                continue
            address = site.address_of(name)
            answers = expected_answers(rule, private=private)
            if rule in asked:
                answers = first_of_each(answers)
            elif (rule, arguments) in asked_elsewhere:
                answers = nearest_to_limit(answers)
            asked.append(rule)
            asked_elsewhere.add((rule, arguments))
            for visitor, expected in answers.items():
                answer = getattr(site.clients[visitor], method)(address)
                if answer.status_code != expected:
                    yield f"{method} {name} by {visitor}: {answer.status_code}, not {expected}"


@pytest.mark.usefixtures("_views_not_called")
def test_every_address_is_for_whom_its_rule_says(site: Site) -> None:
    assert list(find_differences(site, all_names())) == []


@pytest.mark.usefixtures("_views_not_called")
@pytest.mark.parametrize("site", ["public"], indirect=True)
def test_a_rule_that_lets_anybody_in_is_noticed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.middleware.access.rule_of_match", lambda *_: ANYBODY)
    found = list(find_differences(site, ["trigger", "host-claim"]))
    assert "post trigger by viewer: 299, not 403" in found
    assert "get host-claim by anonymous: 299, not 401" in found


def test_every_example_is_of_an_address() -> None:
    assert EXAMPLES.keys() <= set(all_names())


@pytest.mark.parametrize("site", ["public"], indirect=True)
@pytest.mark.parametrize("visitor", ["anonymous", "token", "foreign token"])
def test_what_proves_itself(site: Site, visitor: str) -> None:
    client = site.clients[visitor]
    answered = {
        "hook": client.post(site.address_of("hook"), b"{}", "application/json").status_code,
        "host-join": client.post(
            site.address_of("host-join"), {"code": "join_x", "machines": ["a"]}, "application/json"
        ).status_code,
    }
    assert answered == {"hook": 401, "host-join": 403}


@pytest.mark.parametrize("site", ["private"], indirect=True)
def test_pages_of_all_projects_name_no_private_one(site: Site) -> None:
    spanning = [name for name, rule in RULES.items() if rule.spans_projects and name != "machine-code"]
    builders.create_delivery(site.project.regressions.get())
    builders.create_refused_trigger(site.project)
    for name in spanning:
        address = site.address_of(name)
        for visitor in ("anonymous", "foreign admin"):
            shown = site.clients[visitor].get(address, follow=True)
            assert shown.status_code in (200, 403), (name, visitor)
            assert site.project.slug not in shown.content.decode(), (name, visitor)


@pytest.mark.parametrize("site", ["private"], indirect=True)
def test_a_private_project_looks_like_a_missing_one(site: Site) -> None:
    for name in ("project", "trigger", "experiment-new"):
        there = site.clients["foreign admin"].post(site.address_of(name))
        site.keys["slug"], slug = "nothing", site.keys["slug"]
        missing = site.clients["foreign admin"].post(site.address_of(name))
        site.keys["slug"] = slug
        told = [shown_text(answer).replace(slug, "nothing") for answer in (there, missing)]
        assert (there.status_code, told[0]) == (missing.status_code, told[1])


@pytest.mark.parametrize("site", ["public"], indirect=True)
def test_signing_in_leads_back(site: Site) -> None:
    client = site.clients["anonymous"]
    asked = f"{site.address_of('experiment-new')}?base=main"
    assert client.get(asked)["Location"] == "/sign-in/?next=/projects/snake/experiments/new/%3Fbase%3Dmain"
    # What was posted is gone after signing in: to the page that it was posted from.
    assert client.post(site.address_of("run-cancel"))["Location"].endswith(site.address_of("run"))
