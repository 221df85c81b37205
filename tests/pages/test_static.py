"""What the pages load."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from plotly.offline import get_plotlyjs_version

from dashboard.models import Series
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
    assert f'src="/static/{PLOTLY}" defer' in with_charts
    assert "plotly" not in client.get("/projects/snake/").content.decode()


@pytest.mark.django_db
def test_no_page_holds_a_script_or_a_style_of_its_own(client: Client) -> None:
    builders.create_history()
    shown = client.get(f"/series/{Series.objects.all()[0].pk}/").content.decode()
    scripts = [part.split(">")[0] for part in shown.split("<script")[1:]]
    assert all("src=" in tag or 'type="application/json"' in tag for tag in scripts)
    assert "<style" not in shown
    assert " style=" not in shown
