"""What a commit says of itself, taken as it is: odd dates, names and encodings refuse nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

LONGEST_SUBJECT = 500
LONGEST_AUTHOR = 200
# Enough for the longest subject in any encoding.
MOST_MESSAGE_BYTES = 8192
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What databases and calendars can hold, in every time zone.
EARLIEST = int((datetime(1, 1, 2, tzinfo=UTC) - EPOCH).total_seconds())
LATEST = int((datetime(9999, 12, 30, tzinfo=UTC) - EPOCH).total_seconds())
# More digits than any date has; Python refuses numbers of thousands.
MOST_DIGITS = 20
_PARENT = re.compile(rb"[0-9a-fA-F]{40}(?:[0-9a-fA-F]{24})?")
# Characters that no database's text holds.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class CommitContents:
    """What a commit says; what it doesn't say, or nobody can read, is empty."""

    parents: list[str]
    author: str
    committed_at: datetime
    subject: str


def parse_commit(data: bytes) -> CommitContents:
    """Read a commit object, or its beginning. Never fails: git itself refuses hardly anything here."""
    head, _, message = data.partition(b"\n\n")
    lines = head.split(b"\n")
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, _, value = line.partition(b" ")
        fields.setdefault(name, value)
    encoding = fields.get(b"encoding", b"utf-8").decode("ascii", "replace").strip()
    author = fields.get(b"author", b"")
    seconds = _read_seconds(fields.get(b"committer", b""))
    if seconds is None:
        seconds = _read_seconds(author)
    return CommitContents(
        parents=_read_parents(lines),
        author=_decode_text(_read_name(author), encoding)[:LONGEST_AUTHOR],
        committed_at=_to_datetime(seconds or 0),
        subject=_read_subject(_decode_text(message[:MOST_MESSAGE_BYTES], encoding))[:LONGEST_SUBJECT],
    )


def _read_parents(lines: list[bytes]) -> list[str]:
    """As git counts them: those that follow the tree at once."""
    parents = []
    for line in lines[1:]:
        name, _, value = line.partition(b" ")
        if name != b"parent" or not _PARENT.fullmatch(value):
            break
        parents.append(value.decode().lower())
    return parents


def _read_name(identity: bytes) -> bytes:
    """Of `NAME <ADDRESS> SECONDS ZONE` the name; all of it where there is no address."""
    return identity.partition(b"<")[0].strip()


def _read_seconds(identity: bytes) -> int | None:
    """The seconds since 1970 after the address; the zone says only where the clock hung."""
    match = re.match(rb"\s*(-?\d+)", identity.rpartition(b">")[2])
    return int(match[1][:MOST_DIGITS]) if match else None


def _to_datetime(seconds: int) -> datetime:
    """The nearest time that can be stored."""
    return EPOCH + timedelta(seconds=min(max(seconds, EARLIEST), LATEST))


def _read_subject(message: str) -> str:
    """The first paragraph as one line, as git shows it."""
    lines: list[str] = []
    for line in message.lstrip(" \t\r\n\f\v").split("\n"):
        stripped = line.rstrip(" \t\r\f\v")
        if not stripped:
            break
        lines.append(stripped)
    return " ".join(lines)


def _decode_text(data: bytes, encoding: str) -> str:
    """Text as its encoding says; what doesn't fit, or can't be stored, is marked as unreadable."""
    try:
        # One that doesn't write ASCII as itself (UTF-16) can't be that of an object with lines of ASCII.
        text = data.decode(encoding if "a".encode(encoding) == b"a" else "utf-8", "replace")
    except (LookupError, ValueError):  # Unknown, or one of Python's own that isn't for text.
        text = data.decode("utf-8", "replace")
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
