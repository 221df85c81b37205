"""JSON that a forge sent, read field by field: an error names the field whose type or form is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dashboard.forges.errors import ForgeError

# As dashboard.repositories has them: what a forge says is read without any repository.
FULL_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
ABBREVIATED_HASH = re.compile(r"[0-9a-f]{7,64}")
REF = re.compile(r"[^\s\x00-\x1f\x7f~^:?*\[\\-][^\s\x00-\x1f\x7f~^:?*\[\\]{0,499}")
REPOSITORY = re.compile(r"[\w.~-]+(?:/[\w.~-]+){1,20}")
LONGEST_TITLE = 1000
LONGEST_NAME = 300
LONGEST_URL = 2000
LONGEST_COMMENT = 100_000
LARGEST_NUMBER = 2**53
# Characters that no database's text holds.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def parse_object(text: bytes | str, name: str = "The body") -> Fields:
    """The JSON object of a text. Raises ForgeError."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raise ForgeError(400, f"{name} must be a JSON object.") from None
    if not isinstance(raw, dict):
        raise ForgeError(400, f"{name} must be a JSON object.")
    return Fields(raw)


class Fields:
    """An object of JSON. A field is named by its path with dots; what doesn't fit raises ForgeError."""

    def __init__(self, raw: Mapping[str, Any], path: str = "") -> None:
        self.raw, self.path = raw, path

    def get(self, path: str) -> Any:
        """The value at a path, None where there is none."""
        value: Any = self.raw
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def has(self, path: str) -> bool:
        return self.get(path) is not None

    def inside(self, path: str) -> Fields:
        value = self.get(path)
        if not isinstance(value, dict):
            raise self.wrong(path, "an object")
        return Fields(value, f"{self.path}{path}.")

    def items(self, path: str, most: int) -> list[Fields]:
        """The objects of a list, `most` of them at most."""
        value = self.get(path)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(path, "a list of objects")
        if len(value) > most:
            raise self.wrong(path, f"a list of {most} objects at most")
        return [Fields(item, f"{self.path}{path}.{index}.") for index, item in enumerate(value)]

    def text(self, path: str, most: int = LONGEST_NAME, *, default: str | None = None) -> str:
        """A text, cut off at `most` characters, without those that can't be stored."""
        value = self.get(path)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.wrong(path, "a text")
        return UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value[:most])

    def number(self, path: str) -> int:
        """A whole number that isn't negative."""
        value = self.get(path)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LARGEST_NUMBER:
            raise self.wrong(path, "a whole number")
        return value

    def flag(self, path: str, *, default: bool = False) -> bool:
        value = self.get(path)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(path, "true or false")
        return value

    def commit(self, path: str, *, optional: bool = False, short: bool = False) -> str:
        """A commit's hash; empty where it may be missing and is, or is only zeros."""
        value = self.get(path)
        if optional and value in (None, ""):
            return ""
        if not isinstance(value, str) or not (ABBREVIATED_HASH if short else FULL_HASH).fullmatch(value):
            raise self.wrong(path, "a commit's hash" if short else "a commit's full hash")
        return value if value.strip("0") else ""

    def ref(self, path: str) -> str:
        value = self.get(path)
        if not isinstance(value, str) or not REF.fullmatch(value) or UNSTORABLE.search(value):
            raise self.wrong(path, "the name of a branch or a tag")
        return value

    def repository(self, path: str, *, default: str | None = None) -> str:
        value = self.get(path)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or len(value) > LONGEST_NAME or not REPOSITORY.fullmatch(value):
            raise self.wrong(path, "a repository as owner/name")
        return value

    def url(self, path: str) -> str:
        """An address of the web, for a link; empty where it is another text."""
        value = self.text(path, LONGEST_URL, default="")
        return value if re.fullmatch(r"https?://[^\s\"'<>]+", value) else ""

    def moment(self, path: str) -> datetime | None:
        """A time with its zone; None where there is none, or none that a calendar holds in UTC."""
        value = self.get(path)
        if not isinstance(value, str):
            return None
        try:
            # As GitLab spells it: `2015-05-17 18:21:36 UTC`.
            found = datetime.fromisoformat(value.replace(" UTC", "+00:00"))
            # PostgreSQL keeps what is before the year 1 in UTC, and nothing could read the row any more.
            return found.astimezone(UTC) if found.tzinfo else None
        except (ValueError, OverflowError):
            return None

    def wrong(self, path: str, wanted: str) -> ForgeError:
        return ForgeError(400, f"{self.path}{path} must be {wanted}.")
