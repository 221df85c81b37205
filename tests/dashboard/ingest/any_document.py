"""Documents at random: a real one, some of whose members are replaced by whatever the schema allows there."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from paceline import schema

GOLDEN = Path(__file__).parents[2] / "golden" / "paceline.document-1-complete.json"
Raw = dict[str, Any]
Spot = tuple[str | int, ...]  # the way to a member: names and indices
# What makes it this run's document, or says what a value is: with another one it would only be refused.
FIXED = {"format", "benchmark", "quick", "name", "metric", "unit", "kind", "better", "index", "repetition"}
MOST_REPLACED = 6
# Members of a list or an object that is drawn: as many as the schema allows would only take long.
MOST_DRAWN = 5
FOREIGN = (
    "<script>alert(1)</script>",
    "{{ 1 }}",
    "%s %d",
    "\u202fx",
    "'\"`",
    "é" * 60,
    "🐢",
    " ",
    "a/b/c",
    "",
)


def load_complete_document(benchmark: Mapping[str, Any]) -> Raw:
    """Return the real document with every optional member, as one of this benchmark."""
    raw: Raw = json.loads(GOLDEN.read_text())
    return {**raw, "benchmark": dict(benchmark), "protocol": {**raw["protocol"], "quick": False}}


@st.composite
def any_documents(draw: st.DrawFn, whole: Raw) -> Raw:
    """Return `whole` with some members replaced."""
    root = schema.load_schema()
    spots = list(_replaceable_spots(whole, root, root, ()))
    raw = copy.deepcopy(whole)
    for spot, described in draw(st.lists(st.sampled_from(spots), min_size=1, max_size=MOST_REPLACED)):
        holder = _find_holder(raw, spot)
        if holder is not None:
            holder[spot[-1]] = draw(values_of(described, root))
    return raw


def values_of(described: Mapping[str, Any], root: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for all that this part of the schema allows."""
    if "$ref" in described:
        return values_of(_resolve_reference(described, root), root)
    if "anyOf" in described:
        return st.one_of([values_of(choice, root) for choice in described["anyOf"]])
    if "enum" in described:
        return st.sampled_from(described["enum"])
    if "const" in described:
        return st.just(described["const"])
    return _STRATEGIES[described["type"]](described, root)


def _replaceable_spots(
    value: Any, described: Mapping[str, Any], root: Mapping[str, Any], spot: Spot
) -> Iterator[tuple[Spot, Mapping[str, Any]]]:
    described = _resolve_reference(described, root)
    if spot:
        yield spot, described
    for choice in described.get("anyOf", (described,)):
        inner = _resolve_reference(choice, root)
        if isinstance(value, dict) and inner.get("type") == "object":
            for name, member in value.items():
                below = inner.get("properties", {}).get(name) or inner.get("additionalProperties")
                if name not in FIXED and below:
                    yield from _replaceable_spots(member, below, root, (*spot, name))
        if isinstance(value, list) and "items" in inner:
            for index, item in enumerate(value[:MOST_DRAWN]):
                yield from _replaceable_spots(item, inner["items"], root, (*spot, index))


def _find_holder(raw: Any, spot: Spot) -> Any:
    """Return what holds the member, None where it has been replaced by something without such a member."""
    for step in spot[:-1]:
        try:
            raw = raw[step]
        except (KeyError, IndexError, TypeError):
            return None
    last = spot[-1]
    holds = isinstance(raw, dict) if isinstance(last, str) else isinstance(raw, list) and last < len(raw)
    return raw if holds else None


def _resolve_reference(described: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in described:
        return described
    found: Mapping[str, Any] = root["$defs"][described["$ref"].rpartition("/")[2]]
    return found


def _number_values(described: Mapping[str, Any], _: Mapping[str, Any]) -> st.SearchStrategy[float]:
    low, high = described["minimum"], described["maximum"]
    corners = [value for value in (0.0, 5e-324, 1e-100, 1e-9, 1.0, 1e9, low, high) if low <= value <= high]
    return st.sampled_from(corners) | st.floats(low, high)


def _integer_values(described: Mapping[str, Any], _: Mapping[str, Any]) -> st.SearchStrategy[int]:
    low, high = described["minimum"], described.get("maximum", 2**53)
    return st.sampled_from([low, high]) | st.integers(low, high)


def _text_values(described: Mapping[str, Any], _: Mapping[str, Any]) -> st.SearchStrategy[str]:
    pattern = described["pattern"].removesuffix("$") + r"\Z"
    most = described.get("maxLength", 100)
    drawn = st.from_regex(pattern).filter(lambda text: len(text) <= most)
    if not pattern.startswith("^[^"):
        return drawn
    least = described.get("minLength", 0)
    return st.sampled_from([text for text in (*FOREIGN, "x" * most) if least <= len(text) <= most]) | drawn


def _list_values(described: Mapping[str, Any], root: Mapping[str, Any]) -> st.SearchStrategy[list[Any]]:
    least, most = described.get("minItems", 0), described["maxItems"]
    items = values_of(described["items"], root)
    return st.lists(items, min_size=least, max_size=min(most, max(MOST_DRAWN, least)))


def _object_values(described: Mapping[str, Any], root: Mapping[str, Any]) -> st.SearchStrategy[Raw]:
    if "properties" not in described:
        names = values_of(described["propertyNames"], root)
        members = values_of(described["additionalProperties"], root)
        return st.dictionaries(names, members, max_size=MOST_DRAWN)
    members = {name: values_of(member, root) for name, member in described["properties"].items()}
    required = set(described.get("required", ()))
    return st.fixed_dictionaries(
        {name: member for name, member in members.items() if name in required},
        optional={name: member for name, member in members.items() if name not in required},
    )


_STRATEGIES = {
    "number": _number_values,
    "integer": _integer_values,
    "string": _text_values,
    "array": _list_values,
    "object": _object_values,
    "boolean": lambda *_: st.booleans(),
    "null": lambda *_: st.none(),
}
