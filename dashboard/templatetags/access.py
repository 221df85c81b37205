"""What the visitor of a page may do, by the same table that the middleware enforces: `{% load access %}`."""

from __future__ import annotations

from typing import Any

from django import template

from dashboard.access import visitor_of
from dashboard.access.rules import is_offered
from dashboard.models import Project

register = template.Library()


@register.simple_tag(takes_context=True, name="may")
def may_do_action(context: dict[str, Any], action: str, project: Project | None = None) -> bool:
    """`{% may "operate" project as can_operate %}`."""
    request = context.get("request")
    return request is not None and visitor_of(request).may(action, project)


@register.simple_tag(takes_context=True, name="may_use")
def may_use_address(context: dict[str, Any], view_name: str, project: Project | None = None) -> bool:
    """`{% may_use "run-cancel" project as can_cancel %}`: whether the address of that name takes them."""
    request = context.get("request")
    return request is not None and is_offered(visitor_of(request), view_name, project)


@register.simple_tag(takes_context=True, name="may_measure")
def may_measure_project(context: dict[str, Any], project: Project) -> bool:
    """`{% may_measure project as can_measure %}`: of an imported history nothing can be measured,
    nor of a copy before its repository is read."""
    return project.is_measurable and may_use_address(context, "trigger", project)
