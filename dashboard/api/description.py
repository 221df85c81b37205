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
from dashboard.api.problems import PREFIX, PROBLEM_TYPE, Problem
from dashboard.api.site_api import api, api_patterns

SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of the project: *Settings*, *Tokens*.",
    },
}
METHODS = ("get", "post", "put", "patch", "delete")


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
    route: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]
) -> dict[str, Any]:
    """What the page says of one operation."""
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "route": route,
        "text": operation.get("description") or operation["summary"],
        "who": operation["x-for"],
        "parameters": [
            parameter_row(parameter["name"], parameter["schema"], required=parameter["required"])
            for parameter in operation.get("parameters", [])
        ],
        "body": body_rows(operation, schemas),
        "answer": answer_name(operation),
    }


def body_rows(operation: dict[str, Any], schemas: dict[str, Any]) -> list[dict[str, Any]]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    shape = schemas.get(name, {})
    required = shape.get("required", ())
    return [
        parameter_row(field, schema, required=field in required)
        for field, schema in shape.get("properties", {}).items()
    ]


def parameter_row(name: str, schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    shape = next((way for way in schema.get("anyOf", ()) if way.get("type") != "null"), schema)
    bounds = [
        f"{word} {shape[key]}"
        for key, word in (("minimum", "from"), ("maximum", "to"), ("maxLength", "letters, at most"))
        if key in shape
    ]
    if choices := shape.get("enum"):
        bounds.append("one of " + ", ".join(f"{choice}" for choice in choices if choice != ""))
    return {
        "name": name,
        "type": shape.get("type", ""),
        "required": required,
        "bounds": ", ".join(bounds),
        "text": schema.get("description", ""),
    }


def answer_name(operation: dict[str, Any]) -> str:
    """`200 ProjectPage`."""
    status, answer = next(iter(operation["responses"].items()))
    content: dict[str, Any] = next(iter(answer.get("content", {}).values()), {})
    return f"{status} {content.get('schema', {}).get('$ref', '').rpartition('/')[2]}".strip()
