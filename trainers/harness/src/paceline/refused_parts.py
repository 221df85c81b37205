"""A part of a measured document that would be refused is left out, so that the rest isn't lost with it.

What is measured is checked before it is written. A number that nobody foresaw, in a part that a document need
not have, would cost the whole run, which may have taken hours.
"""

from __future__ import annotations

import json
import re
from typing import Any

from . import document, schema
from .run_warnings.warning import make_warning

CODE = "part_left_out"
# Members that have to be there, and what they are where nothing is known.
EMPTY: dict[str, Any] = {"profile": None, "telemetry": []}
# Every document has these metrics; of the others a row is left out by itself.
NEEDED = ("throughput", "step_time")
ROW = re.compile(r"metrics\[(\d+)\]")
MOST_WARNINGS = 100
LONGEST = 1000  # characters of the reason

Raw = dict[str, Any]


def without_refused_parts(raw: Raw) -> Raw:
    """The document without what is refused of it, each part with a warning that says why.

    Raises DocumentError where a part is refused that every document needs.
    """
    while True:
        try:
            document.read_document(json.dumps(raw))
        except document.DocumentError as error:
            raw = _without_part(raw, error)
        else:
            return raw


def _without_part(raw: Raw, error: document.DocumentError) -> Raw:
    member = re.split(r"[.\[]", error.path, maxsplit=1)[0]
    row = ROW.match(error.path)
    rest = {name: value for name, value in raw.items() if name != member}
    if row and raw["metrics"][int(row[1])].get("name") not in NEEDED:
        kept = [metric for index, metric in enumerate(raw["metrics"]) if index != int(row[1])]
        rest["metrics"] = kept
        part = f"metric {row[1]} of its list"
    elif member in EMPTY and raw[member] != EMPTY[member]:
        rest[member] = EMPTY[member]
        part = member
    elif member in raw and member not in schema.load_schema()["required"]:
        part = member
    else:
        raise error
    return {**rest, "warnings": [*raw["warnings"][: MOST_WARNINGS - 1], _describe_part(part, error)]}


def _describe_part(part: str, error: document.DocumentError) -> dict[str, Any]:
    why = str(error).encode("ascii", "backslashreplace").decode().replace("\0", "\\0")
    return make_warning(
        CODE,
        f"The document would have been refused ({why[:LONGEST]}), so it is written without {part}.",
        "Everything else is as it was measured. If your code reported that number, report one that is finite "
        "and of a usual size; otherwise tell the harness's authors.",
    )
