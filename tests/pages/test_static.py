"""What the pages load."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import brotli
import pytest
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.test import Client
from plotly.offline import get_plotlyjs_version

from dashboard.middleware import compression
from dashboard.models import Series
from dashboard.static_files.names import hash_name
from tests.pages import builders

VENDOR = Path(str(finders.find("vendor")))
PLOTLY = f"vendor/plotly-basic-{get_plotlyjs_version()}.min.js"


def test_the_drawing_library_is_the_one_that_the_figures_were_made_for() -> None:
    assert finders.find(PLOTLY)


def test_every_vendored_file_has_its_licence() -> None:
    names = {path.name.split("-")[0] for path in VENDOR.glob("*.js")}
    assert names == {path.name.removesuffix(".LICENSE.txt") for path in VENDOR.glob("*.LICENSE.txt")}


@pytest.mark.django_db
def test_only_pages_with_charts_load_it(client: Client) -> None:
    builders.create_history()
    with_charts = client.get(f"/series/{Series.objects.all()[0].pk}/").content.decode()
    assert f'name="plotly" content="{static(PLOTLY)}"' in with_charts
    assert "plotly" not in client.get("/projects/snake/").content.decode()


def test_the_icon_is_found_where_browsers_look_by_themselves(client: Client) -> None:
    found = client.get(client.get("/favicon.ico").headers["Location"])
    assert (found.status_code, found.headers["Content-Type"]) == (200, "image/svg+xml")


@pytest.mark.django_db
def test_no_page_holds_a_script_or_a_style_of_its_own(client: Client) -> None:
    builders.create_history()
    shown = client.get(f"/series/{Series.objects.all()[0].pk}/").content.decode()
    scripts = [part.split(">")[0] for part in shown.split("<script")[1:]]
    assert all("src=" in tag or 'type="application/json"' in tag for tag in scripts)
    assert "<style" not in shown
    assert " style=" not in shown


def test_every_input_says_its_type() -> None:
    """The styles ask for it: one without is drawn as the browser likes."""
    folder = Path(__file__).parents[2] / "templates"
    texts = [path.read_text() for path in folder.rglob("*.html")]
    inputs = [tag for text in texts for tag in re.findall(r"<input [^>]*>", text)]
    assert len(inputs) > 100
    assert [tag for tag in inputs if " type=" not in tag] == []


def test_a_file_has_a_name_of_its_content_and_is_kept_for_ever(client: Client) -> None:
    address = static("paceline.css")
    answer = client.get(address)
    assert b"".join(answer) == Path(str(finders.find("paceline.css"))).read_bytes()  # type: ignore[arg-type]
    assert "immutable" in answer.headers["Cache-Control"]
    assert hash_name("a/b.min.js", b"1") != hash_name("a/b.min.js", b"2")
    # Styles of others name their pictures without a hash.
    assert "immutable" not in client.get("/static/paceline.css").headers["Cache-Control"]


@pytest.mark.parametrize(("accepted", "encoding"), [("gzip, deflate, br", "br"), ("gzip", "gzip")])
def test_the_first_scripts_of_a_page_with_charts_weigh_less_than_500_kb(
    client: Client, accepted: str, encoding: str
) -> None:
    size = 0
    for name in (PLOTLY, "charts.js", "paceline.js", "vendor/htmx-2.0.11.min.js"):
        answer = client.get(static(name), headers={"Accept-Encoding": accepted})
        assert answer.headers["Content-Encoding"] == encoding
        size += len(b"".join(answer))  # type: ignore[arg-type]
    assert size < 500_000


@pytest.mark.django_db
def test_pages_are_sent_compressed(client: Client) -> None:
    page = client.get("/sign-in/", headers={"Accept-Encoding": "gzip"})
    assert page.headers["Content-Encoding"] == "gzip"
    assert b"csrfmiddlewaretoken" in gzip.decompress(page.content)
    page = client.get("/sign-in/", headers={"Accept-Encoding": "gzip, br"})
    assert (page.headers["Content-Encoding"], int(page.headers["Content-Length"])) == (
        "br",
        len(page.content),
    )
    assert b"csrfmiddlewaretoken" in brotli.decompress(page.content)
    assert "Accept-Encoding" in page.headers["Vary"]


@pytest.mark.django_db
def test_the_size_of_a_page_with_a_token_says_little(client: Client) -> None:
    pages = [client.get("/sign-in/", headers={"Accept-Encoding": "br"}) for _ in range(12)]
    assert len({len(page.content) for page in pages}) > 4
    assert all(b"csrfmiddlewaretoken" in brotli.decompress(page.content) for page in pages)


def test_a_mask_of_any_length_unpacks_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for length in range(compression.MOST_PADDING):
        monkeypatch.setattr(compression.secrets, "randbelow", lambda _, length=length: length)
        for text in (b"", b"ada " * 300):
            assert brotli.decompress(compression.compress_masked(text)) == text


@pytest.mark.django_db
def test_who_refuses_all_encodings_gets_plain_text(client: Client) -> None:
    page = client.get("/sign-in/", headers={"Accept-Encoding": "gzip;q=0, br;q=0"})
    assert "Content-Encoding" not in page.headers
    assert b"csrfmiddlewaretoken" in page.content
    assert "Accept-Encoding" in page.headers["Vary"]


def test_a_server_that_asks_finders_alone_serves_hashed_names_too() -> None:
    name = static("charts.js").removeprefix("/static/")
    assert finders.find(name) == finders.find("charts.js")
    assert finders.find("charts.000000000000.js") is None
