"""An Atom feed of a project's regressions: for readers that come and ask, with no channel."""

from __future__ import annotations

import re
from datetime import datetime

from django.conf import settings
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed, get_tag_uri
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import condition, require_safe

from dashboard.alerts.messages import flat_text
from dashboard.models import Delivery, Regression
from dashboard.pages.requested_project import requested_project
from dashboard.postgresql.compiled_queries import CompiledQuery, Parameter
from dashboard.querysets.deferred_joins import is_among
from dashboard.querysets.regressions import IMPORTED, regressions_with_related, with_titles
from dashboard.sentences.regressions import alerts as sentences

MOST_ENTRIES = 30
# XML holds none of them, however they are escaped; a commit's subject and author may.
UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# What was reported, or would have been had there been a channel.
_DELIVERED_ALERTS = Delivery.objects.filter(
    regression=OuterRef("pk"), event=Delivery.Event.OPENED, state=Delivery.State.DELIVERED
)
ANNOUNCED = Q(state=Regression.State.CONFIRMED, proving=False) | Q(Exists(_DELIVERED_ALERTS))


def feed_regressions(slug: str) -> list[Regression]:
    return _FEED.read_rows(slug=slug)


def _build_feed() -> QuerySet[Regression]:
    rows = Regression.objects.filter(ANNOUNCED, project__slug=Parameter("slug")).exclude(IMPORTED)
    newest = rows.order_by("-updated_at", "-pk")[:MOST_ENTRIES]
    titled = with_titles(regressions_with_related()).filter(is_among(newest))
    return titled.order_by("-updated_at", "-pk")


_FEED = CompiledQuery(_build_feed)


def last_update(request: HttpRequest, slug: str) -> datetime | None:  # noqa: ARG001
    """None, too, of a project that is not there."""
    # What is reported becomes an entry without a change of its regression.
    opened = Q(deliveries__event=Delivery.Event.OPENED)
    moments = Regression.objects.filter(project__slug=slug).aggregate(
        changed=Max("updated_at"), delivered=Max("deliveries__delivered_at", filter=opened)
    )
    return max((moment for moment in moments.values() if moment is not None), default=None)


@require_safe
@condition(last_modified_func=last_update)
def project_feed(request: HttpRequest, slug: str) -> HttpResponse:
    project = requested_project(request, slug)
    address = settings.PACELINE_URL + project.get_absolute_url()
    feed = Atom1Feed(
        title=f"Regressions of {project.slug}",
        link=address,
        description="",
        feed_url=settings.PACELINE_URL + reverse("project-feed", args=[project.slug]),
        feed_guid=get_tag_uri(address, project.created_at),
    )
    for regression in feed_regressions(slug):
        add_entry(feed, regression)
    return HttpResponse(feed.writeString("utf-8"), content_type=feed.content_type)


def add_entry(feed: Atom1Feed, regression: Regression) -> None:
    """Its id stays when its state changes: readers show the entry as updated."""
    address = settings.PACELINE_URL + regression.get_absolute_url()
    facts = format_html_join("", "<li>{}: {}</li>", sentences.message_facts(regression))
    event = sentences.event_of_state(regression)
    text = flat_text(sentences.message_sentence(regression, event))
    feed.add_item(
        title=xml_text(flat_text(sentences.message_title(regression, event))),
        link=address,
        description=xml_text(format_html("<p>{}</p><ul>{}</ul>", text, facts)),
        unique_id=get_tag_uri(address, regression.opened_at),
        pubdate=regression.opened_at,
        updateddate=regression.updated_at,
        author_name=xml_text(regression.blamed.author) or "unknown",
    )


def xml_text(text: str) -> str:
    return UNREADABLE.sub("\N{REPLACEMENT CHARACTER}", text)
