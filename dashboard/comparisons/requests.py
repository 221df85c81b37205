"""What an address asks to compare, and how it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

LONGEST = 300


class ComparisonError(Exception):
    """The two can't be compared: one sentence for people, about what they wrote into `field`."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(f"{field.replace('_', ' ')}: {sentence}")
        self.field = field
        self.sentence = sentence


class UnknownRevisionError(ComparisonError):
    """Nothing that is stored has the name `text`: the repository may know it, and then it can be measured."""

    def __init__(self, field: str, sentence: str, text: str) -> None:
        super().__init__(field, sentence)
        self.text = text


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRequest:
    """As it was written; what is empty is left to Paceline.

    base, head: a commit's hash or its beginning, a branch, a tag, or `run:23`.
    case: the case of which all is shown, `snake_dqn[variant=optimized]`; empty: what differs most.
    head_case: the head's, where it is another one. pool, windows (`standard`, `quick`): likewise of the case.
    """

    base: str = ""
    head: str = ""
    case: str = ""
    head_case: str = ""
    pool: str = ""
    windows: str = ""

    def as_query(self) -> dict[str, str]:
        """What its address says; empty fields are left out."""
        return {field.name: text for field in fields(self) if (text := getattr(self, field.name))}


FIELDS = tuple(field.name for field in fields(ComparisonRequest))


def read_request(form: Mapping[str, Any]) -> ComparisonRequest:
    """By the fields of an address; too long a text can't be meant."""
    return ComparisonRequest(
        **{name: str(form.get(name, "")).replace("\0", "").strip()[:LONGEST] for name in FIELDS}
    )
