"""Typed reading of a manifest's tables: each error names the key, and the nearest right one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

Scalar = str | int | float | bool

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
# As documents hold them.
PARAMS_LIMIT = 50
LARGEST_NUMBER = 1e100
LONGEST_KEY = 200


class ManifestError(Exception):
    """The manifest is wrong; the message is one sentence that names the key, without the stop at its end."""

    @property
    def sentence(self) -> str:
        """As it stands on a page; a suggestion ends as the question that it is."""
        text = str(self)
        return text if text.endswith("?") else f"{text}."


class TomlTable:
    """One table of the manifest. `refuse_unread_keys` refuses the keys that were not read."""

    def __init__(self, raw: Mapping[str, object], where: str, path: str) -> None:
        self._raw = raw
        self._where = where
        self._path = path
        self._read_keys: list[str] = []

    def error(self, key: str, sentence: str) -> ManifestError:
        """Return the error for a key of this table; an empty key means the table itself."""
        return ManifestError(f"{self._where}: {self._name(key)}: {sentence}")

    def unknown_value_error(self, key: str, value: str, known: Sequence[str]) -> ManifestError:
        """Return the error for a value that isn't among the known ones."""
        shown = value if len(value) <= LONGEST_KEY else f"{value[:LONGEST_KEY]}..."
        return self.error(key, f"{shown!r} is unknown{_suggest_nearest(shown, known)}")

    def unknown_key_error(self, key: str, known: Sequence[str]) -> ManifestError:
        """Return the error for a key that isn't among the known ones."""
        return self.error(key, f"is unknown{_suggest_nearest(key, known)}")

    def _missing(self, key: str) -> ManifestError:
        unread = [name for name in self._raw if name not in self._read_keys]
        near = difflib.get_close_matches(key, unread, n=1)
        return self.error(key, f"is missing; was {near[0]!r} meant to be it?" if near else "is missing")

    def names(self) -> list[str]:
        """Return the table's keys, in the manifest's order; refuse those that no document could hold."""
        for key in self._raw:
            if not key.isprintable() or not 0 < len(key) <= LONGEST_KEY:
                raise self.error(key, f"must be a printable name of at most {LONGEST_KEY} characters")
        return list(self._raw)

    def check_name(self, name: str) -> None:
        """Refuse a table's name that can't stand in an address or a command."""
        if not _NAME.fullmatch(name):
            raise self.error("", "must be named with letters, digits, dot, dash and underscore, 100 at most")

    def refuse_unread_keys(self) -> None:
        """Refuse the keys that were not read."""
        for key in self._raw:
            if key not in self._read_keys:
                raise self.unknown_key_error(key, self._read_keys)

    def table(self, key: str) -> TomlTable | None:
        """Return a table, or None where it is missing."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(key, "must be a table")
        return TomlTable(value, self._where, self._name(key))

    def required_table(self, key: str) -> TomlTable:
        """Return a table that must be there."""
        table = self.table(key)
        if table is None:
            raise self._missing(key)
        return table

    def tables(self, key: str) -> list[TomlTable] | None:
        """Return a list of tables, or None where it is missing."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(key, "must be a list of tables")
        path = self._name(key)
        return [TomlTable(item, self._where, f"{path}[{index}]") for index, item in enumerate(value)]

    def strings(self, key: str) -> list[str] | None:
        """Return a list of strings, or None where it is missing."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, "must be a list of strings")
        return list(value)

    def strings_or_tables(self, key: str) -> list[str | TomlTable] | None:
        """Return a list of strings and tables, or None where it is missing."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str | dict) for item in value):
            raise self.error(key, "must be a list of strings or tables")
        path = self._name(key)
        return [
            TomlTable(item, self._where, f"{path}[{index}]") if isinstance(item, dict) else item
            for index, item in enumerate(value)
        ]

    def scalars(self, key: str) -> dict[str, Scalar] | None:
        """Return a table of plain values, or None where it is missing."""
        table = self.table(key)
        return None if table is None else table.all_scalars()

    def all_scalars(self) -> dict[str, Scalar]:
        """Return this whole table, which must hold plain values under names of parameters."""
        if len(self._raw) > PARAMS_LIMIT:
            raise self.error("", f"has {len(self._raw)} members, at most {PARAMS_LIMIT} are allowed")
        return {key: self._scalar(key) for key in self._raw}

    def named_strings(self, key: str) -> dict[str, str]:
        """Return a table of strings that aren't empty, under printable names; empty where it is missing."""
        table = self.table(key)
        return {} if table is None else {name: table.required_string(name) for name in table.names()}

    def has_key(self, key: str) -> bool:
        """Whether the table says anything under this key."""
        return key in self._raw

    def required_string(self, key: str) -> str:
        """Return a string that must be there and not be empty."""
        value = self._take(key)
        if value is None:
            raise self._missing(key)
        if not isinstance(value, str) or not value:
            raise self.error(key, "must be a string that isn't empty")
        return value

    def text(self, key: str) -> str:
        """Return a string that must be there and may be empty."""
        value = self._take(key)
        if not isinstance(value, str):
            raise self.error(key, "must be a string")
        return value

    def integer(self, key: str, default: int, *, minimum: int, maximum: int = 10**12) -> int:
        """Return an integer within its bounds, or the default."""
        value = self.optional_integer(key, minimum=minimum, maximum=maximum)
        return default if value is None else value

    def required_integer(self, key: str, *, minimum: int, maximum: int = 10**12) -> int:
        """Return an integer that must be there."""
        value = self.optional_integer(key, minimum=minimum, maximum=maximum)
        if value is None:
            raise self._missing(key)
        return value

    def optional_integer(self, key: str, *, minimum: int, maximum: int = 10**12) -> int | None:
        """Return an integer within its bounds, or None where it is missing."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(key, "must be an integer")
        if not minimum <= value <= maximum:
            raise self.error(key, f"is {value}, must be between {minimum} and {maximum}")
        return value

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return a boolean, or the default."""
        value = self._take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false")
        return value

    def number(self, key: str) -> float | None:
        """Return a finite number, or None where it is missing."""
        value = self._take(key)
        if value is None:
            return None
        if not _is_finite(value):
            raise self.error(key, "must be a finite number")
        return float(value)  # type: ignore[arg-type]  # a number, as was just tested

    def required_number(self, key: str) -> float:
        """Return a finite number that must be there."""
        value = self.number(key)
        if value is None:
            raise self._missing(key)
        return value

    def required_numbers(self, key: str) -> list[float]:
        """Return a list of finite numbers that must be there; integers stay integers."""
        value = self._take(key)
        if value is None:
            raise self._missing(key)
        if not isinstance(value, list) or not all(_is_finite(item) for item in value):
            raise self.error(key, "must be a list of finite numbers")
        return list(value)

    def integers(self, key: str, *, maximum: int) -> tuple[int, ...] | None:
        """Return a list of different integers from 0 on, or None where it is missing."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise self.error(key, "must be a list of integers")
        if not value or len(set(value)) != len(value) or not 0 <= min(value) <= max(value) <= maximum:
            raise self.error(key, f"must be different integers between 0 and {maximum}")
        return tuple(sorted(value))

    def choice(self, key: str, known: Sequence[str]) -> str:
        """Return one of the known words; the first where it is missing."""
        value = self._take(key)
        if value is None:
            return known[0]
        if not isinstance(value, str):
            raise self.error(key, f"must be one of {_list_known(known)}")
        if value not in known:
            raise self.unknown_value_error(key, value, known)
        return value

    def _scalar(self, key: str) -> Scalar:
        value = self._raw[key]
        if not _PARAMETER.fullmatch(key):
            raise self.error(key, "must be named with letters, digits and underscore")
        return check_scalar(value, self.error(key, _SCALAR_RULE))

    def _take(self, key: str) -> object:
        self._read_keys.append(key)
        return self._raw.get(key)

    def _name(self, key: str) -> str:
        return ".".join(part for part in (self._path, _printable_key(key)) if part) or "manifest"


_SCALAR_RULE = (
    "must be a number of at most 64 bits, a boolean, or a string without comma, equals sign or line break"
)


def check_scalar(value: object, error: Exception) -> Scalar:
    """Return a parameter's value, or raise `error` where it couldn't stand in a case's key."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    if isinstance(value, float) and abs(value) <= LARGEST_NUMBER:
        return value
    # A comma or an equals sign would let two cases share one key.
    if isinstance(value, str) and len(value) <= 200 and value.isprintable() and not re.search("[,=]", value):
        return value
    raise error


def _printable_key(key: str) -> str:
    if key.isprintable() and len(key) <= LONGEST_KEY:
        return key
    return repr(key[:LONGEST_KEY])


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER


def _suggest_nearest(value: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(value, known, n=1, cutoff=0.5)
    return f", did you mean {near[0]!r}?" if near else f"; known are {_list_known(known)}"


def _list_known(known: Sequence[str]) -> str:
    """Without the empty one, which stands for a key that is left out."""
    return ", ".join(filter(None, known))
