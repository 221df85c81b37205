from __future__ import annotations


class SetupError(Exception):
    """What was typed in a field can't be; the message is one sentence for people that stands at it."""

    def __init__(self, sentence: str, field: str) -> None:
        super().__init__(sentence)
        self.field = field
