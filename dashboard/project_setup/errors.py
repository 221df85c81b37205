from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError

# What a form calls these fields; others say it themselves, or stand below their label.
FIELD_NAMES = {
    "slug": "The name",
    "repository": "The address",
    "branch": "The branch",
    "poll_minutes": "The number of minutes",
}


class SetupError(Exception):
    """What was typed in a field can't be; the message is one sentence for people that stands at it."""

    def __init__(self, sentence: str, field: str) -> None:
        super().__init__(sentence)
        self.field = field


def refused_field(error: ValidationError) -> SetupError:
    """The first field that a model refuses, with a sentence of ours where Django has one for any field."""
    field, problems = next(iter(error.error_dict.items()))
    return SetupError(_plain_sentence(FIELD_NAMES.get(field, "It"), problems[0]), field)


def _plain_sentence(subject: str, problem: ValidationError) -> str:
    bound: Any = (problem.params or {}).get("limit_value")
    match problem.code:
        case "blank" | "null":
            return f"{subject} must not be empty."
        case "min_value":
            return f"{subject} must be {format_bound(bound)} or more."
        case "max_value":
            return f"{subject} must be {format_bound(bound)} or less."
        case "max_length":
            return f"{subject} must have at most {bound} characters."
    return str(problem.messages[0])


def format_bound(bound: float) -> str:
    """As people read it, and exact: `0.05`, `10,000,000`."""
    return f"{bound:,.10g}"
