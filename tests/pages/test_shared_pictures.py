"""Charts elsewhere: pictures and badges by rights or by an address, frames only where they are permitted."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from html import escape, unescape
from io import BytesIO
from xml.etree import ElementTree

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from PIL import Image

from dashboard.models import (
    AuditEntry,
    Commit,
    Document,
    PictureLink,
    Point,
    Project,
    Regression,
    Run,
    Series,
    SeriesLatest,
)
from dashboard.sentences.comparisons.experiments import answer_sentence
from tests.dashboard.access.conftest import create_member
from tests.pages import builders
from tests.pages.claim_builders import create_watched
from tests.pages.comparison_builders import plant_difference
from tests.pages.conftest import shown_text
from tests.pages.documents import complete_document
from tests.pages.experiment_builders import create_ended
from tests.pages.test_machines import create_sentinel

pytestmark = pytest.mark.django_db
SVG = "{http://www.w3.org/2000/svg}"
# So many queries a picture asks at most, however long the history is.
MOST_QUERIES = 12


@pytest.fixture
def regression() -> Regression:
    return builders.create_stepped_regression(state=Regression.State.CONFIRMED)


@pytest.fixture
def make_private(regression: Regression) -> Callable[[], Project]:
    def set_private() -> Project:
        Project.objects.update(visibility=Project.Visibility.PRIVATE)
        return Project.objects.get(pk=regression.project_id)

    return set_private


def visit_shared_pictures(client: Client, regression: Regression) -> None:
    """Every page of it, with something on it, and a refused form."""
    series, slug = regression.series, regression.project.slug
    assert client.post(f"/series/{series.pk}/share/", follow=True).status_code == 200
    where = f"/projects/{slug}/settings/sharing/"
    assert client.get(where).status_code == client.get(f"/series/{series.pk}/embed/").status_code == 200
    assert client.post(where, {"embed_origins": "nowhere at all"}).status_code == 400


def read_svg(body: bytes) -> ElementTree.Element:
    return ElementTree.fromstring(body)  # noqa: S314 - our own


def svg_texts(body: bytes) -> str:
    return " | ".join(element.text or "" for element in read_svg(body).iter(f"{SVG}text"))


def test_a_series_is_drawn_with_its_step(client: Client, regression: Regression) -> None:
    page = client.get(f"/series/{regression.series_id}/picture.svg")
    assert page.headers["Content-Type"] == "image/svg+xml"
    assert page.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert page.headers["Cache-Control"] == "public, max-age=300"
    texts = svg_texts(page.content)
    assert f"+38 % since {regression.first_bad.short}" in texts
    assert "snake_dqn" in texts
    drawn = read_svg(page.content)
    assert len(drawn.findall(f"{SVG}circle")) == 4
    # Both levels of the step: before, and after in the colour of what is worse.
    assert [line.get("stroke") for line in drawn.findall(f"{SVG}polyline")][-2:] == ["#2563c4", "#c0392b"]


@pytest.mark.parametrize("name", ["series", "regression", "run"])
def test_each_has_both_kinds_of_picture(client: Client, regression: Regression, name: str) -> None:
    run = Run.objects.filter(commit=regression.first_bad).get()
    subject = {"series": regression.series, "regression": regression, "run": run}[name]
    drawn = client.get(reverse(f"{name}-picture", args=[subject.pk, "svg"]))
    assert read_svg(drawn.content).get("aria-label")
    image = Image.open(BytesIO(client.get(reverse(f"{name}-picture", args=[subject.pk, "png"])).content))
    assert image.width == 1200
    assert len(image.convert("RGB").getcolors(maxcolors=100_000) or ()) > 4
    assert client.get(reverse(f"{name}-picture", args=[subject.pk, "gif"])).status_code == 404
    page = client.get(subject.get_absolute_url())
    address = f"{settings.PACELINE_URL}{reverse(f'{name}-picture', args=[subject.pk, 'png'])}"
    preview = f'<meta property="og:image" content="{address}">'
    assert preview in page.text
    Document.objects.filter(run=run).delete()
    assert preview in client.get(subject.get_absolute_url()).text


def test_a_run_shows_its_phases(client: Client, regression: Regression) -> None:
    run = Run.objects.filter(commit=regression.first_bad).get()
    texts = svg_texts(client.get(f"/runs/{run.pk}/picture.svg").content)
    assert "learn" in texts
    assert run.commit.short in texts


def test_a_badge_says_how_the_series_stands(client: Client, regression: Regression) -> None:
    address = f"/series/{regression.series_id}/badge.svg"
    bad = client.get(address)
    assert f"+38 % since {regression.first_bad.short}" in svg_texts(bad.content)
    assert b"#b3261e" in bad.content
    Regression.objects.update(triaged=Regression.Triaged.INTENDED)
    SeriesLatest.objects.filter(pk=regression.series_id).update(level=1.0)
    good = client.get(address, {"label": "speed <&"})
    assert svg_texts(good.content).startswith("speed <& | ")
    assert b"#1f7a3f" in good.content
    fresh = Series.objects.filter(latest__isnull=False).exclude(pk=regression.series_id)[0]
    fresh.latest.delete()
    assert "not measured" in svg_texts(client.get(f"/series/{fresh.pk}/badge.svg").content)
    assert "not measured yet" not in svg_texts(client.get(f"/series/{fresh.pk}/picture.svg").content)


def test_what_was_never_judged_is_not_called_good(client: Client, regression: Regression) -> None:
    Regression.objects.update(triaged=Regression.Triaged.INTENDED)
    for current, words in ((None, "not judged: its runs are tainted"), (1.0, "not judged yet")):
        SeriesLatest.objects.update(level=None, current_value=current)
        shown = client.get(f"/series/{regression.series_id}/badge.svg").content
        assert words in svg_texts(shown)
        assert b"#5f6770" in shown
    assert "not judged yet" in svg_texts(client.get(f"/series/{regression.series_id}/picture.svg").content)


def test_a_badge_shows_the_newest_value_that_counts(client: Client, regression: Regression) -> None:
    Regression.objects.update(triaged=Regression.Triaged.INTENDED)
    newest = SeriesLatest.objects.get(pk=regression.series_id)
    Point.objects.filter(series=newest.pk, run=newest.run_id).update(value=0.9, tainted=True)
    SeriesLatest.objects.filter(pk=newest.pk).update(value=0.9, level=1.0, current_value=0.00138)
    for name in ("badge", "picture"):
        assert "900 ms" not in svg_texts(client.get(f"/series/{newest.pk}/{name}.svg").content)
    SeriesLatest.objects.filter(pk=newest.pk).update(current_value=None)
    all_tainted = client.get(f"/series/{newest.pk}/badge.svg").content
    assert "not judged: its runs are tainted" in svg_texts(all_tainted)
    assert b"#5f6770" in all_tainted


def test_a_badge_has_the_size_that_pairs_found(client: Client, regression: Regression) -> None:
    Regression.objects.update(ratio=1.2)
    assert "+20 % since" in svg_texts(client.get(f"/series/{regression.series_id}/badge.svg").content)


def test_a_badge_names_the_state_as_pages_do(client: Client, regression: Regression) -> None:
    Regression.objects.update(state=Regression.State.SUSPECTED, proving=False)
    assert "(not proved)" in svg_texts(client.get(f"/series/{regression.series_id}/badge.svg").content)


def test_pictures_cost_as_much_of_a_long_history(
    client: Client, django_assert_max_num_queries: Callable[[int], object]
) -> None:
    series = builders.headline_series(
        Run.objects.filter(commit=builders.create_measured_commits(30)[0]).get().case
    )
    for address in (f"/series/{series.pk}/picture.svg", f"/series/{series.pk}/badge.svg"):
        with django_assert_max_num_queries(MOST_QUERIES):  # type: ignore[attr-defined]
            assert client.get(address).status_code == 200


def test_pages_are_previewed_by_a_sentence_and_their_picture(
    client: Client, regression: Regression, make_private: Callable[[], Project]
) -> None:
    line = list(regression.project.commits.order_by("position"))
    claim = create_watched(line[:4])
    experiment = create_ended(line[:2])
    pages = {
        regression.project.get_absolute_url(): "1 open regression, 1 case.",
        reverse("commit", args=[regression.project.slug, line[0].hash]): "1 measured case in snake.",
        claim.get_absolute_url(): "Refuted: no difference. Measured 1.01x [0.990, 1.03], claimed 1.50x.",
        experiment.get_absolute_url(): answer_sentence(experiment),
    }
    for address, sentence in pages.items():
        page = unescape(client.get(address).text)
        assert f'<meta property="og:description" content="{sentence}">' in page
        assert f'<meta property="og:url" content="{settings.PACELINE_URL}{address}">' in page
        # A project has none.
        assert (f"{settings.PACELINE_URL}{address}picture.png" in page) == ("/projects/" not in address)
    client.force_login(create_member("vera", "viewer", make_private()))
    assert not [address for address in pages if "og:" in client.get(address).text]


def test_a_private_project_shows_nothing_by_itself(
    client: Client, regression: Regression, make_private: Callable[[], Project]
) -> None:
    project = make_private()
    for name in ("picture.svg", "badge.svg", "embed/", "share/"):
        assert client.get(f"/series/{regression.series_id}/{name}").status_code == 404
    client.force_login(create_member("vera", "viewer", project))
    page = client.get(f"/series/{regression.series_id}/picture.svg")
    assert page.headers["Cache-Control"] == "private, max-age=300"
    assert page.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "og:image" not in client.get(f"/series/{regression.series_id}/").text
    assert client.get(f"/series/{regression.series_id}/share/").status_code == 403


def test_a_member_shares_one_picture_and_revokes_it(
    client: Client, regression: Regression, make_private: Callable[[], Project]
) -> None:
    project = make_private()
    share = f"/series/{regression.series_id}/share/"
    client.force_login(create_member("olga", "operator", project))
    for _ in range(2):
        assert client.post(share).status_code == 302
    link = PictureLink.objects.get()
    page = client.get(share)
    address = re.search(r"/pictures/[^/&]+/", page.text)
    assert address is not None
    stranger = Client()
    shown = stranger.get(address[0])
    assert f'content="{settings.PACELINE_URL}{address[0]}picture.png"' in shown.text
    assert regression.project.slug in shown_text(shown)
    assert "frame-ancestors 'none'" in shown.headers["Content-Security-Policy"]
    for name in ("picture.png", "picture.svg", "badge.svg"):
        assert stranger.get(address[0] + name).status_code == 200
    assert stranger.get(f"/series/{regression.series_id}/").status_code == 404
    assert stranger.get(address[0].replace("/pictures/", "/pictures/9")).status_code == 404
    assert client.post(share, {"revoke": link.pk}).status_code == 302
    assert stranger.get(address[0]).status_code == stranger.get(address[0] + "picture.svg").status_code == 404
    assert client.post(share, {"revoke": link.pk}).status_code == 404
    actions = AuditEntry.objects.values_list("action", flat=True)
    assert {"picture shared", "picture revoked"} <= set(actions)


def test_frames_only_where_the_project_permits_them(signed_in: Client, regression: Regression) -> None:
    where = f"/projects/{regression.project.slug}/settings/sharing/"
    embed = f"/series/{regression.series_id}/embed/"
    assert "frame-ancestors 'none'" in signed_in.get(embed).headers["Content-Security-Policy"]
    refused = signed_in.post(where, {"embed_origins": "https://a.example; script-src *"})
    assert refused.status_code == 400
    assert "https://a.example; is no site such as" in shown_text(refused)
    signed_in.post(where, {"embed_origins": "https://a.example\nhttp://*.b.example:8080"})
    # Neither a cut list nor none takes its place.
    many = "\n".join(f"https://{number:04}.example" for number in range(300))
    for wrong, sentence in (
        ({"embed_origins": many}, "The sites have more than 4000 letters together."),
        ({}, "embed_origins: the form that was sent lacks this field"),
    ):
        answer = signed_in.post(where, wrong)
        assert (answer.status_code, sentence in shown_text(answer)) == (400, True)
    policy = signed_in.get(embed).headers["Content-Security-Policy"]
    assert "frame-ancestors https://a.example http://*.b.example:8080" in policy
    assert "frame-ancestors 'none'" in signed_in.get(where).headers["Content-Security-Policy"]


def test_the_settings_list_and_revoke_what_is_shared(
    signed_in: Client, operator: User, regression: Regression
) -> None:
    run = Run.objects.filter(commit=regression.first_bad).get()
    for subject in (regression, run):
        name = subject._meta.model_name
        signed_in.post(reverse(f"{name}-share", args=[subject.pk]))
        assert "Make an address" in signed_in.get(reverse(f"{name}-share", args=[subject.pk])).text
    where = reverse("project-sharing", args=[regression.project.slug])
    assert shown_text(signed_in.get(where)).count("Revoke") == 2
    signed_in.post(where, {"revoke": PictureLink.objects.order_by("pk")[0].pk})
    assert PictureLink.objects.filter(revoked_at=None).get().run_id == run.pk


def test_everything_is_downloaded_by_a_button(signed_in: Client, regression: Regression) -> None:
    page = signed_in.post(f"/projects/{regression.project.slug}/settings/export/")
    assert page.headers["Content-Disposition"] == 'attachment; filename="snake.paceline.jsonl.gz"'
    text = gzip.decompress(b"".join(page.streaming_content))  # type: ignore[arg-type]
    assert text.startswith(b'{"format":"paceline.export/1","project":"snake"')
    assert AuditEntry.objects.filter(action="results exported").count() == 1


def test_the_flame_graph_of_a_run_is_a_picture(client: Client, regression: Regression) -> None:
    run = Run.objects.filter(commit=regression.first_bad).get()
    address = f"/runs/{run.pk}/flame.svg"
    assert "No stacks are kept of this run" in svg_texts(client.get(address).content)
    Document.objects.filter(run=run).update(body=complete_document())
    assert f'href="{address}"' in client.get(f"/runs/{run.pk}/").text
    by_time, by_calls = (client.get(f"{address}{query}") for query in ("", "?width=calls"))
    assert "all functions" in svg_texts(by_time.content)
    assert by_time.content != by_calls.content
    assert Image.open(BytesIO(client.get(f"/runs/{run.pk}/flame.png").content)).width == 1800
    assert client.get(f"/runs/{run.pk}/flame.gif").status_code == 404
    Project.objects.update(visibility="private")
    assert Client().get(address).status_code in (302, 404)


def test_a_difference_is_two_pictures(client: Client) -> None:
    plant_difference("compared")
    page = client.get("/projects/compared/compare/?base=v1.0&head=main")
    address = unescape(re.search(r'href="([^"]+/compare/flame\.svg[^"]*)"', page.text)[1])  # type: ignore[index]
    drawn = client.get(address)
    assert "Red: more time at the head" in svg_texts(drawn.content)
    # What moved much has the colour of it.
    assert b"#ea9a90" in drawn.content
    forest = client.get(address.replace("flame.svg", "metrics.svg"))
    assert f'href="{escape(address.replace("flame", "metrics"))}"' in page.text
    assert "Step time | +38 % [" in svg_texts(forest.content)
    assert client.get(address.replace("flame.svg", "metrics.gif")).status_code == 404
    refused = client.get("/projects/compared/compare/flame.svg?base=nope&head=main")
    assert refused.status_code == 400


def test_the_charts_of_pages_are_pictures(client: Client, line: list[Commit]) -> None:
    experiment, claim = create_ended(line), create_watched(line)
    machine = builders.create_machine("gpu-1")
    case = builders.create_case(line[0].project)
    run = builders.create_measured_run(
        line[0], case, 0.01, body=complete_document(), machine=machine, calibration=0.01
    )
    create_sentinel(run, 0.01, 0.012)
    shown = [
        (f"/experiments/{experiment.pk}/", "picture", "head against base", 1800),
        (f"/claims/{claim.pk}/", "picture", "Refuted: no difference", 1440),
        (f"/runs/{run.pk}/", "telemetry", "CPU utilization", 1800),
        (f"/runs/{run.pk}/", "step-times", "p50 | p90 | p99 | ", 1800),
        (f"/runs/{run.pk}/", "scaling", "in proportion | fit: 1", 1800),
        (f"/machines/{machine.pk}/", "calibration", "median 10 ms; a cross", 1800),
        (f"/machines/{machine.pk}/", "sentinels", str(case), 1800),
    ]
    for page, name, text, width in shown:
        assert f'href="{page}{name}.png' in client.get(page).text
        assert text in svg_texts(client.get(f"{page}{name}.svg").content)
        assert Image.open(BytesIO(client.get(f"{page}{name}.png").content)).width == width
        assert client.get(f"{page}{name}.gif").status_code == 404
    of_step = client.get(f"/runs/{run.pk}/scaling.svg?of=step").content
    assert "Time of one step over" in svg_texts(of_step)
    beyond = client.get(f"/runs/{run.pk}/telemetry.svg?repetition=99").content
    assert "No telemetry is kept" in svg_texts(beyond)
    Project.objects.update(visibility="private")
    for page, name, text, _ in shown:
        hidden = Client().get(f"{page}{name}.svg")
        # A machine is everybody's, but not what it measured.
        assert hidden.status_code in (302, 404) or (page.startswith("/machines/") and text not in hidden.text)
