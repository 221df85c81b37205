"""A part of a measured document that would be refused is left out, so that the rest isn't lost with it.

What is measured is checked before it is written. A number that nobody foresaw, in a part that a document need
not have, would cost the whole run, which may have taken hours.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .. import document, schema
from ..run_warnings.warning import make_warning

CODE = "part_left_out"
# Members that have to be there, and what they are where nothing is known.
EMPTY: dict[str, Any] = {"profile": None, "telemetry": []}
# What a document is too large for goes first.
LARGEST = ("telemetry", "device_profile", "profile")
# An alarm hangs on these: a crossed limit must not be forgotten for the sake of the rest.
KEPT_WHOLE = ("limits", "guards")
# Every document has these metrics; of the others a row is left out by itself.
NEEDED = ("throughput", "step_time")
ROW = re.compile(r"metrics\[(\d+)\]")
MOST_WARNINGS = 100
LONGEST = 1000  # characters of the reason

Raw = dict[str, Any]


def without_refused_parts(raw: Raw) -> Raw:
    """The document without what is refused of it, each part with a warning that says why.

    Raises DocumentError where a part is refused that every document needs, or that an alarm hangs on.
    """
    while True:
        try:
            document.read_document(json.dumps(raw))
        except document.DocumentError as error:
            raw = _without_part(raw, error)
        else:
            return raw


def _without_part(raw: Raw, error: document.DocumentError) -> Raw:
    row = ROW.match(error.path)
    if row and not _is_needed(raw, raw["metrics"][int(row[1])]):
        index = int(row[1])
        rest = {**raw, "metrics": [*raw["metrics"][:index], *raw["metrics"][index + 1 :]]}
        part = f"metric {index} of its list"
    else:
        part = re.split(r"[.\[]", error.path, maxsplit=1)[0] or next(
            (member for member in LARGEST if raw.get(member)), ""
        )
        is_empty = part in EMPTY and raw[part] == EMPTY[part]
        if part in KEPT_WHOLE or part not in raw or is_empty:
            raise error
        rest = {name: value for name, value in raw.items() if name != part}
        if part in EMPTY:
            rest[part] = EMPTY[part]
        elif part in schema.load_schema()["required"]:
            raise error
    return {**rest, "warnings": [*_room_for_one(raw["warnings"]), _describe_part(part, error)]}


def _is_needed(raw: Raw, metric: Raw) -> bool:
    """Whether every document has a metric, or an alarm hangs on it: a site stands a limit by its value."""
    name = metric.get("name")
    limited = {row.get("metric") for row in raw.get("limits", ())}
    guarded = {f"quality.{row.get('quality')}" for row in raw.get("guards", ())}
    return name in NEEDED or name in limited | guarded


def _room_for_one(warnings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All warnings, or, of as many as a document holds, all but the last that taints nothing."""
    if len(warnings) < MOST_WARNINGS:
        return warnings
    last = max((i for i, row in enumerate(warnings) if not row["taints"]), default=len(warnings) - 1)
    return [*warnings[:last], *warnings[last + 1 : MOST_WARNINGS]]


def _describe_part(part: str, error: document.DocumentError) -> dict[str, Any]:
    why = str(error).encode("ascii", "backslashreplace").decode().replace("\0", "\\0")
    return make_warning(
        CODE,
        f"The document would have been refused ({why[:LONGEST]}), so it is written without {part}.",
        "Everything else is as it was measured. If your code reported that number, report one that is finite "
        "and of a usual size; otherwise tell the harness's authors.",
    )
