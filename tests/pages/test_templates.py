"""Every variable that a template names is there on some page: Django shows nothing where one isn't."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.http import HttpRequest
from django.template import Context, Template, Variable, engines
from django.test import Client, RequestFactory, override_settings
from django.urls import resolve
from django.utils import timezone

from dashboard import dispatch, failed_jobs
from dashboard.access import AuditAction, Visitor, record_action
from dashboard.accounts.links import password_link
from dashboard.accounts.openid_settings import OpenIDSettings
from dashboard.error_pages import show_no_database, show_server_error
from dashboard.models import (
    ApiToken,
    Commit,
    DroppedDetail,
    Experiment,
    ForgeConnection,
    FormerName,
    Project,
    Regression,
    RepositoryTest,
    Run,
    Schedule,
    Series,
    Trigger,
)
from dashboard.pages.projects import case_grid
from dashboard.structured_logs import log_context
from tests.dashboard.accounts.conftest import PASSWORD, set_up_second_factor, sign_in
from tests.dashboard.accounts.openid_provider import CLIENT_ID, CLIENT_SECRET, start_provider
from tests.pages.claim_builders import claim_pages
from tests.pages.comparison_builders import comparison_pages
from tests.pages.experiment_builders import MANIFEST
from tests.pages.settings.test_channels import visit_channel_pages
from tests.pages.test_shared_pictures import visit_shared_pictures
from tests.pages.visited_pages import (
    check_pages,
    commit_pages,
    copy_pages,
    experiment_pages,
    grid_pages,
    machine_pages,
    regression_pages,
    run_pages,
    series_pages,
    site_pages,
)

pytestmark = pytest.mark.django_db

FOLDER = Path(__file__).resolve().parents[2] / "templates"


@dataclass
class NamedVariables:
    """The variables of all templates, and those of them that some page had a value for."""

    by_template: dict[str, list[Variable]] = field(default_factory=dict)
    found: set[int] = field(default_factory=set)

    def never_found(self) -> list[str]:
        names: dict[str, bool] = {}
        for template, variables in self.by_template.items():
            for variable in variables:
                key = f"{template}: {variable.var}"
                names[key] = names.get(key, False) or variable.lookups is None or id(variable) in self.found
        return sorted(name for name, found in names.items() if not found)


@contextmanager
def recorded_variables() -> Iterator[NamedVariables]:
    engine = engines["django"].engine  # type: ignore[attr-defined]
    named = NamedVariables()
    parsed: list[Variable] = []
    begin, resolve = Variable.__init__, Variable._resolve_lookup

    def record_parsed(variable: Variable, text: Any) -> None:
        begin(variable, text)
        parsed.append(variable)

    def record_found(variable: Variable, context: Context) -> object:
        value = resolve(variable, context)
        named.found.add(id(variable))
        return value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Variable, "__init__", record_parsed)
        for loader in engine.template_loaders:
            loader.reset()
        for path in sorted(FOLDER.rglob("*.*")):
            parsed.clear()
            engine.get_template(str(path.relative_to(FOLDER)))
            named.by_template[str(path.relative_to(FOLDER))] = list(parsed)
        patch.setattr(Variable, "_resolve_lookup", record_found)
        yield named


def test_each_variable_is_found_on_some_page(signed_in: Client, tmp_path: Path) -> None:
    with recorded_variables() as named:
        visit_everything(signed_in, tmp_path)
    assert not named.never_found(), "\n".join(named.never_found())


def visit_everything(client: Client, folder: Path) -> None:
    visitor = Client()
    for where in ("/", "/sign-in/", "/nothing/", "/api/v1/docs"):
        visitor.get(where)
    with log_context(request="4729a76dfd72"):
        assert show_server_error(HttpRequest()).status_code == 500
    for factory in (RequestFactory().get, RequestFactory().post):
        assert show_no_database(factory("/")).status_code == 503
    visitor.post("/sign-in/", {"login": "ada", "password": "a guess", "next": "/"})
    seen: set[str] = set()
    for where in [
        *run_pages(),
        *regression_pages(),
        *site_pages(),
        *experiment_pages(folder),
        *machine_pages(),
        *check_pages(),
        *comparison_pages(),
        *claim_pages(),
        *series_pages(),
        *commit_pages(),
        *grid_pages(),
        *copy_pages(),
    ]:
        assert client.get(where).status_code == 200, where
        # What a page has for who is not signed in alone, its first address shows.
        view = resolve(urlsplit(where).path).view_name
        if view not in seen:
            seen.add(view)
            assert visitor.get(where).status_code == 200, where
    # Of a project without experiments.
    assert visitor.get("/projects/runs/experiments/?state=all").status_code == 200
    asked_by_claim = Experiment.objects.filter(claim_measurements__isnull=False).latest("pk")
    for where in (
        "/deliveries/?channel=999999",
        "/projects/snake/runs/?page=99",
        asked_by_claim.get_absolute_url(),
    ):
        assert client.get(where).status_code == 200, where
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(case_grid, "MOST_COLUMNS", 1)
        patch.setattr(case_grid, "COMMON_SHARE", 2)
        assert client.get("/projects/snake/?sort=moved").status_code == 200
    for query in ("", "?branch=main", "?case=nothing"):
        assert client.get(f"/projects/runs/runs/waiting/cancel/{query}").status_code == 200
    visit_accounts()
    client.get("/admin/")
    wrong_commit = {"benchmark": "walker", "claim": "fused", "commit": "nowhere"}
    assert client.post("/projects/claimed/measure-claims/", wrong_commit).status_code == 400
    ask_wrongly(client)
    assert client.get("/projects/compared/compare/?base=v9&head=main").status_code == 400
    assert client.get(f"/series/{Series.objects.latest('pk').pk}/?view=pie").status_code == 400
    for wrong in ("case=x", "case=on_gpu&pool=nowhere"):
        assert client.get(f"/projects/compared/compare/?base=v1.0&head=main&{wrong}").status_code == 400
    visit_channel_pages(client, "snake")
    visit_shared_pictures(client, Regression.objects.latest("pk"))
    visitor.force_login(User.objects.create_user("mallory"))
    assert visitor.get("/projects/runs/experiments/new/").status_code == 403
    change_settings(client)
    visit_site_pages(client)
    client.post(f"/runs/{Run.objects.latest('pk').pk}/cancel/", follow=True)
    assert client.post("/machines/codes/", {"pool": "gpu"}).status_code == 200
    assert client.post("/machines/codes/", {"pool": "a pool"}).status_code == 400


def visit_accounts() -> None:
    """All that has to do with signing in, on a site with a provider."""
    provider, server = start_provider()
    chosen = OpenIDSettings(provider.issuer, CLIENT_ID, CLIENT_SECRET, name="Example")
    person = User.objects.create_user("eve", "eve@example.org", PASSWORD)
    browser = Client(headers={"User-Agent": "Lynx"})
    with override_settings(
        PACELINE_OIDC=chosen, PACELINE_REQUIRE_SECOND_FACTOR="all", ACCOUNT_EMAIL_NOTIFICATIONS=True
    ):
        browser.get("/sign-in/")
        browser.post("/sign-in/provider/")
        browser.get("/sign-in/provider/answer/")
        form = browser.get(urlsplit(password_link(person)).path, follow=True)
        browser.post(form.redirect_chain[-1][0], {"password1": PASSWORD, "password2": PASSWORD})
        browser.get("/account/password/new/1-used/")
        browser.get("/account/password/reset/")
        browser.post("/account/password/reset/", {"email": "eve@example.org"})
        sign_in(browser, "eve")
        browser.get("/account/")
        browser.post("/account/password/", {"oldpassword": "a guess"})
        set_up_second_factor(browser)
        for where in ("/account/", "/account/confirm/", "/account/confirm/code/"):
            assert browser.get(where).status_code == 200
        browser.post("/account/second-factor/remove/")
        browser.get("/account/recovery-codes/new/")
        browser.get("/account/recovery-codes/download/")
        browser.post("/sign-out/")
        sign_in(browser, "eve")
        assert browser.get("/sign-in/code/").status_code == 200
    for _ in range(6):
        refused = sign_in(Client(), "nobody", "a guess")
    assert refused.status_code == 429
    server.shutdown()
    server.server_close()


def change_settings(client: Client) -> None:
    """Its pages with rows in them, with what was refused, and with a token that was just made."""
    settings = "/projects/runs/settings/"
    assert client.get(f"{settings}members/").status_code == 200
    assert client.post(settings, {"visibility": "secret"}).status_code == 400
    schedule = '[policy.schedule.nightly]\ncron = "0 3 * * *"'
    for text, status in (("[policy]\nx = 1", 400), (schedule, 302)):
        assert client.post(f"{settings}policy/", {"policy": text}).status_code == status
    Project.objects.update(quiet_from=timezone.now(), quiet_until=timezone.now() + timedelta(hours=1))
    Schedule.objects.update(last_at=timezone.now())
    Project.objects.update(manifest_policy_commit="c" * 40)
    assert client.get(f"{settings}policy/").status_code == 200
    for name, status in (("eve", 302), ("nobody", 400)):
        assert client.post(f"{settings}members/", {"name": name, "role": "viewer"}).status_code == status
    for days, status in (("7", 200), ("soon", 400)):
        form = {"name": "nightly", "days": days, "actions": ["operate"]}
        assert client.post(f"{settings}tokens/", form).status_code == status
    ApiToken.objects.update(last_used_at=timezone.now())
    for _ in range(60):
        record_action(Visitor(), AuditAction.HISTORY_JUDGED, Project.objects.get(slug="runs"))
    visit_setup_pages(client, settings)
    pages = ("", "members/", "tokens/", "audit/?page=2", "audit/?action=key renewed")
    for where in (*(f"{settings}{page}" for page in pages), "/audit/"):
        assert client.get(where).status_code == 200


def visit_site_pages(client: Client) -> None:
    """What administrators keep, with an account that has everything, and a job that fails."""
    eve = User.objects.get(username="eve")
    SocialAccount.objects.create(user=eve, provider="oidc", uid="1")
    eve.groups.add(Group.objects.create(name="friends"))
    for number in range(60):
        failed_jobs.note_failure(dispatch.JUDGE, (number,), KeyError("x"))
    failed_jobs.note_failure(dispatch.JUDGE, (59,), KeyError("y"))
    assert client.get("/site/jobs/").status_code == 200
    # As somebody who has just given the password.
    client.post("/sign-out/")
    sign_in(client, "ada")
    for where in ("/site/accounts/", "/site/accounts/?q=nobody", f"/site/accounts/{eve.pk}/"):
        assert client.get(where).status_code == 200
    invited = {"name": "mary", "email": "mary@example.org", "permissions": ["add_project"]}
    for status in (200, 400):
        assert client.post("/site/accounts/", invited).status_code == status
    for form in ({"action": "details", "name": "ada"}, {"action": "rights", "permissions": ["fly"]}):
        assert client.post(f"/site/accounts/{eve.pk}/", form).status_code == 400
    assert client.post(f"/site/accounts/{eve.pk}/", {"action": "link"}).status_code == 200


def visit_setup_pages(client: Client, settings: str) -> None:
    """What adds and changes a project, with tests of repositories in all states."""
    user = User.objects.get(username="ada")
    runs_project = Project.objects.get(slug="runs")
    Project.objects.filter(pk=runs_project.pk).update(credentials="ann:secret")
    commit = {"hash": "0" * 40, "subject": "Begin", "author": "Ada", "committed_at": "2026-01-01T00:00:00Z"}
    manifest = f'{MANIFEST}\n[benchmarks.second]\nversion = 1\nscript = "x.py"\nsteps = 1\n'
    read = {"branch": "main", "branches": ["main"], "branch_count": 3, "commit": commit, "manifest": manifest}
    wrong = {"slug": "two words", "which": "5", "benchmarks": ["second"]}
    for project in (None, runs_project):
        where = "/projects/new/" if project is None else f"{settings}repository/"
        for outcome, facts in (
            ("", {}),
            ("no answer", {}),
            ("no branch", {"branches": ["main"], "branch_count": 3, "reason": "it said no"}),
            ("readable", read),
            ("readable", {**read, "manifest": None, "manifest_refused": ""}),
        ):
            test = RepositoryTest.objects.create(
                requested_by=user, project=project, repository="https://host/x", outcome=outcome, facts=facts
            )
            RepositoryTest.objects.filter(pk=test.pk).update(created_at=timezone.now() - timedelta(minutes=1))
            assert client.get(f"{where}{test.pk}/").status_code == 200
            if project is None and outcome == "readable":
                assert client.post(f"{where}{test.pk}/", wrong).status_code == 400
    assert client.post("/projects/new/", {"repository": "x"}).status_code == 400
    assert client.post(f"{settings}repository/", {"repository": "x"}).status_code == 400
    assert client.post(settings, {"poll_minutes": "soon"}).status_code == 400
    FormerName.objects.create(project=runs_project, slug="runs-before")
    assert client.post(settings, {"slug": "two words"}).status_code == 400
    for name in ("measuring", "manifest", "forge", "hook", "remove"):
        assert client.get(f"{settings}{name}/").status_code == 200
    visit_retention(client, runs_project, f"{settings}retention/")
    assert client.post(f"{settings}measuring/", {}).status_code == 400
    for action, status in (("preview", 200), ("keep", 302), ("preview", 200)):
        written = MANIFEST + "# again\n" * (action == "preview")
        form = {"manifest": written, "action": action}
        assert client.post(f"{settings}manifest/", form).status_code == status
    assert client.post(f"{settings}manifest/", {"manifest": "a ="}).status_code == 400
    for path, status in (("bench/train.py", 302), ("../train.py", 400)):
        kept = {"action": "keep", "path": path, "text": "print(1)"}
        assert client.post(f"{settings}manifest/file/", kept).status_code == status
    for where in ("manifest/", "manifest/file/?path=bench/train.py"):
        assert client.get(f"{settings}{where}").status_code == 200
    test = RepositoryTest.objects.create(
        requested_by=user, project=runs_project, repository="x", outcome="readable", facts=read
    )
    waiting = RepositoryTest.objects.create(requested_by=user, project=runs_project, repository="x")
    for reading, written in ((test, manifest), (test, f"{manifest}# again\n"), (waiting, "")):
        client.post(f"{settings}manifest/{reading.pk}/", {"manifest": written})
    assert client.post(f"{settings}forge/", {"action": "connect", "kind": "github"}).status_code == 400
    ForgeConnection.objects.create(
        project=runs_project, kind="gitea", repository="a/b", api_address="https://127.0.0.1:1", token="x" * 9
    )
    runs_project.forge_deliveries.create(identity="1")
    assert client.get(f"{settings}forge/").status_code == 200
    assert client.post(f"{settings}forge/", {"action": "renew-secret"}).status_code == 200
    assert client.post(f"{settings}forge/test/").status_code == 200
    Trigger.objects.create(project=runs_project, source="hook")
    assert client.post(f"{settings}hook/").status_code == 200
    assert client.post(f"{settings}remove/", {"slug": "x"}).status_code == 400


def ask_wrongly(client: Client) -> None:
    """The form with a commit that is known, and with what is refused in each field."""
    form = "/projects/asked/experiments/new/"
    client.get(f"{form}?base={Commit.objects.filter(project__slug='asked').earliest('pk').hash}")
    wrong = {"precision": "fine", "toggle": "2", "metric": "a", "base": "--all", "case": "b", "pool": "c"}
    for name, written in wrong.items():
        words = {"base": "main", "toggle": "fast", name: written}
        assert client.post(form, words).status_code == 400, name
    client.post("/projects/runs/experiments/new/", {"base": "main"})
    for which in ("commit", "last", "range"):
        typed = {"which": which, which: "--all", "benchmarks": "snake_dqn"}
        assert client.post("/projects/runs/trigger/", typed).status_code == 400, which


def test_a_member_that_is_not_there_is_found() -> None:
    with pytest.raises(AttributeError, match=r"\{\{ commit.shrot \}\}.* has no shrot"):
        Template("{{ commit.shrot }}").render(Context({"commit": Commit()}))


def visit_retention(client: Client, project: Project, address: str) -> None:
    """As the page is once all runs are old; other pages are visited with them as they were."""
    with transaction.atomic():
        DroppedDetail.objects.create(project=project, kind="logs", day=timezone.now().date(), runs=1)
        old = timezone.now() - timedelta(days=1000)
        Run.objects.filter(configuration__case__project=project).update(finished_at=old)
        for query in ({}, {"dry-run": "yes"}):
            assert client.get(address, query).status_code == 200
        transaction.set_rollback(True)
