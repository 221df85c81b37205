"""The picture of a regression's step: drawn when somebody asks, at an address that can't be guessed."""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings
from django.core import signing
from django.urls import reverse

from dashboard.charts.pictures.canvas import Canvas
from dashboard.charts.pictures.step_picture import PicturePoint, draw_step_picture
from dashboard.models import Regression
from dashboard.querysets.series import series_with_related
from dashboard.querysets.series_points import newest_points
from dashboard.sentences.formatting.change_sizes import format_change_size
from dashboard.sentences.formatting.metric_labels import series_label

# Chat services fetch it when the message comes, some again when an old one is read.
PICTURE_LIFETIME = timedelta(days=30)
SALT = "paceline.alerts.picture"
POINTS_AROUND = 30


def picture_url(regression: Regression) -> str:
    """An address that shows the step without a sign-in, for a while; empty where nobody could fetch it."""
    if is_internal_site(settings.PACELINE_URL):
        return ""
    token = signing.dumps(regression.pk, salt=SALT)
    return settings.PACELINE_URL + reverse("step-picture", args=[token])


def regression_of_token(token: str) -> int | None:
    """None where the token is not one of ours, or its time is over."""
    try:
        key = signing.loads(token, salt=SALT, max_age=PICTURE_LIFETIME)
    except signing.BadSignature:
        return None
    return key if isinstance(key, int) else None


def is_internal_site(url: str) -> bool:
    """Whether the site's address means nothing outside: `localhost`, or an internal address."""
    host = urlsplit(url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host == "localhost" or "." not in host


def draw_regression(regression: Regression, canvas: Canvas | None = None) -> bytes:
    """The points around the step, with both levels, as a PNG or on a canvas; empty where there are none."""
    series = series_with_related().get(pk=regression.series_id)
    until = regression.first_bad.position + POINTS_AROUND
    points = newest_points(series, 2 * POINTS_AROUND, until)
    if len(points) < 2:
        return b""
    return draw_step_picture(
        [PicturePoint(point.position, point.value, point.tainted) for point in points],
        step=(regression.last_good.position, regression.first_bad.position),
        levels=(regression.before, regression.after),
        unit=series.metric.unit,
        title=f"{series_label(series)} of {series.case}",
        change=format_change_size(regression),
        repaired=regression.recovered_by.position if regression.recovered_by else None,
        canvas=canvas,
    )
