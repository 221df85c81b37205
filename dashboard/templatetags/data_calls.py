"""The link of a page to the call of the API that gives its data: `{% load data_calls %}`."""

from __future__ import annotations

from typing import Any

from django import template

from dashboard.pages.data_calls import data_address

register = template.Library()


@register.simple_tag(takes_context=True, name="data_address")
def data_address_of_page(context: dict[str, Any]) -> str:
    """`{% data_address as address %}`; empty where the page shows no data."""
    request = context.get("request")
    return data_address(request) if request is not None else ""
