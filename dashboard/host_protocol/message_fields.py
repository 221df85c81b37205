"""The fields of a JSON message, each read as the type and within the bounds that it must have."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

# As the columns of the site's tables hold them.
LARGEST_KEY, LARGEST_INTEGER, LARGEST_SMALL = 2**63 - 1, 2**31 - 1, 2**15 - 1
LARGEST_DURATION = 1e9
# As documents have numbers: of larger ones, or of such that are nearer to zero, a ratio may be infinite.
LARGEST_NUMBER, SMALLEST_NUMBER = 1e100, 1e-100
# In digits, a sign among them.
LONGEST_INTEGER = 20
MOST_ITEMS = 10_000
LONGEST_WORD = 100
# Of a phase.
LONGEST_PATH = 200
# What PostgreSQL keeps in no text.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
# What a terminal obeys: sequences of colours and titles, and control characters other than blanks.
TERMINAL_CODES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)|[\x00-\x08\x0e-\x1f\x7f-\x9f]"
)


class MessageError(Exception):
    """A message can't be used; the sentence names the field."""


class MessageFields:
    """The fields of one JSON object, each read as the type it must have; MessageError where it hasn't."""

    def __init__(self, values: Any, path: str = "") -> None:
        self.path = path
        if not isinstance(values, dict):
            raise MessageError(f"{path or 'The message'} must be an object.")
        self.values: dict[str, Any] = values

    def text(self, name: str, *, most: int | None = None) -> str:
        value = self.values.get(name)
        if not isinstance(value, str):
            self._refuse(name, "must be a text")
        if most is not None and len(value) > most:
            self._refuse(name, f"must be {most} characters long at most")
        return value

    def printed_text(self, name: str, *, most: int | None = None) -> str:
        """A text that measured code may have printed, for people: without what their terminal would obey."""
        return TERMINAL_CODES.sub("", self.text(name, most=most))

    def optional_text(self, name: str) -> str | None:
        return None if self.values.get(name) is None else self.text(name)

    def optional_integer(self, name: str, *, most: int = LARGEST_INTEGER) -> int | None:
        return None if self.values.get(name) is None else self.integer(name, most=most)

    def integer(self, name: str, *, most: int = LARGEST_INTEGER) -> int:
        value = self.values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            self._refuse(name, f"must be a whole number up to {most}")
        return value

    def number(self, name: str) -> float:
        return self._finite(name, self.values.get(name))

    def optional_number(self, name: str) -> float | None:
        return None if self.values.get(name) is None else self.number(name)

    def duration(self, name: str) -> float:
        """Seconds."""
        value = self.number(name)
        if not 0 <= value <= LARGEST_DURATION:
            self._refuse(name, f"must be a number of seconds up to {LARGEST_DURATION:g}")
        return value

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        if not isinstance(value, bool):
            self._refuse(name, "must be true or false")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.values.get(name)
        if not isinstance(value, dict):
            self._refuse(name, "must be an object")
        return value

    def small_mapping(self, name: str, *, most: int) -> dict[str, Any]:
        """An object whose JSON has at most so many characters."""
        value = self.mapping(name)
        if len(json.dumps(value)) > most:
            self._refuse(name, f"must be {most} characters long at most")
        return value

    def flat_mapping(self, name: str, *, most: int) -> dict[str, str | int | bool | None] | None:
        """An object of at most so many plain values, or nothing: what people read, kept as it came."""
        if self.values.get(name) is None:
            return None
        values = self.mapping(name)
        plain = all(
            len(key) <= LONGEST_WORD and (value is None or isinstance(value, int) or is_short_text(value))
            for key, value in values.items()
        )
        if not plain or len(values) > most:
            self._refuse(name, f"must be an object of at most {most} short texts and whole numbers")
        return values

    def texts(self, name: str, *, most: int) -> list[str]:
        """A list of texts of at most so many characters."""
        value = self.values.get(name)
        texts = (
            isinstance(value, list)
            and len(value) <= MOST_ITEMS
            and all(isinstance(item, str) and len(item) <= most for item in value)
        )
        if not isinstance(value, list) or not texts:
            self._refuse(name, f"must be a list of texts of at most {most} characters")
        return value

    def durations(self, name: str, *, most: int) -> dict[str, float]:
        """An object of at most so many seconds, by short names; empty where it is missing."""
        if self.values.get(name) is None:
            return {}
        seconds = {key: self.inside(name).number(key) for key in self.mapping(name)}
        if len(seconds) > most or not all(
            is_short_text(key) and 0 <= value <= LARGEST_DURATION for key, value in seconds.items()
        ):
            self._refuse(name, f"must be an object of at most {most} seconds with short names")
        return seconds

    def objects(self, name: str) -> list[MessageFields]:
        value = self.values.get(name)
        if not isinstance(value, list):
            self._refuse(name, "must be a list of objects")
        return [MessageFields(item, self._full_path(name)) for item in value]

    def optional_objects(self, name: str) -> list[MessageFields]:
        return [] if self.values.get(name) is None else self.objects(name)

    def integers(self, name: str) -> list[int]:
        value = self.values.get(name)
        if not isinstance(value, list) or len(value) > MOST_ITEMS:
            self._refuse(name, f"must be a list of at most {MOST_ITEMS} whole numbers")
        return [MessageFields({name: item}, self.path).integer(name, most=LARGEST_KEY) for item in value]

    def inside(self, name: str) -> MessageFields:
        return MessageFields(self.values.get(name), self._full_path(name))

    def optional_inside(self, name: str) -> MessageFields | None:
        return None if self.values.get(name) is None else self.inside(name)

    def check_texts(self) -> None:
        """Refuse what PostgreSQL can't keep, in whatever is read from here later."""
        for name, value in self.values.items():
            if UNSTORABLE.search(name):
                raise MessageError("The message has a NUL or half a character in a name.")
            if holds_unstorable(value):
                self._refuse(name, "must hold no NUL and no half of a character")

    def number_pairs(self, name: str) -> dict[str, tuple[float, float]]:
        """An object whose names are those of phases, and whose values are lists of two numbers."""
        pairs = {}
        if len(self.mapping(name)) > MOST_ITEMS:
            self._refuse(name, f"must have {MOST_ITEMS} members at most")
        for key, value in self.mapping(name).items():
            if len(key) > LONGEST_PATH:
                self._refuse(name, f"must have names of {LONGEST_PATH} characters at most")
            if not isinstance(value, list) or len(value) != 2:
                self._refuse(f"{name}.{key}", "must be a list of two numbers")
            pairs[key] = (self._finite(f"{name}.{key}", value[0]), self._finite(f"{name}.{key}", value[1]))
        return pairs

    def times(self, name: str, most: int) -> list[float]:
        """A list of so many positive numbers at most."""
        values = self.values.get(name)
        if not isinstance(values, list) or len(values) > most:
            self._refuse(name, f"must be a list of {most} positive numbers at most")
        times = [self._finite(name, value) for value in values]
        if min(times, default=1.0) <= 0:
            self._refuse(name, "must have positive numbers alone")
        return times

    def counts(self, name: str, most: int) -> list[float]:
        """One or more finite numbers that aren't negative."""
        value = self.values.get(name)
        if not isinstance(value, list) or not 0 < len(value) <= most:
            self._refuse(name, f"must be a list of one to {most} numbers")
        numbers = [self._finite(name, number) for number in value]
        if min(numbers) < 0:
            self._refuse(name, "must have no negative numbers")
        return numbers

    def _finite(self, name: str, value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > LARGEST_NUMBER:
            self._refuse(name, f"must be a finite number up to {LARGEST_NUMBER:g}")
        return float(value) if abs(value) >= SMALLEST_NUMBER else 0.0

    def _full_path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _refuse(self, name: str, problem: str) -> NoReturn:
        raise MessageError(f"{self._full_path(name)} {problem}.")


def is_short_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_WORD and value.isprintable()


def read_message(data: bytes) -> MessageFields:
    """A message from its bytes; MessageError where it is no JSON object, or none that can be stored."""
    try:
        values = json.loads(
            data, parse_constant=_refuse_constant, parse_float=_finite_float, parse_int=_storable_integer
        )
    except (ValueError, RecursionError) as error:
        raise MessageError("The message is no JSON with numbers that can be stored.") from error
    fields = MessageFields(values)
    fields.check_texts()
    return fields


def holds_unstorable(value: Any) -> bool:
    """Whether a text or a name of parsed JSON, however deep, is one that PostgreSQL can't keep."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            if UNSTORABLE.search(inner):
                return True
        elif isinstance(inner, dict):
            waiting += [*inner, *inner.values()]
        elif isinstance(inner, list):
            waiting += inner
    return False


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _storable_integer(text: str) -> int:
    # Beyond it no column holds it, and of thousands of digits Python reads none back.
    number = int(text) if len(text) <= LONGEST_INTEGER else 2 * LARGEST_KEY
    if abs(number) > LARGEST_KEY:
        raise ValueError(text[:LONGEST_INTEGER])
    return number
