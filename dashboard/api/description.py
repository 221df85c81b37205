"""What the API says of itself: its OpenAPI description, and a page that people read it on."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access.rules import OPERATION_RULES
from dashboard.api.etags import answer_version, hash_body
from dashboard.api.site_api import api, api_patterns
from dashboard.problem_details import PREFIX, PROBLEM_TYPE, Problem

SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of the project: *Settings*, *Tokens*.",
    },
}
TYPE_NAMES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "array": "list",
    "null": "null",
    "date-time": "time",
}


@cache
def describe_api() -> dict[str, Any]:
    """The OpenAPI description, with the problems that each operation may answer and whom it is for."""
    described: dict[str, Any] = dict(api.get_openapi_schema(path_prefix=PREFIX.strip("/") + "/"))
    components = described["components"]
    components["securitySchemes"] = SECURITY_SCHEMES
    shape = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    components["schemas"] |= {**shape.pop("$defs", {}), "Problem": shape}
    # What is public is read without a token.
    described["security"] = [{"token": []}, {}]
    problem = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    names = route_names()
    for route, operations in described["paths"].items():
        rules = OPERATION_RULES[names[route]]
        for method, operation in operations.items():
            operation["responses"]["default"] = {"description": "A problem.", "content": problem}
            if method == "get":
                operation["responses"]["304"] = {"description": "Nothing has changed since."}
            operation["x-for"] = str(rules[method.upper()].who)
    return described


def route_names() -> dict[str, str]:
    """The name of each address by its path as the description has it."""
    patterns = api_patterns()
    return {PREFIX + _write_path(str(pattern.pattern)): str(pattern.name) for pattern in patterns}


def _write_path(route: str) -> str:
    """`runs/<int:pk>` as `runs/{pk}`."""
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route)


@require_safe
def answer_description(request: HttpRequest) -> HttpResponseBase:
    # Ninja counts statuses by numbers.
    body = orjson.dumps(describe_api(), option=orjson.OPT_NON_STR_KEYS)
    return answer_version(
        request, hash_body(body), lambda: HttpResponse(body, content_type="application/json")
    )


@require_safe
def docs_page(request: HttpRequest) -> HttpResponse:
    """The description as people read it: by subject, each operation with what it takes and for whom it is."""
    described = describe_api()
    groups: dict[str, list[dict[str, Any]]] = {}
    for route, operations in described["paths"].items():
        for method, operation in operations.items():
            row = describe_operation(route, method, operation, described["components"]["schemas"])
            groups.setdefault(operation["tags"][0], []).append(row)
    context = {"groups": sorted(groups.items()), "base": request.build_absolute_uri(PREFIX)}
    return render(request, "api_docs.html", context)


def describe_operation(
    route: str, method: str, operation: dict[str, Any], shapes: dict[str, Any]
) -> dict[str, Any]:
    """What the page says of one operation."""
    parameters = [
        field_row(parameter["name"], parameter["schema"], shapes, required=parameter["required"])
        for parameter in operation.get("parameters", [])
    ]
    status, answer = next(iter(operation["responses"].items()))
    parts = {
        "Parameters": parameters,
        "Body": field_rows(content_shape(operation.get("requestBody", {})), shapes, of_request=True),
        "Answer": field_rows(content_shape(answer), shapes, of_request=False),
    }
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "route": route,
        "text": operation["description"],
        "who": operation["x-for"],
        "status": status,
        "parts": [(name, rows) for name, rows in parts.items() if rows],
    }


def content_shape(holder: dict[str, Any]) -> dict[str, Any]:
    """The schema of a body or an answer; empty where it has none."""
    content: dict[str, Any] = next(iter(holder.get("content", {}).values()), {})
    shape: dict[str, Any] = content.get("schema", {})
    return shape


def field_rows(schema: dict[str, Any], shapes: dict[str, Any], *, of_request: bool) -> list[dict[str, Any]]:
    """The fields of an object; of a page of a list those of its items."""
    shape = resolve_shape(schema, shapes)
    fields = shape.get("properties", {})
    if "next" in fields and "items" in fields:
        return field_rows(fields["items"]["items"], shapes, of_request=of_request)
    required = shape.get("required", ()) if of_request else ()
    return [field_row(name, field, shapes, required=name in required) for name, field in fields.items()]


def field_row(name: str, schema: dict[str, Any], shapes: dict[str, Any], *, required: bool) -> dict[str, Any]:
    return {
        "name": name,
        "type": type_text(schema, shapes),
        "required": required,
        "text": schema.get("description", ""),
    }


def type_text(schema: dict[str, Any], shapes: dict[str, Any]) -> str:
    """`whole number, 1 to 200`, `one of done, failed`, `list of texts`, `text or null`."""
    if "anyOf" in schema:
        ways = [type_text(way, shapes) for way in schema["anyOf"]]
        return " or ".join(sorted(filter(None, dict.fromkeys(ways)), key=lambda way: way == "null"))
    shape = resolve_shape(schema, shapes)
    choices = shape.get("enum", [shape["const"]] if "const" in shape else ())
    if choices:
        named = [str(choice) for choice in choices if choice != ""]
        return f"one of {', '.join(named)}" if len(named) > 1 else "".join(named)
    kind = TYPE_NAMES.get(shape.get("format", "")) or TYPE_NAMES.get(shape.get("type", ""), "any")
    if "items" in shape:
        return f"list of {type_text(shape['items'], shapes)}"
    return kind + bounds_text(shape)


def bounds_text(shape: dict[str, Any]) -> str:
    if "maxLength" in shape:
        return f" of at most {shape['maxLength']} letters"
    if "minimum" in shape and "maximum" in shape:
        return f", {shape['minimum']} to {shape['maximum']}"
    return ""


def resolve_shape(schema: dict[str, Any], shapes: dict[str, Any]) -> dict[str, Any]:
    """The schema itself, or that to which it refers."""
    name = schema.get("$ref", "").rpartition("/")[2]
    shape: dict[str, Any] = shapes.get(name, schema)
    return shape
