"""The picture of a step, read back as a mail program or a chat reads it."""

from __future__ import annotations

import io
import re
from datetime import timedelta

import pytest
from django.core import signing
from django.test import Client
from PIL import Image
from pytest_django import Settings

from dashboard.alerts import pictures
from dashboard.alerts.kinds import email
from dashboard.alerts.pictures import PICTURE_LIFETIME, draw_regression, picture_url, regression_of_token
from dashboard.charts.pictures.canvas import BAD, GOOD, SvgCanvas, spell_for_png
from dashboard.charts.pictures.picture_ticks import write_ticks
from dashboard.charts.pictures.step_picture import (
    HEIGHT,
    PLOT_LEFT,
    PLOT_RIGHT,
    WIDTH,
    PicturePoint,
    draw_step_picture,
)
from dashboard.models import Delivery
from dashboard.sentences.formatting.numbers import MINUS
from tests.pages import builders

POINTS = [PicturePoint(position, 1.0 if position < 5 else 1.5) for position in range(10)]


def colour_rows(drawn: bytes, column: int, colour: str) -> list[int]:
    """The rows of a column that are nearly of a colour."""
    image = Image.open(io.BytesIO(drawn)).convert("RGB")
    assert image.size == (WIDTH, HEIGHT)
    wanted = tuple(int(colour[index : index + 2], 16) for index in (1, 3, 5))
    pixels = [image.getpixel((column, row)) for row in range(40, HEIGHT)]
    near = [sum(abs(a - b) for a, b in zip(pixel, wanted, strict=True)) < 60 for pixel in pixels]
    return [row + 40 for row, found in enumerate(near) if found]


def test_both_levels_are_where_the_values_are() -> None:
    drawn = draw_step_picture(
        POINTS, step=(4, 5), levels=(1.0, 1.5), unit="s", title="Step time", change="+50 %"
    )
    low, high = colour_rows(drawn, 160, GOOD), colour_rows(drawn, 500, BAD)
    assert low
    assert high
    # A larger value is drawn higher, by most of the height.
    assert min(low) - max(high) > 100
    assert colour_rows(drawn, 160, BAD) == colour_rows(drawn, 500, GOOD) == []


def test_behind_the_repair_nothing_is_drawn_as_worse() -> None:
    back = [*POINTS[:8], PicturePoint(8, 1.0), PicturePoint(9, 1.0)]
    drawn = draw_step_picture(
        back, step=(4, 5), levels=(1.0, 1.5), unit="s", title="Step time", change="+50 %", repaired=8
    )
    assert colour_rows(drawn, PLOT_RIGHT - 2, BAD) == []
    assert colour_rows(drawn, PLOT_RIGHT - 2, GOOD)


def test_a_wide_unit_stands_once_above_the_numbers() -> None:
    canvas = SvgCanvas(WIDTH, HEIGHT, "")
    write_ticks(canvas, [(1933.0, 50.0), (2474.0, 20.0)], "calls/step", PLOT_LEFT, (14, 32))
    assert re.findall(">([^<]+)</text>", canvas.encode().decode()) == ["calls/step", "1,933", "2,474"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("9.30 → 2.13", "9.30 to 2.13"),
        ("380 µs", "380 us"),
        ("Müller, Mu\u0308ller", "Muller, Muller"),
        (f"{MINUS}38 % · …", "-38 % · …"),
        ("½ of m²", "1/2 of m2"),
    ],
)
def test_a_png_holds_no_boxes(text: str, written: str) -> None:
    assert spell_for_png(text) == written


def test_a_picture_of_no_change_and_of_odd_names_is_drawn() -> None:
    points = [PicturePoint(1, 0.0), PicturePoint(1, 0.0, tainted=True)]
    drawn = draw_step_picture(
        points,
        step=(0, 1),
        levels=(0.0, 0.0),
        unit="calls/step",
        title="µ\u0000\u200b" * 500,
        change="\N{MINUS SIGN}1 %",
    )
    assert Image.open(io.BytesIO(drawn)).format == "PNG"


@pytest.mark.django_db
def test_the_address_shows_the_step_without_a_sign_in(client: Client, settings: Settings) -> None:
    settings.PACELINE_URL = "https://pace.example.org"
    regression = builders.create_stepped_regression(state="confirmed")
    address = picture_url(regression).removeprefix("https://pace.example.org")
    response = client.get(address)
    assert (response.status_code, response["Content-Type"]) == (200, "image/png")
    assert response.content == draw_regression(regression)
    assert client.get(address.replace("/step.png", "x/step.png")).status_code == 404


def test_an_address_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    token = signing.dumps(7, salt=pictures.SALT)
    assert regression_of_token(token) == 7
    assert regression_of_token(signing.dumps(7)) is None
    later = signing.time.time() + PICTURE_LIFETIME.total_seconds() + 1
    monkeypatch.setattr(signing.time, "time", lambda: later)
    assert regression_of_token(token) is None
    assert timedelta(days=7) < PICTURE_LIFETIME


@pytest.mark.parametrize(
    ("url", "internal"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost", True),
        ("http://bench-1:8000", True),
        ("http://10.1.2.3", True),
        ("https://pace.example.org", False),
    ],
)
def test_a_site_that_nobody_outside_reaches_offers_no_picture(url: str, internal: bool) -> None:
    assert pictures.is_internal_site(url) is internal


@pytest.mark.django_db
@pytest.mark.parametrize("wanted", [True, False])
def test_a_mail_carries_the_picture(wanted: bool) -> None:
    regression = builders.create_stepped_regression(state="confirmed")
    delivery = builders.create_delivery(regression, Delivery.State.PENDING)
    delivery.channel.pictures = wanted
    message = email.compose_email(delivery).message()
    images = [part for part in message.walk() if part.get_content_type() == "image/png"]
    assert len(images) == wanted
    if wanted:
        assert images[0]["Content-ID"] == "<step>"
        assert Image.open(io.BytesIO(images[0].get_payload(decode=True))).size == (WIDTH, HEIGHT)
