"""What only a browser can tell: nothing complains, a phone shows it all, it goes by keyboard.

Drives the system's Chromium; `make test` installs it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from dashboard import dispatch, failed_jobs, hosts
from dashboard.accounts.openid_settings import OpenIDSettings
from dashboard.models import Experiment, Metric, Regression, Run, RunLog, Sentinel
from tests.dashboard.accounts.openid_provider import CLIENT_ID, CLIENT_SECRET, start_provider
from tests.pages import builders
from tests.pages.documents import complete_document
from tests.pages.experiment_builders import create_ended

pytestmark = pytest.mark.django_db(transaction=True)

# The shell has no windows to manage: it works half as much.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module", autouse=True)
def _queries_beside_the_browser() -> Iterator[None]:
    """Playwright runs an event loop in this thread, which Django takes for an asynchronous view."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        pytest.fail("The browser tests need Chromium: apt install chromium-headless-shell.")
    with sync_playwright() as playwright:
        # The sandbox needs privileges that containers lack, and shared memory that is often too small there.
        # And without a device nothing emulates one: that takes an eighth of a browser's work.
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        options += ["--disable-gpu", "--disable-software-rasterizer", "--disable-gpu-compositing"]
        started = playwright.chromium.launch(executable_path=program, args=options)
        yield started
        started.close()


@dataclass
class Site:
    """Pages of the test's site in a browser, and what the browser complained about."""

    browser: Browser
    address: str
    ids: dict[str, int]
    complaints: list[str] = field(default_factory=list)

    def page(self, where: str, *, clock: bool = False, **context: object) -> Page:
        """A page of its own; with `clock` its time may be moved on."""
        page = self.browser.new_context(**context).new_page()  # type: ignore[arg-type]
        if clock:
            page.clock.install()
        page.on("pageerror", lambda error: self.complain(where, str(error)))
        page.on("console", lambda message: self.complain(where, message.text, message.type))
        self.go(page, where)
        return page

    def complain(self, where: str, text: str, kind: str = "error") -> None:
        if kind == "error":
            self.complaints.append(f"{where}: {text}")

    def go(self, page: Page, where: str) -> None:
        page.goto(self.address + where.format(**self.ids), wait_until="load")
        for canvas in page.locator(".canvas").all():
            canvas.and_(page.locator("[data-drawn]")).wait_for()


@pytest.fixture
def site(browser: Browser, live_server: LiveServer) -> Iterator[Site]:
    line = builders.create_measured_commits(6, step_at=3)
    case = line[0].runs.get().case
    series = builders.headline_series(case)
    regression = builders.create_regression(series, line[2], line[3])
    builders.create_delivery(regression, "failed")
    active = builders.create_run(line[5], case, Run.State.MEASURING, progress=0.2, quick=True)
    RunLog.objects.create(run=active, text="step 100")
    done = line[5].runs.get(state="done")
    failed_jobs.note_failure(dispatch.JUDGE, (done.pk,), KeyError("a key without a blank " + "x" * 99))
    full_case = builders.create_case(line[4].project, "full")
    full = builders.create_measured_run(line[4], full_case, 0.001, body=complete_document())
    experiment = create_ended(line)
    measuring = create_ended(line[2:4], state="measuring", verdict="", activity="pair 7, both in turn")
    ids = {
        "experiment": experiment.pk,
        "measuring": measuring.pk,
        "full": full.pk,
        "series": series.pk,
        "run": done.pk,
        "first": line[0].runs.get().pk,
        "machine": measured_machine(done),
        "active": active.pk,
        "regression": regression.pk,
        "account": User.objects.create_user("eve", "eve@example.org").pk,
    }
    made = Site(browser, live_server.url, ids)
    yield made
    for context in browser.contexts:
        context.close()
    assert made.complaints == []


def measured_machine(run: Run) -> int:
    """The key of the run's machine, whose runs have timed the loop, and that has a sentinel."""
    Run.objects.update(calibration=0.01, warning_codes=["calibration_drift"])
    sentinel = Sentinel.objects.create(
        configuration=run.configuration, machine=run.machine, commit=run.commit
    )
    metric = Metric.objects.get(name="step_time")
    for number, earlier in enumerate(Run.objects.filter(state="done").order_by("pk")[:3]):
        at = timezone.now() - timedelta(days=number)
        sentinel.points.create(run=earlier, metric=metric, value=0.001 + number / 1e5, measured_at=at)
    assert run.machine is not None
    return run.machine.pk


PAGES = (
    "/",
    "/projects/snake/",
    "/projects/snake/commits/",
    "/projects/snake/compare/?base=run:{first}&head=run:{run}",
    "/series/{series}/",
    "/runs/{run}/",
    "/runs/{full}/",
    "/runs/{active}/",
    "/projects/snake/experiments/",
    "/experiments/{experiment}/",
    "/experiments/{measuring}/",
    "/regressions/",
    "/regressions/{regression}/",
    "/deliveries/",
    "/machines/",
    "/machines/{machine}/",
    "/sign-in/",
)


def test_no_page_violates_the_content_security_policy(site: Site) -> None:
    page = site.page("/")
    for where in PAGES:
        site.go(page, where)
    assert page.evaluate("document.querySelectorAll('style').length") == 0
    assert site.complaints == []


INSERT = """([name, text]) =>
    document.body.append(Object.assign(document.createElement(name), {textContent: text}))"""


def test_a_script_or_a_style_in_a_page_is_refused(site: Site) -> None:
    page = site.page("/")
    for name, inserted in (("script", "document.title = 'run'"), ("style", "body { display: none }")):
        page.evaluate(INSERT, [name, inserted])
    assert page.title() != "run"
    assert page.evaluate("getComputedStyle(document.body).display") == "block"
    assert len(site.complaints) == 2
    site.complaints.clear()


ACCOUNT = (
    *("/account/", "/account/password/", "/account/password/reset/", "/account/second-factor/set-up/"),
    *("/account/confirm/", "/account/inactive/", "/account/password/new/1-1/"),
    *("/projects/snake/", "/projects/snake/experiments/new/", "/machines/{machine}/", "/projects/new/"),
    "/projects/snake/runs/waiting/cancel/",
    *("/site/accounts/", "/site/accounts/{account}/", "/site/jobs/", "/audit/"),
    *(
        f"/projects/snake/settings/{section}"
        for section in (
            *("", "measuring/", "policy/", "manifest/", "forge/", "hook/"),
            *("members/", "tokens/", "channels/", "audit/", "remove/"),
        )
    ),
)


def test_no_page_of_an_account_violates_it_or_is_wider_than_a_phone(site: Site) -> None:
    page = signed_in_page(site, "/account/", viewport=PHONE, is_mobile=True)
    for where in ACCOUNT:
        site.go(page, where)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, where
    assert site.complaints == []


def test_the_provider_is_reached_within_the_policy(site: Site, settings: LazySettings) -> None:
    provider, server = start_provider()
    settings.PACELINE_URL = site.address
    settings.PACELINE_OIDC = OpenIDSettings(provider.issuer, CLIENT_ID, CLIENT_SECRET, name="Example")
    page = site.page("/sign-in/?next=/machines/")
    page.get_by_role("button", name="Sign in with Example").click()
    page.get_by_role("link", name="ada").wait_for()
    assert page.url == f"{site.address}/machines/"
    server.shutdown()
    server.server_close()


ADMINISTRATION = (
    "/admin/",
    "/admin/dashboard/run/",
    "/admin/dashboard/run/{run}/change/",
    "/admin/auth/user/add/",
)


def test_no_page_of_the_administration_violates_it(site: Site) -> None:
    page = signed_in_page(site, "/admin/")
    for where in ADMINISTRATION:
        site.go(page, where)
    assert site.complaints == []


def test_no_page_is_wider_than_a_phone(site: Site) -> None:
    page = site.page("/", viewport=PHONE, has_touch=True, is_mobile=True)
    for where in PAGES:
        site.go(page, where)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, where


def test_a_wide_table_becomes_blocks_on_a_phone(site: Site) -> None:
    page = site.page("/runs/{full}/", viewport=PHONE, is_mobile=True)
    phases = page.locator(".scroll[aria-label='Phases, table']")
    assert phases.evaluate("box => box.scrollWidth <= box.clientWidth")
    label = "cell => getComputedStyle(cell, '::before').content"
    assert phases.locator("td[data-label]").first.evaluate(label) == '"Per step"'


def skip_wait(page: Page) -> None:
    """Let ten seconds pass at once on a page whose clock is ours: what is due meanwhile is done once."""
    page.clock.fast_forward(10_000)


def test_an_active_run_moves_on_by_itself_and_turns_into_charts(site: Site) -> None:
    page = site.page("/runs/{active}/", clock=True)
    Run.objects.filter(pk=site.ids["active"]).update(progress=0.7, activity="repetition 4 of 5")
    skip_wait(page)
    page.get_by_text("Repetition 4 of 5").wait_for()
    Run.objects.filter(pk=site.ids["active"]).update(state=Run.State.FAILED, failure="crash")
    skip_wait(page)
    page.get_by_role("heading", name="It failed: crash").wait_for()
    assert page.get_by_text("Repetition 4 of 5").count() == 0


def test_an_active_experiment_draws_each_new_pair_and_ends_by_itself(site: Site) -> None:
    page = site.page("/experiments/{measuring}/", clock=True)
    points = page.locator(".canvas[data-drawn] .scatterlayer .points path.point")
    before = points.count()
    page.locator("#pairs-in-numbers summary").click()
    row = Experiment.objects.get(pk=site.ids["measuring"])
    row.pairs.create(index=6, base_first=True, base=0.01, head=0.014, seconds=9, ratio=1.4, low=1.3, high=1.5)
    Experiment.objects.update(activity="pair 8, both in turn")
    skip_wait(page)
    page.get_by_text("Pair 8, both in turn").wait_for()
    expect(points).to_have_count(before + 1)
    expect(page.get_by_role("region", name="Pairs").locator("tbody tr")).to_have_count(7)
    Experiment.objects.filter(pk=row.pk).update(state="done", verdict="estimated")
    skip_wait(page)
    page.get_by_text("Pair 8, both in turn").wait_for(state="detached")
    assert page.get_by_text("Step time +38 % [37, 39]: worse.").is_visible()


def signed_in_page(site: Site, where: str, *, clock: bool = False, **context: object) -> Page:
    User.objects.create_superuser("ada", password="a long secret")
    page = site.page(f"/sign-in/?next={where}", clock=clock, **context)
    page.fill("#id_username", "ada")
    page.fill("#id_password", "a long secret")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda address: "/sign-in/" not in address)
    page.wait_for_load_state()
    return page


def test_a_host_that_joins_appears_by_itself(site: Site) -> None:
    page = signed_in_page(site, "/machines/", clock=True)
    page.fill("#pool", "h100")
    page.keyboard.press("Enter")
    command = page.locator("#join-make").inner_text()
    page.fill("#pool", "typed meanwhile")
    hosts.join_machine(command.partition("CODE=")[2], "gpu-77")
    skip_wait(page)
    page.get_by_role("link", name="gpu-77").wait_for()
    assert page.locator("#join-make").inner_text() == command
    assert page.locator("#pool").input_value() == "typed meanwhile"


def test_the_queue_follows_its_runs_and_keeps_the_focus(site: Site) -> None:
    page = site.page("/queue/", clock=True)
    link = page.get_by_role("link", name=f"Run #{site.ids['active']}")
    link.focus()
    rows = page.locator("#jobs tbody tr")
    assert rows.count() == 2
    Experiment.objects.filter(pk=site.ids["measuring"]).update(state="cancelled")
    skip_wait(page)
    expect(rows).to_have_count(1)
    expect(link).to_be_focused()


def hide_tab(page: Page, *, hidden: bool) -> None:
    """Have the page believe that it is behind another tab, or seen again: a headless browser has one tab."""
    page.evaluate(
        f"Object.defineProperty(document, 'hidden', {{configurable: true, get: () => {str(hidden).lower()}}})"
    )
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_hidden_page_asks_for_nothing_and_once_when_it_is_seen_again(site: Site) -> None:
    page = site.page("/queue/", clock=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    hide_tab(page, hidden=True)
    Experiment.objects.filter(pk=site.ids["measuring"]).update(state="cancelled")
    for _ in range(3):
        skip_wait(page)
    assert asked == []
    hide_tab(page, hidden=False)
    expect(page.locator("#jobs tbody tr")).to_have_count(1)
    assert asked == [f"{site.address}/queue/"]
    # It goes on as before.
    with page.expect_response("**/queue/"):
        skip_wait(page)


def test_the_queue_keeps_what_is_selected_and_how_far_it_was_scrolled(site: Site) -> None:
    page = site.page("/queue/", clock=True, viewport={"width": 800, "height": 700})
    table = page.locator("#jobs .scroll")
    table.evaluate("table => { table.scrollLeft = 10; }")
    table.locator(".subject").first.evaluate("cell => getSelection().selectAllChildren(cell)")
    Experiment.objects.filter(pk=site.ids["measuring"]).update(state="cancelled")
    for _ in range(2):  # whoever asks again has dealt with the answer
        with page.expect_response("**/queue/"):
            skip_wait(page)
    assert page.evaluate("getSelection().toString()") != ""
    page.evaluate("getSelection().removeAllRanges()")
    skip_wait(page)
    expect(page.locator("#jobs tbody tr")).to_have_count(1)
    assert table.evaluate("table => table.scrollLeft") == 10


def test_a_page_that_somebody_types_in_is_not_loaded_anew(site: Site) -> None:
    Run.objects.filter(pk=site.ids["active"]).update(state=Run.State.DONE)
    page = signed_in_page(site, "/projects/snake/", clock=True)
    commit = page.get_by_label("Commit", exact=True)
    commit.fill("typed meanwhile")
    commit.blur()
    done = Run.objects.get(pk=site.ids["run"])
    asked = builders.create_run(done.commit, done.case, Run.State.REQUESTED, quick=True)
    for _ in range(2):  # the page is still there if it asks again
        with page.expect_response("**/live-runs/?seen=*") as answer:
            page.clock.fast_forward(15_000)
        assert answer.value.headers["hx-refresh"] == "true"
    assert commit.input_value() == "typed meanwhile"
    commit.fill("")
    page.get_by_label("The newest of").check()
    page.clock.fast_forward(15_000)
    page.locator("#live-runs").get_by_role("link", name=f"#{asked.pk}").wait_for()


def test_a_machine_is_retired_by_keyboard_once_it_is_meant(site: Site) -> None:
    page = signed_in_page(site, "/machines/{machine}/", viewport=PHONE)
    retires = page.get_by_role("button", name="Retire bench-1")
    assert not retires.is_visible()
    page.locator("#retire summary").press("Enter")
    retires.press("Enter")
    page.get_by_text("bench-1 is retired").wait_for()
    assert page.get_by_role("button", name="Pause").count() == 0


def test_a_key_goes_to_a_triage_button_and_enter_presses_it(site: Site) -> None:
    page = signed_in_page(site, "/regressions/{regression}/")
    page.keyboard.press("w")
    assert page.evaluate("document.activeElement.value") == "won't fix"
    assert Regression.objects.get(pk=site.ids["regression"]).triaged == ""
    page.keyboard.press("Enter")
    page.wait_for_url("**/#triage")
    assert page.evaluate("document.activeElement.id") == "triage"
    assert Regression.objects.get(pk=site.ids["regression"]).triaged == "won't fix"


def test_a_link_opens_the_section_that_it_leads_to(site: Site) -> None:
    page = site.page("/runs/{full}/")
    functions = page.get_by_role("region", name="Functions", exact=True)
    assert not functions.is_visible()
    page.get_by_role("navigation", name="On this page").get_by_role("link", name="Profile").click()
    functions.wait_for()


def test_paper_is_light_and_has_nothing_folded(site: Site) -> None:
    page = site.page("/regressions/{regression}/", color_scheme="dark")
    folded = page.locator("main details:not([open])")
    assert folded.count() > 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(folded).to_have_count(0)
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(23, 27, 33)"
    tick = page.locator(".canvas[data-drawn] .xtick text").first
    expect(tick).to_have_css("fill", "rgb(90, 99, 113)")
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(folded).not_to_have_count(0)
    expect(tick).not_to_have_css("fill", "rgb(90, 99, 113)")
    site.go(page, "/projects/snake/commits/")
    expect(page.locator("td.compared").first).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator("button:visible, .compared:visible, .tools:visible")).to_have_count(0)


def test_two_commits_are_compared_by_keyboard(site: Site) -> None:
    page = signed_in_page(site, "/projects/snake/commits/", viewport=PHONE)
    bases = page.get_by_role("radio", name=re.compile("^base"))
    bases.nth(1).focus()
    page.keyboard.press("ArrowDown")
    chosen = bases.nth(2).get_attribute("value")
    page.get_by_role("button", name="Measure them side by side").press("Enter")
    page.wait_for_url("**/experiments/new/?*")
    assert page.get_by_label("Commit").first.input_value() == chosen
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0


def test_the_keyboard_reaches_the_content_and_shows_where_it_is(site: Site) -> None:
    page = site.page("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_typing_a_commit_chooses_it(site: Site) -> None:
    User.objects.create_superuser("ada", password="a long secret")
    page = site.page("/sign-in/?next=/projects/snake/")
    page.fill("#id_username", "ada")
    page.fill("#id_password", "a long secret")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/projects/snake/", wait_until="load")
    page.fill("[name=commit]", "main~3")
    assert page.is_checked("[name=which][value=commit]")


COUNT_SENT = """
([tries, action]) => {
  let sent = 0;
  // Behind the site's own listener: what that one lets through would be on its way now.
  addEventListener("submit", (event) => {
    if (!event.defaultPrevented) sent += 1;
    event.preventDefault();
  });
  const form = document.querySelector(`form[action$="${action}"]`);
  for (let number = 0; number < tries; number += 1) form.requestSubmit();
  const before = sent;
  // As when a person comes back by the browser's button.
  dispatchEvent(new PageTransitionEvent("pageshow"));
  form.requestSubmit();
  return [before, sent];
}
"""


def test_a_second_click_sends_no_form_twice(site: Site) -> None:
    page = signed_in_page(site, "/projects/snake/settings/tokens/")
    page.fill("[name=name]", "nightly")
    assert page.evaluate(COUNT_SENT, [3, "/settings/tokens/"]) == [1, 2]
    site.go(page, "/projects/snake/settings/tokens/")
    # Searching changes nothing, and may be asked again at once.
    assert page.evaluate(COUNT_SENT, [3, "/search/"]) == [3, 4]
    site.go(page, "/projects/snake/settings/sharing/")
    # Whoever dismissed the download asks for it once more.
    assert page.evaluate(COUNT_SENT, [2, "/settings/export/"]) == [2, 3]
