"""A reader of the part of JSON Schema that the document's schema uses; the standard library has none."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any

Schema = Mapping[str, Any]
Problem = tuple[str, str]  # the path of the offending field, what is wrong with it


@functools.cache
def load_schema() -> Schema:
    """Return the document's schema as it is published beside this module."""
    text = resources.files(__package__).joinpath("document.schema.json").read_text(encoding="utf-8")
    schema: Schema = json.loads(text)
    return schema


def first_problem(value: object, schema: Schema) -> Problem | None:
    """Return the first problem in reading order, or None where the value fits."""
    return next(_find_problems(value, schema, "", schema), None)


def _find_problems(value: object, schema: Schema, path: str, root: Schema) -> Iterator[Problem]:
    if "$ref" in schema:
        yield from _find_problems(value, _resolve_reference(schema, root), path, root)
    if "anyOf" in schema:
        yield from _any_of_problems(value, schema["anyOf"], path, root)
    wrong = _value_problem(value, schema)
    if wrong:
        yield path, wrong
    elif isinstance(value, dict):
        yield from _member_problems(value, schema, path, root)
    elif (
        isinstance(value, list)
        and "items" in schema
        and not _are_numbers_within(value, schema["items"], root)
    ):
        for index, item in enumerate(value):
            yield from _find_problems(item, schema["items"], f"{path}[{index}]", root)


def _are_numbers_within(values: list[Any], items: Schema, root: Schema) -> bool:
    """Whether these are floats, or null where allowed, within the bounds: what most of a document is."""
    choices = items.get("anyOf", [items])
    if len(choices) > 1 and choices[1:] != [{"type": "null"}]:
        return False
    number = _resolve_reference(choices[0], root)
    if number.get("type") != "number":
        return False
    kinds = set(map(type, values))
    if not kinds <= ({float, type(None)} if len(choices) > 1 else {float}):
        return False
    floats = [value for value in values if value is not None] if len(kinds) > 1 else values
    if kinds == {type(None)} or not floats:
        return True
    low, high = min(floats), max(floats)
    # A number that is none compares with nothing: then these don't hold.
    return number["minimum"] <= low <= high <= number["maximum"] and not any(map(math.isnan, floats))


def _resolve_reference(schema: Schema, root: Schema) -> Schema:
    resolved: Schema = root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return resolved


def _any_of_problems(value: object, choices: list[Schema], path: str, root: Schema) -> Iterator[Problem]:
    if value is None and {"type": "null"} in choices:
        return
    problems = [next(_find_problems(value, choice, path, root), None) for choice in choices]
    if None not in problems:
        # The first choice is the meaningful one; the others are null or another scalar.
        yield problems[0] or (path, "is wrong")


def _member_problems(value: dict[str, Any], schema: Schema, path: str, root: Schema) -> Iterator[Problem]:
    known = schema.get("properties", {})
    extra = schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield _join_path(path, name), "is missing"
    for name, member in value.items():
        if "propertyNames" in schema:
            yield from _find_problems(name, schema["propertyNames"], _join_path(path, name), root)
        if name in known:
            yield from _find_problems(member, known[name], _join_path(path, name), root)
        elif extra is False:
            yield _join_path(path, name), "is unknown"
        elif isinstance(extra, Mapping):
            yield from _find_problems(member, extra, _join_path(path, name), root)


def _value_problem(value: object, schema: Schema) -> str | None:
    if "const" in schema and value != schema["const"]:
        return f"must be {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"must be one of {', '.join(schema['enum'])}"
    kind = schema.get("type")
    if kind is not None and not _TYPES[kind](value):
        return f"must be {_ARTICLES[kind]}"
    for keyword, check in _LIMITS.items():
        if keyword in schema and not check(value, schema[keyword]):
            return _SENTENCES[keyword].format(schema[keyword])
    return None


@functools.cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    # In a schema `$` is the end; in Python it is also the place before a newline at the end.
    return re.compile(re.sub(r"\$$", r"\\Z", pattern))


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # An integer beyond a float's range would overflow in every reader behind us.
    return math.isfinite(value) if isinstance(value, float) else abs(value) < 2**63


def _is_integer(value: object) -> bool:
    return _is_number(value) and (isinstance(value, int) or float(str(value)).is_integer())


_TYPES: dict[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": _is_integer,
}
_ARTICLES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "boolean": "true or false",
    "null": "null",
    "number": "a finite number",
    "integer": "an integer",
}
_LIMITS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "minLength": lambda value, limit: len(value) >= limit,
    "maxLength": lambda value, limit: len(value) <= limit,
    "minItems": lambda value, limit: len(value) >= limit,
    "maxItems": lambda value, limit: len(value) <= limit,
    "maxProperties": lambda value, limit: len(value) <= limit,
    "pattern": lambda value, limit: _compile_pattern(limit).search(value) is not None,
}
_SENTENCES = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "minLength": "must not be empty",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "maxProperties": "must have at most {} members",
    "pattern": "has characters or a form that aren't allowed",
}


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
